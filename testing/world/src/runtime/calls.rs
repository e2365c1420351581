//! The calls of the Runtime trait, on the fake runtime.

use std::time::Duration;

use async_trait::async_trait;
use futures::StreamExt;
use oarsman_cri::{EventStream, Result, Runtime, StreamingEndpoint};
use oarsman_cri_types::v1::{
    AttachRequest, CgroupDriver, Container, ContainerFilter, ContainerStats, ContainerStatsFilter,
    ContainerStatus, CreateContainerRequest, ExecRequest, ExecSyncRequest, ExecSyncResponse, Image,
    ImageFilter, ImageFsInfoResponse, ImageSpec, LinuxRuntimeConfiguration, PodSandbox,
    PodSandboxFilter, PodSandboxStats, PodSandboxStatsFilter, PodSandboxStatus, PortForwardRequest,
    PullImageRequest, RunPodSandboxRequest, RuntimeCondition, RuntimeConfig, RuntimeConfigResponse,
    RuntimeHandler, RuntimeHandlerFeatures, RuntimeStatus, StatusResponse,
    UpdateContainerResourcesRequest, UpdatePodSandboxResourcesRequest, VersionResponse,
};
use tokio_stream::wrappers::ReceiverStream;

use super::FakeRuntime;
use super::images::StoredImage;
use super::sandboxes::{HANDLER, NO_NETWORK};

impl FakeRuntime {
    /// Events from now on, after recent ones: all of them, or those that no subscriber has received.
    pub(super) fn subscribe(&self, replay: bool) -> Result<EventStream> {
        let events = self.serve("GetContainerEvents")?.events.listen(replay);
        Ok(ReceiverStream::new(events).map(Ok).boxed())
    }
}

#[async_trait]
impl Runtime for FakeRuntime {
    async fn version(&self) -> Result<VersionResponse> {
        drop(self.serve("Version")?);
        Ok(VersionResponse {
            version: "0.1.0".to_owned(),
            runtime_name: "fake".to_owned(),
            runtime_version: env!("CARGO_PKG_VERSION").to_owned(),
            runtime_api_version: "v1".to_owned(),
        })
    }

    async fn status(&self) -> Result<StatusResponse> {
        let has_network = self.serve("Status")?.has_network();
        let condition = |name: &str, status: bool| RuntimeCondition {
            r#type: name.to_owned(),
            status,
            reason: if status { "" } else { "NetworkPluginNotReady" }.to_owned(),
            message: if status { "" } else { NO_NETWORK }.to_owned(),
        };
        let conditions =
            vec![condition("RuntimeReady", true), condition("NetworkReady", has_network)];
        // Only sandboxes of the runtime class have user namespaces.
        let handler = |name: &str| {
            let user_namespaces = name == HANDLER;
            let features = RuntimeHandlerFeatures { user_namespaces, ..Default::default() };
            RuntimeHandler { name: name.to_owned(), features: Some(features) }
        };
        Ok(StatusResponse {
            status: Some(RuntimeStatus { conditions }),
            runtime_handlers: ["", HANDLER].map(handler).to_vec(),
            ..StatusResponse::default()
        })
    }

    async fn runtime_config(&self) -> Result<RuntimeConfigResponse> {
        drop(self.serve("RuntimeConfig")?);
        let cgroup_driver = CgroupDriver::Cgroupfs.into();
        Ok(RuntimeConfigResponse { linux: Some(LinuxRuntimeConfiguration { cgroup_driver }) })
    }

    async fn update_runtime_config(&self, _config: RuntimeConfig) -> Result<()> {
        self.serve("UpdateRuntimeConfig").map(drop)
    }

    async fn run_pod_sandbox(&self, request: RunPodSandboxRequest) -> Result<String> {
        self.serve("RunPodSandbox")?.run_sandbox(request)
    }

    async fn stop_pod_sandbox(&self, id: &str) -> Result<()> {
        self.serve("StopPodSandbox")?.stop_sandbox(id);
        Ok(())
    }

    async fn remove_pod_sandbox(&self, id: &str) -> Result<()> {
        self.serve("RemovePodSandbox")?.remove_sandbox(id);
        Ok(())
    }

    async fn pod_sandbox_status(&self, id: &str) -> Result<PodSandboxStatus> {
        const CALL: &str = "PodSandboxStatus";
        Ok(self.serve(CALL)?.sandbox(CALL, id)?.status())
    }

    async fn list_pod_sandboxes(
        &self,
        filter: Option<PodSandboxFilter>,
    ) -> Result<Vec<PodSandbox>> {
        Ok(self.serve("ListPodSandbox")?.list_sandboxes(&filter.unwrap_or_default()))
    }

    async fn update_pod_sandbox_resources(
        &self,
        request: UpdatePodSandboxResourcesRequest,
    ) -> Result<()> {
        const CALL: &str = "UpdatePodSandboxResources";
        self.serve(CALL)?.sandbox(CALL, &request.pod_sandbox_id).map(drop)
    }

    async fn create_container(&self, request: CreateContainerRequest) -> Result<String> {
        self.serve("CreateContainer")?.create_container(request)
    }

    async fn start_container(&self, id: &str) -> Result<()> {
        self.start(id)
    }

    async fn stop_container(&self, id: &str, grace: Duration) -> Result<()> {
        self.stop(id, grace).await
    }

    async fn remove_container(&self, id: &str) -> Result<()> {
        self.serve("RemoveContainer")?.remove_container(id);
        Ok(())
    }

    async fn list_containers(&self, filter: Option<ContainerFilter>) -> Result<Vec<Container>> {
        Ok(self.serve("ListContainers")?.list_containers(&filter.unwrap_or_default()))
    }

    async fn container_status(&self, id: &str) -> Result<ContainerStatus> {
        const CALL: &str = "ContainerStatus";
        Ok(self.serve(CALL)?.container(CALL, id)?.status())
    }

    async fn update_container_resources(
        &self,
        request: UpdateContainerResourcesRequest,
    ) -> Result<()> {
        self.serve("UpdateContainerResources")?.update_resources(request)
    }

    async fn reopen_container_log(&self, id: &str) -> Result<()> {
        self.serve("ReopenContainerLog")?.reopen_log(id)
    }

    async fn exec_sync(&self, request: ExecSyncRequest) -> Result<ExecSyncResponse> {
        self.run_command(request).await
    }

    async fn exec(&self, request: ExecRequest) -> Result<StreamingEndpoint> {
        let mut state = self.serve("Exec")?;
        state.running("Exec", &request.container_id)?;
        Ok(state.streaming_url("exec"))
    }

    async fn attach(&self, request: AttachRequest) -> Result<StreamingEndpoint> {
        let mut state = self.serve("Attach")?;
        state.running("Attach", &request.container_id)?;
        Ok(state.streaming_url("attach"))
    }

    async fn port_forward(&self, request: PortForwardRequest) -> Result<StreamingEndpoint> {
        let mut state = self.serve("PortForward")?;
        state.ready_sandbox("PortForward", &request.pod_sandbox_id)?;
        Ok(state.streaming_url("portforward"))
    }

    async fn container_events(&self) -> Result<EventStream> {
        self.subscribe(false)
    }

    async fn container_stats(&self, id: &str) -> Result<ContainerStats> {
        self.serve("ContainerStats")?.measure_container(id)
    }

    async fn list_container_stats(
        &self,
        filter: Option<ContainerStatsFilter>,
    ) -> Result<Vec<ContainerStats>> {
        Ok(self.serve("ListContainerStats")?.measure_containers(&filter.unwrap_or_default()))
    }

    async fn pod_sandbox_stats(&self, id: &str) -> Result<PodSandboxStats> {
        const CALL: &str = "PodSandboxStats";
        let state = self.serve(CALL)?;
        Ok(state.measure_sandbox(state.sandbox(CALL, id)?))
    }

    async fn list_pod_sandbox_stats(
        &self,
        filter: Option<PodSandboxStatsFilter>,
    ) -> Result<Vec<PodSandboxStats>> {
        Ok(self.serve("ListPodSandboxStats")?.measure_sandboxes(&filter.unwrap_or_default()))
    }

    /// Containerd ignores the filter, so callers must not rely on one.
    async fn list_images(&self, _filter: Option<ImageFilter>) -> Result<Vec<Image>> {
        Ok(self.serve("ListImages")?.images.list())
    }

    async fn image_status(&self, image: ImageSpec) -> Result<Option<Image>> {
        Ok(self.serve("ImageStatus")?.images.find(&image.image).map(StoredImage::described))
    }

    async fn pull_image(&self, request: PullImageRequest) -> Result<String> {
        self.pull(request).await
    }

    async fn remove_image(&self, image: ImageSpec) -> Result<()> {
        self.serve("RemoveImage")?.remove_image(&image.image);
        Ok(())
    }

    async fn image_fs_info(&self) -> Result<ImageFsInfoResponse> {
        Ok(self.serve("ImageFsInfo")?.image_fs_info())
    }
}
