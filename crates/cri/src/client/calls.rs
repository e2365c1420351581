//! The calls of a remote runtime, one by one.

use std::collections::BTreeMap;
use std::time::Duration;

use async_trait::async_trait;
use oarsman_cri_types::v1 as cri;

use super::pending_call::send;
use super::{RemoteRuntime, events, object_name};
use crate::deadline::DeadlineClass;
use crate::{EventStream, InfoTarget, Result, Runtime, StreamingEndpoint, seconds};

#[async_trait]
impl Runtime for RemoteRuntime {
    async fn version(&self) -> Result<cri::VersionResponse> {
        let attempt = self.attempt("Version", "", DeadlineClass::Ordinary);
        let message = cri::VersionRequest { version: "0.1.0".to_owned() };
        send!(self.runtime.version(message), attempt)
    }

    async fn status(&self) -> Result<cri::StatusResponse> {
        let attempt = self.attempt("Status", "", DeadlineClass::Ordinary);
        let message = cri::StatusRequest { verbose: false };
        send!(self.runtime.status(message), attempt)
    }

    async fn runtime_config(&self) -> Result<cri::RuntimeConfigResponse> {
        let attempt = self.attempt("RuntimeConfig", "", DeadlineClass::Ordinary);
        let message = cri::RuntimeConfigRequest {};
        send!(self.runtime.runtime_config(message), attempt)
    }

    async fn update_runtime_config(&self, config: cri::RuntimeConfig) -> Result<()> {
        let attempt = self.attempt("UpdateRuntimeConfig", "", DeadlineClass::Ordinary);
        let message = cri::UpdateRuntimeConfigRequest { runtime_config: Some(config) };
        send!(self.runtime.update_runtime_config(message), attempt)?;
        Ok(())
    }

    async fn info(&self, about: InfoTarget<'_>) -> Result<BTreeMap<String, String>> {
        self.details(about).await
    }

    async fn run_pod_sandbox(&self, request: cri::RunPodSandboxRequest) -> Result<String> {
        let pod = object_name::of_pod(request.config.as_ref());
        let attempt = self.attempt("RunPodSandbox", &pod, DeadlineClass::Sandbox);
        let answer = send!(self.runtime.run_pod_sandbox(request), attempt)?;
        attempt.text(answer.pod_sandbox_id, "sandbox id")
    }

    async fn stop_pod_sandbox(&self, id: &str) -> Result<()> {
        let attempt = self.attempt("StopPodSandbox", id, DeadlineClass::Ordinary);
        let message = cri::StopPodSandboxRequest { pod_sandbox_id: id.to_owned() };
        done_if_gone(send!(self.runtime.stop_pod_sandbox(message), attempt))
    }

    async fn remove_pod_sandbox(&self, id: &str) -> Result<()> {
        let attempt = self.attempt("RemovePodSandbox", id, DeadlineClass::Ordinary);
        let message = cri::RemovePodSandboxRequest { pod_sandbox_id: id.to_owned() };
        done_if_gone(send!(self.runtime.remove_pod_sandbox(message), attempt))
    }

    async fn pod_sandbox_status(&self, id: &str) -> Result<cri::PodSandboxStatus> {
        let attempt = self.attempt("PodSandboxStatus", id, DeadlineClass::Ordinary);
        let message =
            cri::PodSandboxStatusRequest { pod_sandbox_id: id.to_owned(), verbose: false };
        let answer = send!(self.runtime.pod_sandbox_status(message), attempt)?;
        attempt.part(answer.status, "status")
    }

    async fn list_pod_sandboxes(
        &self,
        filter: Option<cri::PodSandboxFilter>,
    ) -> Result<Vec<cri::PodSandbox>> {
        self.sandboxes(filter).await
    }

    async fn update_pod_sandbox_resources(
        &self,
        request: cri::UpdatePodSandboxResourcesRequest,
    ) -> Result<()> {
        let id = request.pod_sandbox_id.clone();
        let attempt = self.attempt("UpdatePodSandboxResources", &id, DeadlineClass::Ordinary);
        send!(self.runtime.update_pod_sandbox_resources(request), attempt)?;
        Ok(())
    }

    async fn create_container(&self, request: cri::CreateContainerRequest) -> Result<String> {
        let container = object_name::of_container(&request);
        let attempt = self.attempt("CreateContainer", &container, DeadlineClass::Ordinary);
        let answer = send!(self.runtime.create_container(request), attempt)?;
        attempt.text(answer.container_id, "container id")
    }

    async fn start_container(&self, id: &str) -> Result<()> {
        let attempt = self.attempt("StartContainer", id, DeadlineClass::Ordinary);
        let message = cri::StartContainerRequest { container_id: id.to_owned() };
        send!(self.runtime.start_container(message), attempt)?;
        Ok(())
    }

    async fn stop_container(&self, id: &str, grace: Duration) -> Result<()> {
        let attempt = self.attempt("StopContainer", id, DeadlineClass::Prolonged(grace));
        let message = cri::StopContainerRequest {
            container_id: id.to_owned(),
            timeout: seconds::to_wire(grace),
        };
        done_if_gone(send!(self.runtime.stop_container(message), attempt))
    }

    async fn remove_container(&self, id: &str) -> Result<()> {
        let attempt = self.attempt("RemoveContainer", id, DeadlineClass::Ordinary);
        let message = cri::RemoveContainerRequest { container_id: id.to_owned() };
        done_if_gone(send!(self.runtime.remove_container(message), attempt))
    }

    async fn list_containers(
        &self,
        filter: Option<cri::ContainerFilter>,
    ) -> Result<Vec<cri::Container>> {
        self.containers(filter).await
    }

    async fn container_status(&self, id: &str) -> Result<cri::ContainerStatus> {
        let attempt = self.attempt("ContainerStatus", id, DeadlineClass::Ordinary);
        let message = cri::ContainerStatusRequest { container_id: id.to_owned(), verbose: false };
        let answer = send!(self.runtime.container_status(message), attempt)?;
        attempt.part(answer.status, "status")
    }

    async fn update_container_resources(
        &self,
        request: cri::UpdateContainerResourcesRequest,
    ) -> Result<()> {
        let id = request.container_id.clone();
        let attempt = self.attempt("UpdateContainerResources", &id, DeadlineClass::Ordinary);
        send!(self.runtime.update_container_resources(request), attempt)?;
        Ok(())
    }

    async fn reopen_container_log(&self, id: &str) -> Result<()> {
        let attempt = self.attempt("ReopenContainerLog", id, DeadlineClass::Ordinary);
        let message = cri::ReopenContainerLogRequest { container_id: id.to_owned() };
        send!(self.runtime.reopen_container_log(message), attempt)?;
        Ok(())
    }

    async fn checkpoint_container(&self, request: cri::CheckpointContainerRequest) -> Result<()> {
        let id = request.container_id.clone();
        let effort = DeadlineClass::Prolonged(seconds::from_wire(request.timeout));
        let attempt = self.attempt("CheckpointContainer", &id, effort);
        send!(self.runtime.checkpoint_container(request), attempt)?;
        Ok(())
    }

    async fn exec_sync(&self, request: cri::ExecSyncRequest) -> Result<cri::ExecSyncResponse> {
        let id = request.container_id.clone();
        let attempt = self.attempt("ExecSync", &id, DeadlineClass::of_command(request.timeout));
        send!(self.runtime.exec_sync(request), attempt)
    }

    async fn exec(&self, request: cri::ExecRequest) -> Result<StreamingEndpoint> {
        let id = request.container_id.clone();
        let attempt = self.attempt("Exec", &id, DeadlineClass::Ordinary);
        let answer = send!(self.runtime.exec(request), attempt)?;
        attempt.text(answer.url, "URL").map(StreamingEndpoint::Url)
    }

    async fn attach(&self, request: cri::AttachRequest) -> Result<StreamingEndpoint> {
        let id = request.container_id.clone();
        let attempt = self.attempt("Attach", &id, DeadlineClass::Ordinary);
        let answer = send!(self.runtime.attach(request), attempt)?;
        attempt.text(answer.url, "URL").map(StreamingEndpoint::Url)
    }

    async fn port_forward(&self, request: cri::PortForwardRequest) -> Result<StreamingEndpoint> {
        let id = request.pod_sandbox_id.clone();
        let attempt = self.attempt("PortForward", &id, DeadlineClass::Ordinary);
        let answer = send!(self.runtime.port_forward(request), attempt)?;
        attempt.text(answer.url, "URL").map(StreamingEndpoint::Url)
    }

    async fn container_events(&self) -> Result<EventStream> {
        let attempt = self.attempt("GetContainerEvents", "", DeadlineClass::Unlimited);
        let message = cri::GetEventsRequest {};
        let client = self.clone();
        let opening = async move { send!(client.events.get_container_events(message), attempt) };
        events::subscribe(attempt, opening).await
    }

    async fn container_stats(&self, id: &str) -> Result<cri::ContainerStats> {
        let attempt = self.attempt("ContainerStats", id, DeadlineClass::Ordinary);
        let message = cri::ContainerStatsRequest { container_id: id.to_owned() };
        let answer = send!(self.runtime.container_stats(message), attempt)?;
        attempt.part(answer.stats, "stats")
    }

    async fn list_container_stats(
        &self,
        filter: Option<cri::ContainerStatsFilter>,
    ) -> Result<Vec<cri::ContainerStats>> {
        let attempt = self.attempt("ListContainerStats", "", DeadlineClass::Ordinary);
        let message = cri::ListContainerStatsRequest { filter };
        let answer = send!(self.runtime.list_container_stats(message), attempt)?;
        Ok(answer.stats)
    }

    async fn pod_sandbox_stats(&self, id: &str) -> Result<cri::PodSandboxStats> {
        let attempt = self.attempt("PodSandboxStats", id, DeadlineClass::Ordinary);
        let message = cri::PodSandboxStatsRequest { pod_sandbox_id: id.to_owned() };
        let answer = send!(self.runtime.pod_sandbox_stats(message), attempt)?;
        attempt.part(answer.stats, "stats")
    }

    async fn list_pod_sandbox_stats(
        &self,
        filter: Option<cri::PodSandboxStatsFilter>,
    ) -> Result<Vec<cri::PodSandboxStats>> {
        let attempt = self.attempt("ListPodSandboxStats", "", DeadlineClass::Ordinary);
        let message = cri::ListPodSandboxStatsRequest { filter };
        let answer = send!(self.runtime.list_pod_sandbox_stats(message), attempt)?;
        Ok(answer.stats)
    }

    async fn list_metric_descriptors(&self) -> Result<Vec<cri::MetricDescriptor>> {
        let attempt = self.attempt("ListMetricDescriptors", "", DeadlineClass::Ordinary);
        let message = cri::ListMetricDescriptorsRequest {};
        let answer = send!(self.runtime.list_metric_descriptors(message), attempt)?;
        Ok(answer.descriptors)
    }

    async fn list_pod_sandbox_metrics(&self) -> Result<Vec<cri::PodSandboxMetrics>> {
        let attempt = self.attempt("ListPodSandboxMetrics", "", DeadlineClass::Ordinary);
        let message = cri::ListPodSandboxMetricsRequest {};
        let answer = send!(self.runtime.list_pod_sandbox_metrics(message), attempt)?;
        Ok(answer.pod_metrics)
    }

    async fn list_images(&self, filter: Option<cri::ImageFilter>) -> Result<Vec<cri::Image>> {
        let attempt = self.attempt("ListImages", "", DeadlineClass::Ordinary);
        let message = cri::ListImagesRequest { filter };
        let answer = send!(self.images.list_images(message), attempt)?;
        Ok(answer.images)
    }

    async fn image_status(&self, image: cri::ImageSpec) -> Result<Option<cri::Image>> {
        let name = object_name::of_image(Some(&image));
        let attempt = self.attempt("ImageStatus", &name, DeadlineClass::Ordinary);
        let message = cri::ImageStatusRequest { image: Some(image), verbose: false };
        let answer = send!(self.images.image_status(message), attempt)?;
        Ok(answer.image)
    }

    async fn pull_image(&self, request: cri::PullImageRequest) -> Result<String> {
        let name = object_name::of_image(request.image.as_ref());
        let attempt = self.attempt("PullImage", &name, DeadlineClass::Pull);
        let answer = send!(self.images.pull_image(request), attempt)?;
        attempt.text(answer.image_ref, "image reference")
    }

    async fn remove_image(&self, image: cri::ImageSpec) -> Result<()> {
        let name = object_name::of_image(Some(&image));
        let attempt = self.attempt("RemoveImage", &name, DeadlineClass::Ordinary);
        let message = cri::RemoveImageRequest { image: Some(image) };
        done_if_gone(send!(self.images.remove_image(message), attempt))
    }

    async fn image_fs_info(&self) -> Result<cri::ImageFsInfoResponse> {
        let attempt = self.attempt("ImageFsInfo", "", DeadlineClass::Ordinary);
        let message = cri::ImageFsInfoRequest {};
        send!(self.images.image_fs_info(message), attempt)
    }
}

/// Stopping or removing what does not exist counts as success.
fn done_if_gone<T>(outcome: Result<T>) -> Result<()> {
    match outcome {
        Err(error) if !error.is_gone() => Err(error),
        _ => Ok(()),
    }
}
