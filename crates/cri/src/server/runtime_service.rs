//! The calls on sandboxes, containers and the runtime itself, answered by a Runtime.

use futures::{StreamExt, TryStreamExt};
use oarsman_cri_types::v1 as cri;
use tonic::codegen::BoxStream;
use tonic::{Request, Response, Status};

use super::implement;
use crate::wire::runtime_service_server::RuntimeService;
use crate::{CriError, InfoTarget, StreamingEndpoint, seconds};

implement! { RuntimeService {
    fn version(self, _request: cri::VersionRequest) -> cri::VersionResponse {
        self.runtime.version().await?
    }

    fn status(self, request: cri::StatusRequest) -> cri::StatusResponse {
        let status = self.runtime.status().await?;
        let info = self.info_if(request.verbose, InfoTarget::Runtime).await?;
        cri::StatusResponse { info, ..status }
    }

    fn runtime_config(self, _request: cri::RuntimeConfigRequest) -> cri::RuntimeConfigResponse {
        self.runtime.runtime_config().await?
    }

    fn update_runtime_config(
        self, request: cri::UpdateRuntimeConfigRequest
    ) -> cri::UpdateRuntimeConfigResponse {
        let config = request.runtime_config.unwrap_or_default();
        self.runtime.update_runtime_config(config).await?;
        cri::UpdateRuntimeConfigResponse {}
    }

    fn run_pod_sandbox(self, request: cri::RunPodSandboxRequest) -> cri::RunPodSandboxResponse {
        let pod_sandbox_id = self.runtime.run_pod_sandbox(request).await?;
        cri::RunPodSandboxResponse { pod_sandbox_id }
    }

    fn stop_pod_sandbox(self, request: cri::StopPodSandboxRequest) -> cri::StopPodSandboxResponse {
        self.runtime.stop_pod_sandbox(&request.pod_sandbox_id).await?;
        cri::StopPodSandboxResponse {}
    }

    fn remove_pod_sandbox(
        self, request: cri::RemovePodSandboxRequest
    ) -> cri::RemovePodSandboxResponse {
        self.runtime.remove_pod_sandbox(&request.pod_sandbox_id).await?;
        cri::RemovePodSandboxResponse {}
    }

    fn pod_sandbox_status(
        self, request: cri::PodSandboxStatusRequest
    ) -> cri::PodSandboxStatusResponse {
        let id = &request.pod_sandbox_id;
        let status = self.runtime.pod_sandbox_status(id).await?;
        let info = self.info_if(request.verbose, InfoTarget::Sandbox(id)).await?;
        cri::PodSandboxStatusResponse { status: Some(status), info, ..Default::default() }
    }

    fn list_pod_sandbox(self, request: cri::ListPodSandboxRequest) -> cri::ListPodSandboxResponse {
        let items = self.runtime.list_pod_sandboxes(request.filter).await?;
        cri::ListPodSandboxResponse { items }
    }

    fn update_pod_sandbox_resources(
        self, request: cri::UpdatePodSandboxResourcesRequest
    ) -> cri::UpdatePodSandboxResourcesResponse {
        self.runtime.update_pod_sandbox_resources(request).await?;
        cri::UpdatePodSandboxResourcesResponse {}
    }

    fn create_container(
        self, request: cri::CreateContainerRequest
    ) -> cri::CreateContainerResponse {
        let container_id = self.runtime.create_container(request).await?;
        cri::CreateContainerResponse { container_id }
    }

    fn start_container(self, request: cri::StartContainerRequest) -> cri::StartContainerResponse {
        self.runtime.start_container(&request.container_id).await?;
        cri::StartContainerResponse {}
    }

    fn stop_container(self, request: cri::StopContainerRequest) -> cri::StopContainerResponse {
        let grace = seconds::from_wire(request.timeout);
        self.runtime.stop_container(&request.container_id, grace).await?;
        cri::StopContainerResponse {}
    }

    fn remove_container(
        self, request: cri::RemoveContainerRequest
    ) -> cri::RemoveContainerResponse {
        self.runtime.remove_container(&request.container_id).await?;
        cri::RemoveContainerResponse {}
    }

    fn list_containers(self, request: cri::ListContainersRequest) -> cri::ListContainersResponse {
        let containers = self.runtime.list_containers(request.filter).await?;
        cri::ListContainersResponse { containers }
    }

    fn container_status(
        self, request: cri::ContainerStatusRequest
    ) -> cri::ContainerStatusResponse {
        let id = &request.container_id;
        let status = self.runtime.container_status(id).await?;
        let info = self.info_if(request.verbose, InfoTarget::Container(id)).await?;
        cri::ContainerStatusResponse { status: Some(status), info }
    }

    fn update_container_resources(
        self, request: cri::UpdateContainerResourcesRequest
    ) -> cri::UpdateContainerResourcesResponse {
        self.runtime.update_container_resources(request).await?;
        cri::UpdateContainerResourcesResponse {}
    }

    fn reopen_container_log(
        self, request: cri::ReopenContainerLogRequest
    ) -> cri::ReopenContainerLogResponse {
        self.runtime.reopen_container_log(&request.container_id).await?;
        cri::ReopenContainerLogResponse {}
    }

    fn checkpoint_container(
        self, request: cri::CheckpointContainerRequest
    ) -> cri::CheckpointContainerResponse {
        self.runtime.checkpoint_container(request).await?;
        cri::CheckpointContainerResponse {}
    }

    fn exec_sync(self, request: cri::ExecSyncRequest) -> cri::ExecSyncResponse {
        self.runtime.exec_sync(request).await?
    }

    fn exec(self, request: cri::ExecRequest) -> cri::ExecResponse {
        let url = url_of("Exec", self.runtime.exec(request).await?)?;
        cri::ExecResponse { url }
    }

    fn attach(self, request: cri::AttachRequest) -> cri::AttachResponse {
        let url = url_of("Attach", self.runtime.attach(request).await?)?;
        cri::AttachResponse { url }
    }

    fn port_forward(self, request: cri::PortForwardRequest) -> cri::PortForwardResponse {
        let url = url_of("PortForward", self.runtime.port_forward(request).await?)?;
        cri::PortForwardResponse { url }
    }

    fn container_stats(self, request: cri::ContainerStatsRequest) -> cri::ContainerStatsResponse {
        let stats = self.runtime.container_stats(&request.container_id).await?;
        cri::ContainerStatsResponse { stats: Some(stats) }
    }

    fn list_container_stats(
        self, request: cri::ListContainerStatsRequest
    ) -> cri::ListContainerStatsResponse {
        let stats = self.runtime.list_container_stats(request.filter).await?;
        cri::ListContainerStatsResponse { stats }
    }

    fn pod_sandbox_stats(
        self, request: cri::PodSandboxStatsRequest
    ) -> cri::PodSandboxStatsResponse {
        let stats = self.runtime.pod_sandbox_stats(&request.pod_sandbox_id).await?;
        cri::PodSandboxStatsResponse { stats: Some(stats) }
    }

    fn list_pod_sandbox_stats(
        self, request: cri::ListPodSandboxStatsRequest
    ) -> cri::ListPodSandboxStatsResponse {
        let stats = self.runtime.list_pod_sandbox_stats(request.filter).await?;
        cri::ListPodSandboxStatsResponse { stats }
    }

    fn list_metric_descriptors(
        self, _request: cri::ListMetricDescriptorsRequest
    ) -> cri::ListMetricDescriptorsResponse {
        let descriptors = self.runtime.list_metric_descriptors().await?;
        cri::ListMetricDescriptorsResponse { descriptors }
    }

    fn list_pod_sandbox_metrics(
        self, _request: cri::ListPodSandboxMetricsRequest
    ) -> cri::ListPodSandboxMetricsResponse {
        let pod_metrics = self.runtime.list_pod_sandbox_metrics().await?;
        cri::ListPodSandboxMetricsResponse { pod_metrics }
    }
} streams {
    fn stream_pod_sandboxes(
        self, request: cri::StreamPodSandboxesRequest
    ) -> cri::StreamPodSandboxesResponse {
        let all = self.runtime.list_pod_sandboxes(request.filter).await?;
        (all, |pod_sandboxes| cri::StreamPodSandboxesResponse { pod_sandboxes })
    }

    fn stream_containers(
        self, request: cri::StreamContainersRequest
    ) -> cri::StreamContainersResponse {
        let all = self.runtime.list_containers(request.filter).await?;
        (all, |containers| cri::StreamContainersResponse { containers })
    }

    fn stream_container_stats(
        self, request: cri::StreamContainerStatsRequest
    ) -> cri::StreamContainerStatsResponse {
        let all = self.runtime.list_container_stats(request.filter).await?;
        (all, |container_stats| cri::StreamContainerStatsResponse { container_stats })
    }

    fn stream_pod_sandbox_stats(
        self, request: cri::StreamPodSandboxStatsRequest
    ) -> cri::StreamPodSandboxStatsResponse {
        let all = self.runtime.list_pod_sandbox_stats(request.filter).await?;
        (all, |pod_sandbox_stats| cri::StreamPodSandboxStatsResponse { pod_sandbox_stats })
    }

    fn stream_pod_sandbox_metrics(
        self, _request: cri::StreamPodSandboxMetricsRequest
    ) -> cri::StreamPodSandboxMetricsResponse {
        let all = self.runtime.list_pod_sandbox_metrics().await?;
        (all, |pod_sandbox_metrics| cri::StreamPodSandboxMetricsResponse { pod_sandbox_metrics })
    }
}
    async fn get_container_events(
        &self,
        _request: Request<cri::GetEventsRequest>,
    ) -> Result<Response<BoxStream<cri::ContainerEventResponse>>, Status> {
        let events = self.answer(self.runtime.container_events()).await?.into_inner();
        let until_closing = events
            .map_err(|error| error.to_status())
            .take_until(self.closing.clone().cancelled_owned());
        Ok(Response::new(until_closing.boxed()))
    }
}

/// A session of this process has no URL. A runtime with sessions is served behind a layer that gives them URLs.
fn url_of(call: &'static str, endpoint: StreamingEndpoint) -> crate::Result<String> {
    match endpoint {
        StreamingEndpoint::Url(url) => Ok(url),
        StreamingEndpoint::Session(_) => Err(CriError::unimplemented(call)),
    }
}
