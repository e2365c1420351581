//! Makes the calls of a kubelet for a pod to the runtime, without a kubelet.

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::Result;
use oarsman_cri::{RemoteRuntime, Runtime};
use oarsman_cri_types::v1::{
    ContainerConfig, ContainerMetadata, CreateContainerRequest, ImageSpec, KeyValue,
    LinuxPodSandboxConfig, Mount, PodSandboxConfig, PodSandboxMetadata, RunPodSandboxRequest,
};
use oarsman_rig::{Rig, images};

use super::api::NAMESPACE;
use super::pods::Shape;

/// The default grace period of a pod.
const GRACE: Duration = Duration::from_secs(30);
/// The mounts of a pod with volumes, the token included.
const MOUNTS: [&str; 4] = ["config", "secret", "empty", "token"];

/// The variable of all containers that tells them from the processes of a runtime.
pub(super) const WORKLOAD: &str = "OARSMAN_BENCH=workload";

/// A runtime without a kubelet.
#[derive(Clone)]
pub(super) struct Floor {
    runtime: RemoteRuntime,
    cgroup_parent: String,
    logs: PathBuf,
    volumes: PathBuf,
}

/// A pod that runs.
#[derive(Debug)]
pub(super) struct StartedPod {
    sandbox: String,
    container: String,
}

impl Floor {
    /// On that rig's containerd.
    pub(super) fn on(rig: &Rig) -> Result<Self> {
        Self::of_client(rig, rig.client()?)
    }

    /// On a runtime beside the rig's. Directories that are mounted exist already: making them is a kubelet's work.
    pub(super) fn of_client(rig: &Rig, runtime: RemoteRuntime) -> Result<Self> {
        let volumes = rig.directory().join("floor-volumes");
        for name in MOUNTS {
            fs::create_dir_all(volumes.join(name))?;
        }
        Ok(Self { runtime, cgroup_parent: rig.cgroup_parent(), logs: rig.pod_logs(), volumes })
    }

    pub(super) async fn start(&self, name: &str, shape: Shape) -> Result<StartedPod> {
        let config = self.sandbox(name);
        let image = ImageSpec { image: images::PAUSE.to_owned(), ..ImageSpec::default() };
        let request = RunPodSandboxRequest { config: Some(config.clone()), ..Default::default() };
        let sandbox = self.runtime.run_pod_sandbox(request).await?;
        self.runtime.image_status(image.clone()).await?;
        let request = CreateContainerRequest {
            pod_sandbox_id: sandbox.clone(),
            config: Some(self.container(image, shape)),
            sandbox_config: Some(config),
        };
        let container = self.runtime.create_container(request).await?;
        self.runtime.start_container(&container).await?;
        self.runtime.container_status(&container).await?;
        Ok(StartedPod { sandbox, container })
    }

    pub(super) async fn stop(&self, pod: &StartedPod) -> Result<()> {
        self.runtime.stop_container(&pod.container, GRACE).await?;
        Ok(self.runtime.stop_pod_sandbox(&pod.sandbox).await?)
    }

    /// A kubelet does this after the pod is gone from the API server.
    pub(super) async fn remove(&self, pod: &StartedPod) -> Result<()> {
        self.runtime.remove_container(&pod.container).await?;
        Ok(self.runtime.remove_pod_sandbox(&pod.sandbox).await?)
    }

    fn sandbox(&self, name: &str) -> PodSandboxConfig {
        PodSandboxConfig {
            metadata: Some(PodSandboxMetadata {
                name: name.to_owned(),
                uid: name.to_owned(),
                namespace: NAMESPACE.to_owned(),
                attempt: 0,
            }),
            hostname: name.to_owned(),
            log_directory: self.logs.join(name).display().to_string(),
            linux: Some(LinuxPodSandboxConfig {
                cgroup_parent: format!("{}/{name}", self.cgroup_parent),
                ..LinuxPodSandboxConfig::default()
            }),
            ..PodSandboxConfig::default()
        }
    }

    fn container(&self, image: ImageSpec, shape: Shape) -> ContainerConfig {
        let mount = |name: &&str| Mount {
            container_path: format!("/{name}"),
            host_path: self.volumes.join(name).display().to_string(),
            ..Mount::default()
        };
        let variable = |(key, value): (&str, &str)| KeyValue {
            key: key.to_owned(),
            value: value.as_bytes().to_vec(),
        };
        let mounts = match shape {
            Shape::Plain | Shape::Probed => Vec::new(),
            Shape::Volumes => MOUNTS.iter().map(mount).collect(),
        };
        ContainerConfig {
            metadata: Some(ContainerMetadata { name: "main".to_owned(), attempt: 0 }),
            image: Some(image),
            log_path: "main.log".to_owned(),
            mounts,
            envs: WORKLOAD.split_once('=').map(variable).into_iter().collect(),
            ..ContainerConfig::default()
        }
    }
}
