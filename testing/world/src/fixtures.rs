//! Helpers of this crate's tests: pods of one container.

use std::time::Duration;

use oarsman_cri::{Result, Runtime};
use oarsman_cri_types::v1::{
    ContainerConfig, ContainerMetadata, ContainerState, CreateContainerRequest, ImageSpec,
    PodSandboxConfig, PodSandboxMetadata, RunPodSandboxRequest,
};

use crate::runtime::ImageSource;
use crate::{World, faults::FaultPlan};

pub(crate) const SECOND: Duration = Duration::from_secs(1);
/// After this long an ordinary call times out.
pub(crate) const DEADLINE: Duration = Duration::from_secs(120);
pub(crate) const IMAGE: &str = "registry.world/script:1";

/// A world with the script image on the node.
pub(crate) fn world(seed: u64, plan: FaultPlan) -> World {
    let world = World::new(seed, plan);
    world.runtime.preload(ImageSource::script(IMAGE));
    world
}

pub(crate) fn sandbox(pod: &str, attempt: u32) -> RunPodSandboxRequest {
    let metadata = PodSandboxMetadata {
        name: pod.to_owned(),
        uid: format!("uid-{pod}"),
        namespace: "default".to_owned(),
        attempt,
    };
    let config = PodSandboxConfig {
        metadata: Some(metadata),
        log_directory: format!("/logs/{pod}"),
        ..PodSandboxConfig::default()
    };
    RunPodSandboxRequest { config: Some(config), ..RunPodSandboxRequest::default() }
}

pub(crate) fn container(sandbox: &str, attempt: u32, script: &[&str]) -> CreateContainerRequest {
    let config = ContainerConfig {
        metadata: Some(ContainerMetadata { name: "main".to_owned(), attempt }),
        image: Some(ImageSpec { image: IMAGE.to_owned(), ..ImageSpec::default() }),
        args: script.iter().map(|&step| step.to_owned()).collect(),
        log_path: "main.log".to_owned(),
        ..ContainerConfig::default()
    };
    CreateContainerRequest {
        pod_sandbox_id: sandbox.to_owned(),
        config: Some(config),
        sandbox_config: None,
    }
}

/// Makes a pod and starts its container; returns the ids of both.
pub(crate) async fn run(
    runtime: &dyn Runtime,
    pod: &str,
    script: &[&str],
) -> Result<(String, String)> {
    let sandbox = runtime.run_pod_sandbox(sandbox(pod, 0)).await?;
    let id = runtime.create_container(container(&sandbox, 0, script)).await?;
    runtime.start_container(&id).await?;
    Ok((sandbox, id))
}

pub(crate) async fn state(runtime: &dyn Runtime, id: &str) -> ContainerState {
    runtime.container_status(id).await.unwrap().state()
}
