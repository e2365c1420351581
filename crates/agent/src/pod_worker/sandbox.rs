//! Creates the pod's sandbox.

use std::fmt;

use k8s_openapi::api::core::v1::Pod;
use oarsman_core::event::{self, PodEvent};
use oarsman_core::ids::SandboxId;
use oarsman_core::pod::PodExt;
use oarsman_core::report::Activity;
use oarsman_cri::CriError;
use oarsman_cri_types::v1::RunPodSandboxRequest;

use super::container_config;
use super::context::PodContext;
use super::sync::SyncError;

/// Creates the pod's sandbox, or finds the one that an earlier call created though it seemed to fail.
pub(super) async fn create_pod_sandbox(
    context: &PodContext,
    pod: &Pod,
    attempt: u32,
) -> Result<SandboxId, SyncError> {
    let attempt = context.starter.reserved().free_sandbox(attempt);
    let request = request(context, pod, attempt).await?;
    let (began, handler) = (context.now(), request.runtime_handler.clone());
    let has_user_namespace = pod.spec().and_then(|spec| spec.host_users) == Some(false);
    if has_user_namespace {
        context.node.metrics.started_user_namespaces.increment();
    }
    let creating = context.begin_activity(Activity::MakingSandbox);
    let answer = context.node.seams.runtime.run_pod_sandbox(request).await;
    drop(creating);
    let error = match answer {
        Ok(id) => {
            let duration = context.now().since(began);
            context.node.metrics.sandboxes.observe_duration(handler, duration);
            return Ok(SandboxId::from(id));
        }
        Err(error) => error,
    };
    context.node.metrics.sandbox_errors.increment(handler);
    if has_user_namespace {
        context.node.metrics.user_namespace_errors.increment();
    }
    let view = context.read().await?;
    if let Some(id) = context.node.decisions.adopted_sandbox(&view, attempt) {
        return Ok(id);
    }
    if error.is_name_reserved() {
        context.starter.reserved().reserve_sandbox(attempt);
    }
    context.node.recorder.record(pod, [not_created(&error)]);
    Err(classify_sandbox_error(context, pod, error).await)
}

async fn request(
    context: &PodContext,
    pod: &Pod,
    attempt: u32,
) -> Result<RunPodSandboxRequest, SyncError> {
    let sandbox = match container_config::generate_pod_sandbox_config(context, pod, attempt).await {
        Ok(sandbox) => sandbox,
        Err(error) => {
            context.node.recorder.record(pod, [not_created(&error)]);
            return Err(error.into());
        }
    };
    let warnings = sandbox.warnings.iter().map(|warning| warning.event(pod));
    context.node.recorder.record(pod, warnings);
    Ok(RunPodSandboxRequest { config: Some(sandbox.config), runtime_handler: sandbox.handler })
}

fn not_created(error: &impl fmt::Display) -> PodEvent {
    PodEvent::warning("FailedCreatePodSandBox", format!("Failed to create pod sandbox: {error}"))
}

/// Fails while the runtime has no network for the pod, so that nothing is made for it; a pod of the node's network needs none.
pub(super) async fn check_network(context: &PodContext, pod: &Pod) -> Result<(), SyncError> {
    if pod.host_network() {
        return Ok(());
    }
    match context.node.runtime_health.network_trouble(&context.node).await? {
        None => Ok(()),
        Some(why) => Err(network_not_ready(context, pod, why)),
    }
}

/// Whether a sandbox could not be created for want of a network, which is worth trying sooner.
async fn classify_sandbox_error(context: &PodContext, pod: &Pod, error: CriError) -> SyncError {
    let health = context.node.runtime_health.query(&context.node, false).await;
    let trouble = health.ok().and_then(|health| health.network_trouble);
    match trouble.filter(|_| !pod.host_network()) {
        Some(why) => network_not_ready(context, pod, why),
        None => SyncError::Runtime(error),
    }
}

fn network_not_ready(context: &PodContext, pod: &Pod, why: String) -> SyncError {
    context.node.recorder.record(pod, [event::network_not_ready(&why)]);
    SyncError::Network(why)
}
