//! A runtime that records its calls, and answers, fails, or hangs as configured.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::time::Duration;

use async_trait::async_trait;
use futures::{StreamExt, stream};
use oarsman_cri::{
    CriError, ErrorCode, EventStream, InfoTarget, Result, Runtime, StreamingEndpoint,
};
use oarsman_cri_types::v1 as cri;
use tokio::sync::Semaphore;

use crate::large_lists as large;

/// What the recorder does after it has recorded a call.
pub(crate) enum RecorderMode {
    Answer,
    /// Lists of everything are larger than a message may be.
    AnswerLarge,
    Fail(ErrorCode),
    Hang,
}

pub(crate) struct RecordingRuntime {
    mode: RecorderMode,
    log: Mutex<Vec<String>>,
    /// One permit for each call that began.
    pub(crate) begun: Semaphore,
    /// One permit for each call that was dropped while it hung.
    pub(crate) dropped: Semaphore,
}

impl RecordingRuntime {
    pub(crate) fn new(mode: RecorderMode) -> Self {
        Self { mode, log: Mutex::default(), begun: Semaphore::new(0), dropped: Semaphore::new(0) }
    }

    pub(crate) fn log(&self) -> Vec<String> {
        self.log.lock().unwrap().clone()
    }

    async fn record(&self, call: &'static str, asked: impl std::fmt::Debug) -> Result<()> {
        self.log.lock().unwrap().push(format!("{call} {asked:?}"));
        self.begun.add_permits(1);
        match self.mode {
            RecorderMode::Answer | RecorderMode::AnswerLarge => Ok(()),
            RecorderMode::Fail(code) => Err(CriError::new(call, code, "as told")),
            RecorderMode::Hang => {
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
impl Runtime for RecordingRuntime {
    async fn version(&self) -> Result<cri::VersionResponse> {
        self.record("Version", ()).await?;
        Ok(cri::VersionResponse { runtime_name: text("recorder"), ..Default::default() })
    }

    async fn status(&self) -> Result<cri::StatusResponse> {
        self.record("Status", ()).await?;
        Ok(cri::StatusResponse {
            features: Some(cri::RuntimeFeatures {
                supplemental_groups_policy: true,
                ..Default::default()
            }),
            ..Default::default()
        })
    }

    async fn runtime_config(&self) -> Result<cri::RuntimeConfigResponse> {
        self.record("RuntimeConfig", ()).await?;
        let linux =
            cri::LinuxRuntimeConfiguration { cgroup_driver: cri::CgroupDriver::Cgroupfs.into() };
        Ok(cri::RuntimeConfigResponse { linux: Some(linux) })
    }

    async fn update_runtime_config(&self, config: cri::RuntimeConfig) -> Result<()> {
        self.record("UpdateRuntimeConfig", config).await
    }

    async fn info(&self, about: InfoTarget<'_>) -> Result<BTreeMap<String, String>> {
        self.record("info", about).await?;
        Ok([(text("about"), format!("{about:?}"))].into())
    }

    async fn run_pod_sandbox(&self, request: cri::RunPodSandboxRequest) -> Result<String> {
        self.record("RunPodSandbox", request).await?;
        Ok(text("new-sandbox"))
    }

    async fn stop_pod_sandbox(&self, id: &str) -> Result<()> {
        self.record("StopPodSandbox", id).await
    }

    async fn remove_pod_sandbox(&self, id: &str) -> Result<()> {
        self.record("RemovePodSandbox", id).await
    }

    async fn pod_sandbox_status(&self, id: &str) -> Result<cri::PodSandboxStatus> {
        self.record("PodSandboxStatus", id).await?;
        Ok(cri::PodSandboxStatus { id: text(id), ..Default::default() })
    }

    async fn list_pod_sandboxes(
        &self,
        filter: Option<cri::PodSandboxFilter>,
    ) -> Result<Vec<cri::PodSandbox>> {
        self.record("ListPodSandbox", &filter).await?;
        if matches!(self.mode, RecorderMode::AnswerLarge) {
            return Ok(large::sandboxes(filter.as_ref()));
        }
        Ok(vec![cri::PodSandbox { id: text("s1"), ..Default::default() }])
    }

    async fn update_pod_sandbox_resources(
        &self,
        request: cri::UpdatePodSandboxResourcesRequest,
    ) -> Result<()> {
        self.record("UpdatePodSandboxResources", request).await
    }

    async fn create_container(&self, request: cri::CreateContainerRequest) -> Result<String> {
        self.record("CreateContainer", request).await?;
        Ok(text("new-container"))
    }

    async fn start_container(&self, id: &str) -> Result<()> {
        self.record("StartContainer", id).await
    }

    async fn stop_container(&self, id: &str, grace: Duration) -> Result<()> {
        self.record("StopContainer", (id, grace)).await
    }

    async fn remove_container(&self, id: &str) -> Result<()> {
        self.record("RemoveContainer", id).await
    }

    async fn list_containers(
        &self,
        filter: Option<cri::ContainerFilter>,
    ) -> Result<Vec<cri::Container>> {
        self.record("ListContainers", &filter).await?;
        if matches!(self.mode, RecorderMode::AnswerLarge) {
            return Ok(large::containers(filter.as_ref()));
        }
        Ok(vec![cri::Container {
            id: text("c1"),
            labels: [(text("app"), text("web"))].into(),
            ..Default::default()
        }])
    }

    async fn container_status(&self, id: &str) -> Result<cri::ContainerStatus> {
        self.record("ContainerStatus", id).await?;
        Ok(cri::ContainerStatus { id: text(id), exit_code: 7, ..Default::default() })
    }

    async fn update_container_resources(
        &self,
        request: cri::UpdateContainerResourcesRequest,
    ) -> Result<()> {
        self.record("UpdateContainerResources", request).await
    }

    async fn reopen_container_log(&self, id: &str) -> Result<()> {
        self.record("ReopenContainerLog", id).await
    }

    async fn checkpoint_container(&self, request: cri::CheckpointContainerRequest) -> Result<()> {
        self.record("CheckpointContainer", request).await
    }

    async fn exec_sync(&self, request: cri::ExecSyncRequest) -> Result<cri::ExecSyncResponse> {
        self.record("ExecSync", request).await?;
        Ok(cri::ExecSyncResponse { stdout: vec![0, 255], stderr: vec![1], exit_code: 3 })
    }

    async fn exec(&self, request: cri::ExecRequest) -> Result<StreamingEndpoint> {
        self.record("Exec", request).await?;
        Ok(StreamingEndpoint::Url(text("http://exec")))
    }

    async fn attach(&self, request: cri::AttachRequest) -> Result<StreamingEndpoint> {
        self.record("Attach", request).await?;
        Ok(StreamingEndpoint::Url(text("http://attach")))
    }

    async fn port_forward(&self, request: cri::PortForwardRequest) -> Result<StreamingEndpoint> {
        self.record("PortForward", request).await?;
        Ok(StreamingEndpoint::Url(text("http://port-forward")))
    }

    /// Two events, then silence.
    async fn container_events(&self) -> Result<EventStream> {
        self.record("GetContainerEvents", ()).await?;
        let event =
            |id: &str| cri::ContainerEventResponse { container_id: text(id), ..Default::default() };
        let events = stream::iter([Ok(event("c1")), Ok(event("c2"))]);
        Ok(events.chain(stream::pending()).boxed())
    }

    async fn container_stats(&self, id: &str) -> Result<cri::ContainerStats> {
        self.record("ContainerStats", id).await?;
        Ok(cri::ContainerStats { cpu: Some(cri::CpuUsage::default()), ..Default::default() })
    }

    async fn list_container_stats(
        &self,
        filter: Option<cri::ContainerStatsFilter>,
    ) -> Result<Vec<cri::ContainerStats>> {
        self.record("ListContainerStats", filter).await?;
        Ok(vec![cri::ContainerStats::default(); 2])
    }

    async fn pod_sandbox_stats(&self, id: &str) -> Result<cri::PodSandboxStats> {
        self.record("PodSandboxStats", id).await?;
        Ok(cri::PodSandboxStats {
            linux: Some(cri::LinuxPodSandboxStats::default()),
            ..Default::default()
        })
    }

    async fn list_pod_sandbox_stats(
        &self,
        filter: Option<cri::PodSandboxStatsFilter>,
    ) -> Result<Vec<cri::PodSandboxStats>> {
        self.record("ListPodSandboxStats", filter).await?;
        Ok(vec![cri::PodSandboxStats::default(); 3])
    }

    async fn list_metric_descriptors(&self) -> Result<Vec<cri::MetricDescriptor>> {
        self.record("ListMetricDescriptors", ()).await?;
        Ok(vec![cri::MetricDescriptor::default(); 4])
    }

    async fn list_pod_sandbox_metrics(&self) -> Result<Vec<cri::PodSandboxMetrics>> {
        self.record("ListPodSandboxMetrics", ()).await?;
        Ok(vec![cri::PodSandboxMetrics::default(); 5])
    }

    async fn list_images(&self, filter: Option<cri::ImageFilter>) -> Result<Vec<cri::Image>> {
        self.record("ListImages", filter).await?;
        Ok(vec![cri::Image::default(); 6])
    }

    async fn image_status(&self, image: cri::ImageSpec) -> Result<Option<cri::Image>> {
        let known = image.image != "absent";
        self.record("ImageStatus", image).await?;
        Ok(known.then(|| cri::Image { id: text("sha256:1"), ..Default::default() }))
    }

    async fn pull_image(&self, request: cri::PullImageRequest) -> Result<String> {
        self.record("PullImage", request).await?;
        Ok(text("sha256:2"))
    }

    async fn remove_image(&self, image: cri::ImageSpec) -> Result<()> {
        self.record("RemoveImage", image).await
    }

    async fn image_fs_info(&self) -> Result<cri::ImageFsInfoResponse> {
        self.record("ImageFsInfo", ()).await?;
        Ok(cri::ImageFsInfoResponse {
            image_filesystems: vec![cri::FilesystemUsage::default()],
            ..Default::default()
        })
    }
}
