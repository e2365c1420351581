//! The runtime of the proxy: each call is recorded, meets its rule, and is forwarded.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use oarsman_cri::{EventStream, InfoTarget as About, Result, Runtime, StreamingEndpoint};
use oarsman_cri_types::v1 as cri;

use super::calls::CallJournal;
use super::rules::RuleSet;
use super::subject::{CallSubject, PodIndex};

pub(super) struct ForwardingRuntime {
    runtime: Arc<dyn Runtime>,
    journal: CallJournal,
    pod_index: PodIndex,
    rules: Arc<RuleSet>,
}

impl ForwardingRuntime {
    pub(super) fn new(runtime: Arc<dyn Runtime>) -> Self {
        let (journal, pod_index) = (CallJournal::default(), PodIndex::default());
        Self { runtime, journal, pod_index, rules: Arc::default() }
    }

    pub(super) fn journal(&self) -> &CallJournal {
        &self.journal
    }

    pub(super) fn rules(&self) -> &Arc<RuleSet> {
        &self.rules
    }

    async fn pass<T>(
        &self,
        name: &'static str,
        subject: CallSubject,
        call: impl Future<Output = Result<T>> + Send,
    ) -> Result<T> {
        let number = self.journal.begin(name, &subject);
        let outcome = self.apply_rule(name, &subject, call).await;
        self.journal.end(number, &outcome);
        outcome
    }

    async fn apply_rule<T>(
        &self,
        name: &'static str,
        subject: &CallSubject,
        call: impl Future<Output = Result<T>> + Send,
    ) -> Result<T> {
        let Some(rule) = self.rules.find(name, subject) else { return call.await };
        rule.before(name).await?;
        let outcome = call.await;
        rule.after(name).await?;
        outcome
    }

    async fn pass_id<T>(
        &self,
        name: &'static str,
        id: &str,
        call: impl Future<Output = Result<T>> + Send,
    ) -> Result<T> {
        self.pass(name, self.pod_index.of_id(id), call).await
    }

    /// Forwards a call that concerns the runtime as a whole.
    async fn pass_plain<T>(
        &self,
        name: &'static str,
        call: impl Future<Output = Result<T>> + Send,
    ) -> Result<T> {
        self.pass(name, CallSubject::default(), call).await
    }
}

#[async_trait]
impl Runtime for ForwardingRuntime {
    async fn version(&self) -> Result<cri::VersionResponse> {
        self.pass_plain("Version", self.runtime.version()).await
    }

    async fn status(&self) -> Result<cri::StatusResponse> {
        self.pass_plain("Status", self.runtime.status()).await
    }

    async fn runtime_config(&self) -> Result<cri::RuntimeConfigResponse> {
        self.pass_plain("RuntimeConfig", self.runtime.runtime_config()).await
    }

    async fn update_runtime_config(&self, config: cri::RuntimeConfig) -> Result<()> {
        let call = self.runtime.update_runtime_config(config);
        self.pass_plain("UpdateRuntimeConfig", call).await
    }

    /// A part of a status call, which is recorded already.
    async fn info(&self, about: About<'_>) -> Result<BTreeMap<String, String>> {
        self.runtime.info(about).await
    }

    async fn run_pod_sandbox(&self, request: cri::RunPodSandboxRequest) -> Result<String> {
        let metadata = request.config.as_ref().and_then(|config| config.metadata.clone());
        let subject = PodIndex::of_config(request.config.as_ref());
        let call = async {
            let id = self.runtime.run_pod_sandbox(request).await?;
            self.pod_index.learn_sandbox(&id, metadata.as_ref());
            Ok(id)
        };
        self.pass("RunPodSandbox", subject, call).await
    }

    async fn stop_pod_sandbox(&self, id: &str) -> Result<()> {
        self.pass_id("StopPodSandbox", id, self.runtime.stop_pod_sandbox(id)).await
    }

    async fn remove_pod_sandbox(&self, id: &str) -> Result<()> {
        self.pass_id("RemovePodSandbox", id, self.runtime.remove_pod_sandbox(id)).await
    }

    async fn pod_sandbox_status(&self, id: &str) -> Result<cri::PodSandboxStatus> {
        self.pass_id("PodSandboxStatus", id, self.runtime.pod_sandbox_status(id)).await
    }

    async fn list_pod_sandboxes(
        &self,
        filter: Option<cri::PodSandboxFilter>,
    ) -> Result<Vec<cri::PodSandbox>> {
        let subject = self.pod_index.of_sandbox_filter(filter.as_ref());
        let call = async {
            let sandboxes = self.runtime.list_pod_sandboxes(filter).await?;
            self.pod_index.learn_sandboxes(&sandboxes);
            Ok(sandboxes)
        };
        self.pass("ListPodSandbox", subject, call).await
    }

    async fn update_pod_sandbox_resources(
        &self,
        request: cri::UpdatePodSandboxResourcesRequest,
    ) -> Result<()> {
        let id = request.pod_sandbox_id.clone();
        let call = self.runtime.update_pod_sandbox_resources(request);
        self.pass_id("UpdatePodSandboxResources", &id, call).await
    }

    async fn create_container(&self, request: cri::CreateContainerRequest) -> Result<String> {
        let sandbox = request.pod_sandbox_id.clone();
        let subject = self.pod_index.of_new_container(&request);
        let call = async {
            let id = self.runtime.create_container(request).await?;
            self.pod_index.learn_container(&id, &sandbox);
            Ok(id)
        };
        self.pass("CreateContainer", subject, call).await
    }

    async fn start_container(&self, id: &str) -> Result<()> {
        self.pass_id("StartContainer", id, self.runtime.start_container(id)).await
    }

    async fn stop_container(&self, id: &str, grace: Duration) -> Result<()> {
        self.pass_id("StopContainer", id, self.runtime.stop_container(id, grace)).await
    }

    async fn remove_container(&self, id: &str) -> Result<()> {
        self.pass_id("RemoveContainer", id, self.runtime.remove_container(id)).await
    }

    async fn list_containers(
        &self,
        filter: Option<cri::ContainerFilter>,
    ) -> Result<Vec<cri::Container>> {
        let subject = self.pod_index.of_container_filter(filter.as_ref());
        let call = async {
            let containers = self.runtime.list_containers(filter).await?;
            self.pod_index.learn_containers(&containers);
            Ok(containers)
        };
        self.pass("ListContainers", subject, call).await
    }

    async fn container_status(&self, id: &str) -> Result<cri::ContainerStatus> {
        self.pass_id("ContainerStatus", id, self.runtime.container_status(id)).await
    }

    async fn update_container_resources(
        &self,
        request: cri::UpdateContainerResourcesRequest,
    ) -> Result<()> {
        let id = request.container_id.clone();
        let call = self.runtime.update_container_resources(request);
        self.pass_id("UpdateContainerResources", &id, call).await
    }

    async fn reopen_container_log(&self, id: &str) -> Result<()> {
        self.pass_id("ReopenContainerLog", id, self.runtime.reopen_container_log(id)).await
    }

    async fn checkpoint_container(&self, request: cri::CheckpointContainerRequest) -> Result<()> {
        let id = request.container_id.clone();
        self.pass_id("CheckpointContainer", &id, self.runtime.checkpoint_container(request)).await
    }

    async fn exec_sync(&self, request: cri::ExecSyncRequest) -> Result<cri::ExecSyncResponse> {
        let id = request.container_id.clone();
        self.pass_id("ExecSync", &id, self.runtime.exec_sync(request)).await
    }

    async fn exec(&self, request: cri::ExecRequest) -> Result<StreamingEndpoint> {
        let id = request.container_id.clone();
        self.pass_id("Exec", &id, self.runtime.exec(request)).await
    }

    async fn attach(&self, request: cri::AttachRequest) -> Result<StreamingEndpoint> {
        let id = request.container_id.clone();
        self.pass_id("Attach", &id, self.runtime.attach(request)).await
    }

    async fn port_forward(&self, request: cri::PortForwardRequest) -> Result<StreamingEndpoint> {
        let id = request.pod_sandbox_id.clone();
        self.pass_id("PortForward", &id, self.runtime.port_forward(request)).await
    }

    /// The stream itself is forwarded as it is, without any rule.
    async fn container_events(&self) -> Result<EventStream> {
        self.pass_plain("GetContainerEvents", self.runtime.container_events()).await
    }

    async fn container_stats(&self, id: &str) -> Result<cri::ContainerStats> {
        self.pass_id("ContainerStats", id, self.runtime.container_stats(id)).await
    }

    async fn list_container_stats(
        &self,
        filter: Option<cri::ContainerStatsFilter>,
    ) -> Result<Vec<cri::ContainerStats>> {
        let asked = filter.clone().unwrap_or_default();
        let ids = [asked.id.as_str(), &asked.pod_sandbox_id];
        let subject = self.pod_index.of_filter(&ids, &asked.label_selector);
        self.pass("ListContainerStats", subject, self.runtime.list_container_stats(filter)).await
    }

    async fn pod_sandbox_stats(&self, id: &str) -> Result<cri::PodSandboxStats> {
        self.pass_id("PodSandboxStats", id, self.runtime.pod_sandbox_stats(id)).await
    }

    async fn list_pod_sandbox_stats(
        &self,
        filter: Option<cri::PodSandboxStatsFilter>,
    ) -> Result<Vec<cri::PodSandboxStats>> {
        let asked = filter.clone().unwrap_or_default();
        let subject = self.pod_index.of_filter(&[&asked.id], &asked.label_selector);
        let call = self.runtime.list_pod_sandbox_stats(filter);
        self.pass("ListPodSandboxStats", subject, call).await
    }

    async fn list_metric_descriptors(&self) -> Result<Vec<cri::MetricDescriptor>> {
        let call = self.runtime.list_metric_descriptors();
        self.pass_plain("ListMetricDescriptors", call).await
    }

    async fn list_pod_sandbox_metrics(&self) -> Result<Vec<cri::PodSandboxMetrics>> {
        let call = self.runtime.list_pod_sandbox_metrics();
        self.pass_plain("ListPodSandboxMetrics", call).await
    }

    async fn list_images(&self, filter: Option<cri::ImageFilter>) -> Result<Vec<cri::Image>> {
        self.pass_plain("ListImages", self.runtime.list_images(filter)).await
    }

    async fn image_status(&self, image: cri::ImageSpec) -> Result<Option<cri::Image>> {
        let subject = CallSubject::of_image(&image.image);
        self.pass("ImageStatus", subject, self.runtime.image_status(image)).await
    }

    async fn pull_image(&self, request: cri::PullImageRequest) -> Result<String> {
        let image = request.image.as_ref().map_or("", |image| &image.image);
        let subject = PodIndex::of_config(request.sandbox_config.as_ref()).named(image);
        self.pass("PullImage", subject, self.runtime.pull_image(request)).await
    }

    async fn remove_image(&self, image: cri::ImageSpec) -> Result<()> {
        let subject = CallSubject::of_image(&image.image);
        self.pass("RemoveImage", subject, self.runtime.remove_image(image)).await
    }

    async fn image_fs_info(&self) -> Result<cri::ImageFsInfoResponse> {
        self.pass_plain("ImageFsInfo", self.runtime.image_fs_info()).await
    }
}
