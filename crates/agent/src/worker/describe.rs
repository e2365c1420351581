//! Describing a pod's sandbox and containers to the runtime: what `core` makes of the pod, the node and the disk.

use k8s_openapi::api::core::v1::{Container, Pod};
use oarsman_core::config::{
    self, ConfigError, Furnishing, PodGrants, PodPaths, Request, Sandbox, hosts,
};
use oarsman_core::ids::{ContainerId, SandboxId};
use oarsman_core::pod::PodExt;
use oarsman_core::references::runtime_class;
use oarsman_core::view::SandboxView;
use oarsman_cri_types::v1::CreateContainerRequest;
use oarsman_state::FileError;

use super::image::Present;
use super::room::Room;

/// Why a container could not be described.
#[derive(Debug, thiserror::Error)]
pub(super) enum DescribeError {
    #[error(transparent)]
    Config(#[from] ConfigError),
    #[error(transparent)]
    Files(#[from] FileError),
}

/// What the pod's sandbox is made with.
pub(super) fn sandbox(room: &Room, pod: &Pod, attempt: u32) -> Result<Sandbox, ConfigError> {
    config::sandbox(pod, attempt, &room.grants(pod), &room.node.config.place())
}

/// What a container is made with in that sandbox; what it needs on the disk is made.
pub(super) async fn container(
    room: &Room,
    pod: &Pod,
    sandbox: &SandboxId,
    spec: &Container,
    image: &Present,
    restart_count: u32,
) -> Result<CreateContainerRequest, DescribeError> {
    let seen = room.sandbox_view(sandbox);
    let (attempt, ips) = seen.map(|seen| (seen.attempt, seen.ips)).unwrap_or_default();
    let target = room.target(pod, &spec.name)?;
    let furnishing = furnish(room, pod, spec, &ips, restart_count).await?;
    let request = Request {
        pod,
        spec,
        restart_count,
        image: &image.id,
        image_user: &image.user,
        ips: &ips,
        target: target.as_ref(),
        furnishing: &furnishing,
        lookup: &room.known_objects(),
        grants: &room.grants(pod),
        place: &room.node.config.place(),
    };
    Ok(CreateContainerRequest {
        pod_sandbox_id: sandbox.to_string(),
        config: Some(config::container(&request)?),
        sandbox_config: Some(around(room, pod, attempt)?.config),
    })
}

/// What the sandbox around a container was made with. Its runtime class may be gone by now, which changes nothing for it.
fn around(room: &Room, pod: &Pod, attempt: u32) -> Result<Sandbox, ConfigError> {
    let grants = room.grants(pod);
    let runtime_handler = grants.runtime_handler.or_else(|| Some(String::new()));
    let grants = PodGrants { runtime_handler, ..grants };
    config::sandbox(pod, attempt, &grants, &room.node.config.place())
}

async fn furnish(
    room: &Room,
    pod: &Pod,
    spec: &Container,
    ips: &[String],
    restart_count: u32,
) -> Result<Furnishing, FileError> {
    let place = room.node.config.place();
    let hosts = hosts::is_ours(pod, spec, ips).then(|| {
        let name = config::hostname(pod, &place.settings.dns.domain);
        hosts::content(pod, &name, ips, &place.settings.hosts)
    });
    let files = &room.node.seams.pod_files;
    let made = files.make_container_files(pod, &spec.name, restart_count, hosts).await?;
    Ok(Furnishing {
        termination_log: Some(made.termination_message),
        hosts: made.hosts,
        volumes: PodPaths::new(place.root.as_ref(), &pod.uid()).known_volumes(pod),
        ..Furnishing::default()
    })
}

impl Room {
    fn grants(&self, pod: &Pod) -> PodGrants {
        let class = runtime_class(pod);
        let known = self.known_objects();
        let runtime_handler = class.and_then(|class| known.runtime_classes.get(class).cloned());
        PodGrants { runtime_handler, ..PodGrants::default() }
    }

    fn sandbox_view(&self, id: &SandboxId) -> Option<SandboxView> {
        self.memory().view.sandboxes.iter().find(|sandbox| sandbox.id == *id).cloned()
    }

    /// The container whose processes the one of that name should see.
    fn target(&self, pod: &Pod, name: &str) -> Result<Option<ContainerId>, ConfigError> {
        let wanted = pod.container(name);
        let target = wanted.and_then(|wanted| wanted.target).filter(|target| !target.is_empty());
        target.map(|target| config::target(&self.memory().view, target)).transpose()
    }
}
