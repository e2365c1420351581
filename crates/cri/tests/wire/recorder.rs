//! A runtime that writes down what it is asked, and answers, fails, or hangs as it is told.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::time::Duration;

use async_trait::async_trait;
use futures::{StreamExt, stream};
use oarsman_cri::{Code, CriError, EventStream, Result, Runtime, Streaming, Subject};
use oarsman_cri_types::v1 as cri;
use tokio::sync::Semaphore;

/// What the recorder does once it has written a call down.
pub(crate) enum Mode {
    Answer,
    Fail(Code),
    Hang,
}

pub(crate) struct Recorder {
    mode: Mode,
    log: Mutex<Vec<String>>,
    /// One permit for each call that began.
    pub(crate) begun: Semaphore,
    /// One permit for each call that was dropped while it hung.
    pub(crate) dropped: Semaphore,
}

impl Recorder {
    pub(crate) fn new(mode: Mode) -> Self {
        Self { mode, log: Mutex::default(), begun: Semaphore::new(0), dropped: Semaphore::new(0) }
    }

    pub(crate) fn log(&self) -> Vec<String> {
        self.log.lock().unwrap().clone()
    }

    async fn note(&self, call: &'static str, asked: impl std::fmt::Debug) -> Result<()> {
        self.log.lock().unwrap().push(format!("{call} {asked:?}"));
        self.begun.add_permits(1);
        match self.mode {
            Mode::Answer => Ok(()),
            Mode::Fail(code) => Err(CriError::new(call, code, "as told")),
            Mode::Hang => {
                let _guard = CountDrop(&self.dropped);
                std::future::pending().await
            }
        }
    }
}

struct CountDrop<'a>(&'a Semaphore);

impl Drop for CountDrop<'_> {
    fn drop(&mut self) {
        self.0.add_permits(1);
    }
}

fn text(text: &str) -> String {
    text.to_owned()
}

#[async_trait]
impl Runtime for Recorder {
    async fn version(&self) -> Result<cri::VersionResponse> {
        self.note("Version", ()).await?;
        Ok(cri::VersionResponse { runtime_name: text("recorder"), ..Default::default() })
    }

    async fn status(&self) -> Result<cri::StatusResponse> {
        self.note("Status", ()).await?;
        Ok(cri::StatusResponse {
            features: Some(cri::RuntimeFeatures {
                supplemental_groups_policy: true,
                ..Default::default()
            }),
            ..Default::default()
        })
    }

    async fn runtime_config(&self) -> Result<cri::RuntimeConfigResponse> {
        self.note("RuntimeConfig", ()).await?;
        let linux =
            cri::LinuxRuntimeConfiguration { cgroup_driver: cri::CgroupDriver::Cgroupfs.into() };
        Ok(cri::RuntimeConfigResponse { linux: Some(linux) })
    }

    async fn update_runtime_config(&self, config: cri::RuntimeConfig) -> Result<()> {
        self.note("UpdateRuntimeConfig", config).await
    }

    async fn info(&self, about: Subject<'_>) -> Result<BTreeMap<String, String>> {
        self.note("info", about).await?;
        Ok([(text("about"), format!("{about:?}"))].into())
    }

    async fn run_pod_sandbox(&self, request: cri::RunPodSandboxRequest) -> Result<String> {
        self.note("RunPodSandbox", request).await?;
        Ok(text("new-sandbox"))
    }

    async fn stop_pod_sandbox(&self, id: &str) -> Result<()> {
        self.note("StopPodSandbox", id).await
    }

    async fn remove_pod_sandbox(&self, id: &str) -> Result<()> {
        self.note("RemovePodSandbox", id).await
    }

    async fn pod_sandbox_status(&self, id: &str) -> Result<cri::PodSandboxStatus> {
        self.note("PodSandboxStatus", id).await?;
        Ok(cri::PodSandboxStatus { id: text(id), ..Default::default() })
    }

    async fn list_pod_sandboxes(
        &self,
        filter: Option<cri::PodSandboxFilter>,
    ) -> Result<Vec<cri::PodSandbox>> {
        self.note("ListPodSandbox", filter).await?;
        Ok(vec![cri::PodSandbox { id: text("s1"), ..Default::default() }])
    }

    async fn update_pod_sandbox_resources(
        &self,
        request: cri::UpdatePodSandboxResourcesRequest,
    ) -> Result<()> {
        self.note("UpdatePodSandboxResources", request).await
    }

    async fn create_container(&self, request: cri::CreateContainerRequest) -> Result<String> {
        self.note("CreateContainer", request).await?;
        Ok(text("new-container"))
    }

    async fn start_container(&self, id: &str) -> Result<()> {
        self.note("StartContainer", id).await
    }

    async fn stop_container(&self, id: &str, grace: Duration) -> Result<()> {
        self.note("StopContainer", (id, grace)).await
    }

    async fn remove_container(&self, id: &str) -> Result<()> {
        self.note("RemoveContainer", id).await
    }

    async fn list_containers(
        &self,
        filter: Option<cri::ContainerFilter>,
    ) -> Result<Vec<cri::Container>> {
        self.note("ListContainers", filter).await?;
        Ok(vec![cri::Container {
            id: text("c1"),
            labels: [(text("app"), text("web"))].into(),
            ..Default::default()
        }])
    }

    async fn container_status(&self, id: &str) -> Result<cri::ContainerStatus> {
        self.note("ContainerStatus", id).await?;
        Ok(cri::ContainerStatus { id: text(id), exit_code: 7, ..Default::default() })
    }

    async fn update_container_resources(
        &self,
        request: cri::UpdateContainerResourcesRequest,
    ) -> Result<()> {
        self.note("UpdateContainerResources", request).await
    }

    async fn reopen_container_log(&self, id: &str) -> Result<()> {
        self.note("ReopenContainerLog", id).await
    }

    async fn checkpoint_container(&self, request: cri::CheckpointContainerRequest) -> Result<()> {
        self.note("CheckpointContainer", request).await
    }

    async fn exec_sync(&self, request: cri::ExecSyncRequest) -> Result<cri::ExecSyncResponse> {
        self.note("ExecSync", request).await?;
        Ok(cri::ExecSyncResponse { stdout: vec![0, 255], stderr: vec![1], exit_code: 3 })
    }

    async fn exec(&self, request: cri::ExecRequest) -> Result<Streaming> {
        self.note("Exec", request).await?;
        Ok(Streaming::Url(text("http://exec")))
    }

    async fn attach(&self, request: cri::AttachRequest) -> Result<Streaming> {
        self.note("Attach", request).await?;
        Ok(Streaming::Url(text("http://attach")))
    }

    async fn port_forward(&self, request: cri::PortForwardRequest) -> Result<Streaming> {
        self.note("PortForward", request).await?;
        Ok(Streaming::Url(text("http://port-forward")))
    }

    /// Two events, then silence.
    async fn container_events(&self) -> Result<EventStream> {
        self.note("GetContainerEvents", ()).await?;
        let event =
            |id: &str| cri::ContainerEventResponse { container_id: text(id), ..Default::default() };
        let events = stream::iter([Ok(event("c1")), Ok(event("c2"))]);
        Ok(events.chain(stream::pending()).boxed())
    }

    async fn container_stats(&self, id: &str) -> Result<cri::ContainerStats> {
        self.note("ContainerStats", id).await?;
        Ok(cri::ContainerStats { cpu: Some(cri::CpuUsage::default()), ..Default::default() })
    }

    async fn list_container_stats(
        &self,
        filter: Option<cri::ContainerStatsFilter>,
    ) -> Result<Vec<cri::ContainerStats>> {
        self.note("ListContainerStats", filter).await?;
        Ok(vec![cri::ContainerStats::default(); 2])
    }

    async fn pod_sandbox_stats(&self, id: &str) -> Result<cri::PodSandboxStats> {
        self.note("PodSandboxStats", id).await?;
        Ok(cri::PodSandboxStats {
            linux: Some(cri::LinuxPodSandboxStats::default()),
            ..Default::default()
        })
    }

    async fn list_pod_sandbox_stats(
        &self,
        filter: Option<cri::PodSandboxStatsFilter>,
    ) -> Result<Vec<cri::PodSandboxStats>> {
        self.note("ListPodSandboxStats", filter).await?;
        Ok(vec![cri::PodSandboxStats::default(); 3])
    }

    async fn list_metric_descriptors(&self) -> Result<Vec<cri::MetricDescriptor>> {
        self.note("ListMetricDescriptors", ()).await?;
        Ok(vec![cri::MetricDescriptor::default(); 4])
    }

    async fn list_pod_sandbox_metrics(&self) -> Result<Vec<cri::PodSandboxMetrics>> {
        self.note("ListPodSandboxMetrics", ()).await?;
        Ok(vec![cri::PodSandboxMetrics::default(); 5])
    }

    async fn list_images(&self, filter: Option<cri::ImageFilter>) -> Result<Vec<cri::Image>> {
        self.note("ListImages", filter).await?;
        Ok(vec![cri::Image::default(); 6])
    }

    async fn image_status(&self, image: cri::ImageSpec) -> Result<Option<cri::Image>> {
        let known = image.image != "absent";
        self.note("ImageStatus", image).await?;
        Ok(known.then(|| cri::Image { id: text("sha256:1"), ..Default::default() }))
    }

    async fn pull_image(&self, request: cri::PullImageRequest) -> Result<String> {
        self.note("PullImage", request).await?;
        Ok(text("sha256:2"))
    }

    async fn remove_image(&self, image: cri::ImageSpec) -> Result<()> {
        self.note("RemoveImage", image).await
    }

    async fn image_fs_info(&self) -> Result<cri::ImageFsInfoResponse> {
        self.note("ImageFsInfo", ()).await?;
        Ok(cri::ImageFsInfoResponse {
            image_filesystems: vec![cri::FilesystemUsage::default()],
            ..Default::default()
        })
    }
}
