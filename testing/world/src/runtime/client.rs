//! The runtime as an agent reaches it: every call over its life's line.

mod events;

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use oarsman_cri::{Code, CriError, Deadlines, EventStream, Result, Runtime, Streaming};
use oarsman_cri_types::v1::{
    AttachRequest, Container, ContainerFilter, ContainerMetadata, ContainerStats,
    ContainerStatsFilter, ContainerStatus, CreateContainerRequest, ExecRequest, ExecSyncRequest,
    ExecSyncResponse, Image, ImageFilter, ImageFsInfoResponse, ImageSpec, PodSandbox,
    PodSandboxFilter, PodSandboxMetadata, PodSandboxStats, PodSandboxStatsFilter, PodSandboxStatus,
    PortForwardRequest, PullImageRequest, RunPodSandboxRequest, RuntimeConfig,
    RuntimeConfigResponse, StatusResponse, UpdateContainerResourcesRequest,
    UpdatePodSandboxResourcesRequest, VersionResponse,
};

use super::FakeRuntime;
use crate::faults::Faults;
use crate::line::{Breakage, Call, Conduct, Line, LineError};

/// The runtime at the other end of a line. Calls end by the deadlines of a real client.
pub fn connect(
    runtime: FakeRuntime,
    line: Line,
    faults: Faults,
    deadlines: Deadlines,
) -> Arc<dyn Runtime> {
    Arc::new(Connection { runtime, line, faults, request: deadlines.request })
}

struct Connection {
    runtime: FakeRuntime,
    line: Line,
    faults: Faults,
    /// How long an ordinary call may take.
    request: Duration,
}

impl Connection {
    fn read(&self, name: &'static str, subject: &str) -> Call {
        Call::new(name, subject, Conduct::Read).within(self.request)
    }

    fn change(&self, name: &'static str, subject: &str) -> Call {
        Call::new(name, subject, Conduct::Change).within(self.request)
    }
}

impl LineError for CriError {
    fn broken(call: &'static str, subject: &str, how: Breakage) -> Self {
        let (code, message) = match how {
            Breakage::Unavailable => (Code::Unavailable, "the connection broke".to_owned()),
            Breakage::Unknown | Breakage::Refused | Breakage::Busy(_) => {
                (Code::Unknown, "something went wrong".to_owned())
            }
            Breakage::TimedOut(limit) => {
                (Code::DeadlineExceeded, format!("no answer within {limit:?}"))
            }
        };
        Self::new(call, code, message).on(subject)
    }

    fn kind(&self) -> String {
        self.code().to_string()
    }
}

/// Makes a call on the runtime over the line: `forward!(self, call, runtime => runtime.status())`.
macro_rules! forward {
    ($self:ident, $call:expr, $runtime:ident => $effect:expr) => {{
        let ($runtime, call) = ($self.runtime.clone(), $call);
        $self.line.call(call, async move { $effect.await }).await
    }};
}

#[async_trait]
impl Runtime for Connection {
    async fn version(&self) -> Result<VersionResponse> {
        forward!(self, self.read("Version", ""), runtime => runtime.version())
    }

    async fn status(&self) -> Result<StatusResponse> {
        forward!(self, self.read("Status", ""), runtime => runtime.status())
    }

    async fn runtime_config(&self) -> Result<RuntimeConfigResponse> {
        forward!(self, self.read("RuntimeConfig", ""), runtime => runtime.runtime_config())
    }

    async fn update_runtime_config(&self, config: RuntimeConfig) -> Result<()> {
        let call = self.change("UpdateRuntimeConfig", "");
        forward!(self, call, runtime => runtime.update_runtime_config(config))
    }

    async fn run_pod_sandbox(&self, request: RunPodSandboxRequest) -> Result<String> {
        let (runtime, botched) = (self.runtime.clone(), request.clone());
        let call = self.change("RunPodSandbox", &sandbox_subject(&request));
        let call = call.within(self.request.saturating_mul(2));
        let call = call.botched_by(move |time| runtime.block_sandbox(&botched, time));
        forward!(self, call, runtime => runtime.run_pod_sandbox(request))
    }

    async fn stop_pod_sandbox(&self, id: &str) -> Result<()> {
        let id = id.to_owned();
        let call = self.change("StopPodSandbox", &id);
        forward!(self, call, runtime => runtime.stop_pod_sandbox(&id))
    }

    async fn remove_pod_sandbox(&self, id: &str) -> Result<()> {
        let id = id.to_owned();
        let call = self.change("RemovePodSandbox", &id);
        forward!(self, call, runtime => runtime.remove_pod_sandbox(&id))
    }

    async fn pod_sandbox_status(&self, id: &str) -> Result<PodSandboxStatus> {
        let id = id.to_owned();
        let call = self.read("PodSandboxStatus", &id);
        forward!(self, call, runtime => runtime.pod_sandbox_status(&id))
    }

    async fn list_pod_sandboxes(
        &self,
        filter: Option<PodSandboxFilter>,
    ) -> Result<Vec<PodSandbox>> {
        let call = self.read("ListPodSandbox", "");
        forward!(self, call, runtime => runtime.list_pod_sandboxes(filter))
    }

    async fn update_pod_sandbox_resources(
        &self,
        request: UpdatePodSandboxResourcesRequest,
    ) -> Result<()> {
        let call = self.change("UpdatePodSandboxResources", &request.pod_sandbox_id);
        forward!(self, call, runtime => runtime.update_pod_sandbox_resources(request))
    }

    async fn create_container(&self, request: CreateContainerRequest) -> Result<String> {
        let (runtime, botched) = (self.runtime.clone(), request.clone());
        let call = self.change("CreateContainer", &container_subject(&request));
        let call = call.botched_by(move |time| runtime.block_container(&botched, time));
        forward!(self, call, runtime => runtime.create_container(request))
    }

    async fn start_container(&self, id: &str) -> Result<()> {
        let id = id.to_owned();
        let call = self.change("StartContainer", &id);
        forward!(self, call, runtime => runtime.start_container(&id))
    }

    async fn stop_container(&self, id: &str, grace: Duration) -> Result<()> {
        let id = id.to_owned();
        let call = Call::new("StopContainer", format!("{id} {grace:?}"), Conduct::Wait);
        let call = call.within(self.request.saturating_add(grace));
        forward!(self, call, runtime => runtime.stop_container(&id, grace))
    }

    async fn remove_container(&self, id: &str) -> Result<()> {
        let id = id.to_owned();
        let call = self.change("RemoveContainer", &id);
        forward!(self, call, runtime => runtime.remove_container(&id))
    }

    async fn list_containers(&self, filter: Option<ContainerFilter>) -> Result<Vec<Container>> {
        let call = self.read("ListContainers", "");
        forward!(self, call, runtime => runtime.list_containers(filter))
    }

    async fn container_status(&self, id: &str) -> Result<ContainerStatus> {
        let id = id.to_owned();
        let call = self.read("ContainerStatus", &id);
        forward!(self, call, runtime => runtime.container_status(&id))
    }

    async fn update_container_resources(
        &self,
        request: UpdateContainerResourcesRequest,
    ) -> Result<()> {
        let call = self.change("UpdateContainerResources", &request.container_id);
        forward!(self, call, runtime => runtime.update_container_resources(request))
    }

    async fn reopen_container_log(&self, id: &str) -> Result<()> {
        let id = id.to_owned();
        let call = self.change("ReopenContainerLog", &id);
        forward!(self, call, runtime => runtime.reopen_container_log(&id))
    }

    async fn exec_sync(&self, request: ExecSyncRequest) -> Result<ExecSyncResponse> {
        let subject = format!("{} {:?}", request.container_id, request.cmd);
        let call = Call::new("ExecSync", subject, Conduct::Wait);
        let call = match u64::try_from(request.timeout) {
            Err(_) | Ok(0) => call,
            Ok(timeout) => call.within(self.request.saturating_add(Duration::from_secs(timeout))),
        };
        forward!(self, call, runtime => runtime.exec_sync(request))
    }

    async fn exec(&self, request: ExecRequest) -> Result<Streaming> {
        let call = self.read("Exec", &request.container_id);
        forward!(self, call, runtime => runtime.exec(request))
    }

    async fn attach(&self, request: AttachRequest) -> Result<Streaming> {
        let call = self.read("Attach", &request.container_id);
        forward!(self, call, runtime => runtime.attach(request))
    }

    async fn port_forward(&self, request: PortForwardRequest) -> Result<Streaming> {
        let call = self.read("PortForward", &request.pod_sandbox_id);
        forward!(self, call, runtime => runtime.port_forward(request))
    }

    async fn container_events(&self) -> Result<EventStream> {
        let replay = self.faults.replays_events();
        let call = Call::new("GetContainerEvents", "", Conduct::Read);
        let events = forward!(self, call, runtime => async { runtime.subscribe(replay) })?;
        Ok(events::disturbed(events, self.faults.clone()))
    }

    async fn container_stats(&self, id: &str) -> Result<ContainerStats> {
        let id = id.to_owned();
        let call = self.read("ContainerStats", &id);
        forward!(self, call, runtime => runtime.container_stats(&id))
    }

    async fn list_container_stats(
        &self,
        filter: Option<ContainerStatsFilter>,
    ) -> Result<Vec<ContainerStats>> {
        let call = self.read("ListContainerStats", "");
        forward!(self, call, runtime => runtime.list_container_stats(filter))
    }

    async fn pod_sandbox_stats(&self, id: &str) -> Result<PodSandboxStats> {
        let id = id.to_owned();
        let call = self.read("PodSandboxStats", &id);
        forward!(self, call, runtime => runtime.pod_sandbox_stats(&id))
    }

    async fn list_pod_sandbox_stats(
        &self,
        filter: Option<PodSandboxStatsFilter>,
    ) -> Result<Vec<PodSandboxStats>> {
        let call = self.read("ListPodSandboxStats", "");
        forward!(self, call, runtime => runtime.list_pod_sandbox_stats(filter))
    }

    async fn list_images(&self, filter: Option<ImageFilter>) -> Result<Vec<Image>> {
        let call = self.read("ListImages", "");
        forward!(self, call, runtime => runtime.list_images(filter))
    }

    async fn image_status(&self, image: ImageSpec) -> Result<Option<Image>> {
        let call = self.read("ImageStatus", &image.image);
        forward!(self, call, runtime => runtime.image_status(image))
    }

    async fn pull_image(&self, request: PullImageRequest) -> Result<String> {
        let image = request.image.as_ref().map(|image| image.image.clone());
        let call = Call::new("PullImage", image.unwrap_or_default(), Conduct::Read);
        forward!(self, call, runtime => runtime.pull_image(request))
    }

    async fn remove_image(&self, image: ImageSpec) -> Result<()> {
        let call = self.change("RemoveImage", &image.image);
        forward!(self, call, runtime => runtime.remove_image(image))
    }

    async fn image_fs_info(&self) -> Result<ImageFsInfoResponse> {
        forward!(self, self.read("ImageFsInfo", ""), runtime => runtime.image_fs_info())
    }
}

fn sandbox_subject(request: &RunPodSandboxRequest) -> String {
    let metadata = request.config.clone().unwrap_or_default().metadata.unwrap_or_default();
    let PodSandboxMetadata { name, uid, namespace, attempt } = metadata;
    format!("{uid} {namespace}/{name}#{attempt}")
}

fn container_subject(request: &CreateContainerRequest) -> String {
    let metadata = request.config.as_ref().and_then(|config| config.metadata.clone());
    let ContainerMetadata { name, attempt } = metadata.unwrap_or_default();
    format!("{} {name}#{attempt}", request.pod_sandbox_id)
}
