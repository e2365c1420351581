//! Generates the CRI configuration of a pod's sandbox and containers from the pod, the node and the pod's files.

use std::sync::Arc;

use k8s_openapi::api::core::v1::{Container, Pod};
use oarsman_core::cri_spec::{
    self, ConfigError, ContainerConfigRequest, ContainerHostPaths, Lookup, NodeContext, PodGrants,
    PodPaths, SandboxSpec, hosts,
};
use oarsman_core::ids::{ContainerId, SandboxId};
use oarsman_core::pod::PodExt;
use oarsman_core::references::runtime_class;
use oarsman_cri_types::v1::{CreateContainerRequest, PodSandboxConfig, UserNamespace};
use oarsman_host::host_info::HostInfoError;
use oarsman_state::FileError;
use oarsman_volumes::VolumeError;

use super::context::PodContext;
use super::image_volumes::ContainerImages;
use crate::runtime_health::RuntimeUnknown;
use crate::user_namespaces::UserNamespaceError;

/// Why the configuration of a sandbox or a container could not be generated.
#[derive(Debug, thiserror::Error)]
pub(super) enum GenerateConfigError {
    #[error(transparent)]
    Config(#[from] ConfigError),
    #[error(transparent)]
    Files(#[from] FileError),
    #[error(transparent)]
    HostInfo(#[from] HostInfoError),
    #[error(transparent)]
    UserNamespace(#[from] UserNamespaceError),
    #[error("the runtime's status is not known: {0}")]
    RuntimeUnknown(#[from] RuntimeUnknown),
    #[error(transparent)]
    Volume(#[from] VolumeError),
}

/// What the pod's sandbox is created with.
pub(super) async fn generate_pod_sandbox_config(
    context: &PodContext,
    pod: &Pod,
    attempt: u32,
) -> Result<SandboxSpec, GenerateConfigError> {
    let (facts, name_files) =
        (context.node.facts(), context.node.seams.host_info.name_files().await?);
    let node = context.node.node_context(&facts, &name_files);
    let grants = grants(context, pod).await?;
    Ok(cri_spec::generate_pod_sandbox_config(pod, attempt, &grants, &node)?)
}

/// What a container is created with in that sandbox; the files it needs are made.
pub(super) async fn generate_container_config(
    context: &PodContext,
    pod: &Pod,
    sandbox: &SandboxId,
    spec: &Container,
    images: &ContainerImages<'_>,
    restart_count: u32,
) -> Result<CreateContainerRequest, GenerateConfigError> {
    let image = &images.own;
    let (attempt, ips) = sandbox_attempt_and_ips(context, sandbox);
    let target = target(context, pod, &spec.name)?;
    let (facts, name_files) =
        (context.node.facts(), context.node.seams.host_info.name_files().await?);
    let node = context.node.node_context(&facts, &name_files);
    let grants = grants(context, pod).await?;
    let files = container_files(context, &node, pod, spec, &ips, restart_count).await?;
    let files = ContainerHostPaths { images: images.volumes.clone(), ..files };
    let known = known_objects(context, pod, spec).await?;
    let request = ContainerConfigRequest {
        pod,
        spec,
        restart_count,
        image: &image.id,
        image_user: &image.user,
        ips: &ips,
        target: target.as_ref(),
        host_paths: &files,
        lookup: &known,
        grants: &grants,
        node: &node,
    };
    let parts = cri_spec::sub_paths(&request)?;
    let set_up = context.node.volume_manager.set_up_sub_paths(&context.uid, parts.to_mount);
    let sub_paths = set_up.await?.into_iter().chain(parts.of_images).collect();
    let files = ContainerHostPaths { sub_paths, ..files.clone() };
    let request = ContainerConfigRequest { host_paths: &files, ..request };
    let config = cri_spec::generate_container_config(&request)?;
    let propagated = cri_spec::propagated_mounts(&config);
    if !propagated.is_empty() {
        context.node.seams.volumes.check_propagation(propagated).await?;
    }
    Ok(CreateContainerRequest {
        pod_sandbox_id: sandbox.to_string(),
        config: Some(config),
        sandbox_config: Some(existing_sandbox(grants, &node, pod, attempt)?.config),
    })
}

/// The configuration of the sandbox that an image is pulled for. A pull does without it where it cannot be made: the container tells why.
pub(super) async fn sandbox_of_pull(
    context: &PodContext,
    pod: &Pod,
    sandbox: &SandboxId,
) -> Option<PodSandboxConfig> {
    let (attempt, _) = sandbox_attempt_and_ips(context, sandbox);
    let facts = context.node.facts();
    let name_files = context.node.seams.host_info.name_files().await.ok()?;
    let node = context.node.node_context(&facts, &name_files);
    let grants = grants(context, pod).await.ok()?;
    existing_sandbox(grants, &node, pod, attempt).ok().map(|sandbox| sandbox.config)
}

/// What the container's variables refer to: objects as they were last read, and files as they are now. Init containers write the files.
async fn known_objects(
    context: &PodContext,
    pod: &Pod,
    spec: &Container,
) -> Result<Arc<Lookup>, VolumeError> {
    let mut known = context.objects.known();
    for file in cri_spec::env_files(pod, spec) {
        let text = context.node.seams.volumes.read_env_file(&context.uid, &file).await?;
        if let Some(text) = text {
            Arc::make_mut(&mut known).files.insert((file.volume, file.path), text);
        }
    }
    Ok(known)
}

/// What the sandbox of a container was created with. Its runtime class may be gone by now, which changes nothing for it.
fn existing_sandbox(
    grants: PodGrants,
    node: &NodeContext<'_>,
    pod: &Pod,
    attempt: u32,
) -> Result<SandboxSpec, ConfigError> {
    let runtime_handler = grants.runtime_handler.or_else(|| Some(String::new()));
    let grants = PodGrants { runtime_handler, ..grants };
    cri_spec::generate_pod_sandbox_config(pod, attempt, &grants, node)
}

async fn container_files(
    context: &PodContext,
    node: &NodeContext<'_>,
    pod: &Pod,
    spec: &Container,
    ips: &[String],
    restart_count: u32,
) -> Result<ContainerHostPaths, FileError> {
    let hosts = hosts::is_ours(pod, spec, ips).then(|| {
        let name = cri_spec::hostname(pod, &node.settings.dns.domain);
        hosts::content(pod, &name, ips, &node.name_files.hosts)
    });
    let files = &context.node.seams.pod_files;
    let made = files.make_container_files(pod, &spec.name, restart_count, hosts).await?;
    let paths = PodPaths::new(node.root.as_ref(), &pod.uid());
    let claimed = context.objects.claimed();
    let claimed = claimed.iter().map(|(name, volume)| (name.clone(), volume.path(&paths)));
    Ok(ContainerHostPaths {
        termination_log: Some(made.termination_message),
        hosts: made.hosts,
        volumes: paths.known_volumes(pod).into_iter().chain(claimed).collect(),
        ..ContainerHostPaths::default()
    })
}

/// What was decided about the pod beside its spec. The ids of its user namespace are on disk then.
async fn grants(context: &PodContext, pod: &Pod) -> Result<PodGrants, GenerateConfigError> {
    let class = runtime_class(pod);
    let known = context.objects.known();
    let runtime_handler = class.and_then(|class| known.runtime_classes.get(class).cloned());
    let claimed = context.objects.claimed();
    let volume_groups = claimed.values().filter_map(|volume| volume.group()).collect();
    let user_namespace = user_namespace(context, pod, runtime_handler.as_deref()).await?;
    Ok(PodGrants { user_namespace, volume_groups, runtime_handler })
}

/// A pod that has a sandbox keeps its user namespace, whatever the runtime says of itself by now.
async fn user_namespace(
    context: &PodContext,
    pod: &Pod,
    handler: Option<&str>,
) -> Result<Option<UserNamespace>, GenerateConfigError> {
    if pod.spec().and_then(|spec| spec.host_users) != Some(false) {
        return Ok(None);
    }
    let handler = handler.unwrap_or_default();
    let has_sandbox = context.reader.with(|view, _| view.sandboxes.iter().any(|it| it.ready));
    if !has_sandbox && !supports_user_namespaces(context, handler).await? {
        return Err(UserNamespaceError::NotSupported { handler: handler.to_owned() }.into());
    }
    let ids = context.node.user_namespaces.get_or_create(&context.uid).await?;
    Ok(Some(ids.user_namespace()))
}

/// As the runtime said last; it is asked if it has said nothing yet.
async fn supports_user_namespaces(
    context: &PodContext,
    handler: &str,
) -> Result<bool, RuntimeUnknown> {
    let health = &context.node.runtime_health;
    let known = match health.get() {
        known if known.last_good.is_some() => known,
        _ => health.query(&context.node, false).await?,
    };
    Ok(known.has_user_namespaces(handler))
}

fn sandbox_attempt_and_ips(context: &PodContext, id: &SandboxId) -> (u32, Vec<String>) {
    context.reader.with(|view, _| {
        let seen = view.sandboxes.iter().find(|sandbox| sandbox.id == *id);
        seen.map(|seen| (seen.attempt, seen.ips.clone())).unwrap_or_default()
    })
}

/// The container whose processes the one of that name should see.
fn target(context: &PodContext, pod: &Pod, name: &str) -> Result<Option<ContainerId>, ConfigError> {
    let wanted = pod.container(name);
    let target = wanted.and_then(|wanted| wanted.target).filter(|target| !target.is_empty());
    let Some(target) = target else { return Ok(None) };
    context.reader.with(|view, _| cri_spec::target_container_id(view, target)).map(Some)
}
