//! The runtime for an agent: every call goes over the link of its incarnation.

mod events;

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use oarsman_cri::{Deadlines, EventStream, Result, Runtime, RuntimeLayer};
use oarsman_cri_types::v1::{
    ContainerMetadata, CreateContainerRequest, ExecSyncRequest, ExecSyncResponse,
    PodSandboxMetadata, PullImageRequest, RunPodSandboxRequest,
};

use super::FakeRuntime;
use crate::faults::Faults;
use crate::link::{AbandonPolicy, Link, LinkCall, LinkMiddleware};

/// The runtime over a link. Calls have the deadlines of a real client.
pub fn connect(
    runtime: FakeRuntime,
    link: Link,
    faults: Faults,
    deadlines: Deadlines,
) -> Arc<dyn Runtime> {
    let request = deadlines.request;
    let middleware = LinkMiddleware::new(link.clone(), request, policy);
    let inner = Arc::new(runtime.clone());
    Arc::new(LinkedRuntime { inner, middleware, runtime, link, faults, request })
}

/// Reads may be cancelled; everything else takes effect also when its caller is gone.
fn policy(call: &str) -> AbandonPolicy {
    let changes = ["Stop", "Remove", "Update", "Start", "Reopen", "Checkpoint"];
    let is_change = changes.iter().any(|change| call.starts_with(change));
    if is_change { AbandonPolicy::Change } else { AbandonPolicy::Read }
}

/// Calls without a method here have the deadline of an ordinary call.
struct LinkedRuntime {
    inner: Arc<dyn Runtime>,
    middleware: LinkMiddleware,
    runtime: FakeRuntime,
    link: Link,
    faults: Faults,
    /// How long an ordinary call may take.
    request: Duration,
}

#[async_trait]
impl RuntimeLayer for LinkedRuntime {
    type Middleware = LinkMiddleware;

    fn inner(&self) -> &Arc<dyn Runtime> {
        &self.inner
    }

    fn middleware(&self) -> &LinkMiddleware {
        &self.middleware
    }

    async fn run_pod_sandbox(&self, request: RunPodSandboxRequest) -> Result<String> {
        let (runtime, botched) = (self.runtime.clone(), request.clone());
        let call = LinkCall::new("RunPodSandbox", sandbox_subject(&request), AbandonPolicy::Change);
        let call = call.within(self.request.saturating_mul(2));
        let call = call.with_stale_name(move |time| runtime.reserve_sandbox_name(&botched, time));
        let inner = Arc::clone(&self.inner);
        self.link.call(call, async move { inner.run_pod_sandbox(request).await }).await
    }

    async fn create_container(&self, request: CreateContainerRequest) -> Result<String> {
        let (runtime, botched) = (self.runtime.clone(), request.clone());
        let call =
            LinkCall::new("CreateContainer", container_subject(&request), AbandonPolicy::Change);
        let call = call.within(self.request);
        let call = call.with_stale_name(move |time| runtime.reserve_container_name(&botched, time));
        let inner = Arc::clone(&self.inner);
        self.link.call(call, async move { inner.create_container(request).await }).await
    }

    async fn stop_container(&self, id: &str, grace: Duration) -> Result<()> {
        let (inner, id) = (Arc::clone(&self.inner), id.to_owned());
        let call = LinkCall::new("StopContainer", format!("{id} {grace:?}"), AbandonPolicy::Wait);
        let call = call.within(self.request.saturating_add(grace));
        self.link.call(call, async move { inner.stop_container(&id, grace).await }).await
    }

    async fn exec_sync(&self, request: ExecSyncRequest) -> Result<ExecSyncResponse> {
        let subject = format!("{} {:?}", request.container_id, request.cmd);
        let call = LinkCall::new("ExecSync", subject, AbandonPolicy::Wait);
        let call = match u64::try_from(request.timeout) {
            Err(_) | Ok(0) => call,
            Ok(timeout) => call.within(self.request.saturating_add(Duration::from_secs(timeout))),
        };
        let inner = Arc::clone(&self.inner);
        self.link.call(call, async move { inner.exec_sync(request).await }).await
    }

    async fn container_events(&self) -> Result<EventStream> {
        let (runtime, replay) = (self.runtime.clone(), self.faults.replays_events());
        let call = LinkCall::new("GetContainerEvents", "", AbandonPolicy::Read);
        let events = self.link.call(call, async move { runtime.subscribe(replay) }).await?;
        Ok(events::with_faults(events, self.faults.clone()))
    }

    async fn pull_image(&self, request: PullImageRequest) -> Result<String> {
        let image = request.image.as_ref().map(|image| image.image.clone());
        let call = LinkCall::new("PullImage", image.unwrap_or_default(), AbandonPolicy::Read);
        let inner = Arc::clone(&self.inner);
        self.link.call(call, async move { inner.pull_image(request).await }).await
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
