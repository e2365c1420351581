//! The message that makes a container.

use k8s_openapi::api::core::v1::{Container, Pod};
use oarsman_cri_types::v1::{
    ContainerConfig, ContainerMetadata, ImageSpec, LinuxContainerConfig, Signal,
};

use super::env::{EnvContext, Environment, Lookup};
use super::error::ConfigError;
use super::mounts::{ContainerHostPaths, devices, mounts};
use super::node_context::NodeContext;
use super::paths::log_path;
use super::security::{self, ImageUser, PodGrants, SecurityContextInput};
use crate::ids::ContainerId;
use crate::labels::{container_annotations, container_labels};
use crate::pod::PodExt;
use crate::resources;
use crate::view::{ContainerState, PodView};

/// What a container is made from.
#[derive(Clone, Copy, Debug)]
#[expect(missing_docs, reason = "the fields' names say what they are")]
pub struct ContainerConfigRequest<'a> {
    pub pod: &'a Pod,
    pub spec: &'a Container,
    /// How often one of its name was started before.
    pub restart_count: u32,
    /// What the runtime knows its image as.
    pub image: &'a str,
    /// Whom the image asks to be run as.
    pub image_user: &'a ImageUser,
    /// The addresses of its sandbox; none in the node's network.
    pub ips: &'a [String],
    /// The container whose processes an ephemeral one should see.
    pub target: Option<&'a ContainerId>,
    /// What was made for it on the machine.
    pub host_paths: &'a ContainerHostPaths,
    /// What its variables refer to.
    pub lookup: &'a Lookup,
    /// What was decided about the pod beside its spec.
    pub grants: &'a PodGrants,
    pub node: &'a NodeContext<'a>,
}

/// What a container is made with.
pub fn generate_container_config(
    request: &ContainerConfigRequest<'_>,
) -> Result<ContainerConfig, ConfigError> {
    let ContainerConfigRequest { pod, spec, restart_count, node, .. } = *request;
    let mut environment = make_environment_variables(request)?;
    let command = spec.command.as_deref().unwrap_or_default();
    let args = spec.args.as_deref().unwrap_or_default();
    let mut config = ContainerConfig {
        metadata: Some(ContainerMetadata { name: spec.name.clone(), attempt: restart_count }),
        image: Some(ImageSpec {
            image: request.image.to_owned(),
            user_specified_image: spec.image.clone().unwrap_or_default(),
            ..ImageSpec::default()
        }),
        command: environment.expand_texts(spec, "command", command)?,
        args: environment.expand_texts(spec, "args", args)?,
        working_dir: spec.working_dir.clone().unwrap_or_default(),
        envs: environment.into_pairs(),
        mounts: mounts(spec, request.host_paths, node)?,
        devices: devices(spec, request.host_paths)?,
        labels: container_labels(pod, spec),
        annotations: container_annotations(pod, spec, restart_count, Default::default()),
        log_path: log_path(&spec.name, restart_count),
        stdin: spec.stdin.unwrap_or_default(),
        stdin_once: spec.stdin_once.unwrap_or_default(),
        tty: spec.tty.unwrap_or_default(),
        linux: Some(linux(request)?),
        stop_signal: stop_signal(spec)?.into(),
        ..ContainerConfig::default()
    };
    map_ids(&mut config, request.grants);
    Ok(config)
}

/// The container whose processes an ephemeral one should see: the newest of that name, which must be there.
pub fn target_container_id(view: &PodView, name: &str) -> Result<ContainerId, ConfigError> {
    let newest = view.containers.iter().find(|container| container.name == name);
    let newest = newest.filter(|container| container.state != ContainerState::Unknown);
    newest.map(|c| c.id.clone()).ok_or_else(|| ConfigError::NoTarget(name.to_owned()))
}

pub(super) fn make_environment_variables(
    request: &ContainerConfigRequest<'_>,
) -> Result<Environment, ConfigError> {
    let ContainerConfigRequest { pod, spec, lookup, node, .. } = *request;
    let ips = if pod.host_network() { &node.facts.host_ips } else { request.ips };
    Environment::of(&EnvContext { pod, spec, ips, lookup, node })
}

fn linux(request: &ContainerConfigRequest<'_>) -> Result<LinuxContainerConfig, ConfigError> {
    let ContainerConfigRequest { pod, spec, image_user, target, grants, node, .. } = *request;
    let input = SecurityContextInput { pod, spec, image_user, target, grants, node };
    Ok(LinuxContainerConfig {
        resources: Some(resources::container(pod, spec, &node.settings.resources)),
        security_context: Some(security::container(&input)?),
    })
}

/// In a user namespace, mounted files keep their owners of outside (idmapped mounts).
fn map_ids(config: &mut ContainerConfig, grants: &PodGrants) {
    let Some(granted) = &grants.user_namespace else { return };
    for mount in &mut config.mounts {
        mount.uid_mappings.clone_from(&granted.uids);
        mount.gid_mappings.clone_from(&granted.gids);
    }
}

fn stop_signal(spec: &Container) -> Result<Signal, ConfigError> {
    let wanted = spec.lifecycle.as_ref().and_then(|lifecycle| lifecycle.stop_signal.as_deref());
    let Some(name) = wanted else { return Ok(Signal::RuntimeDefault) };
    // The API writes SIGRTMIN+1 where the enum of the messages cannot.
    let wire = name.replace("MIN+", "MINPLUS").replace("MAX-", "MAXMINUS");
    let unknown = || ConfigError::Unknown { field: "stopSignal", value: name.to_owned() };
    Signal::from_str_name(&wire).ok_or_else(unknown)
}
