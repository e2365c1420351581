//! Kills a pod: containers in their order, then sandboxes, then a read whether nothing runs.

use k8s_openapi::api::core::v1::Pod;
use oarsman_core::lifecycle::{Grace, KillOutcome, KillReason};
use oarsman_cri::CriError;
use oarsman_sync::ordered_watch;

use super::context::PodContext;
use super::grace_budget::GraceShortened;
use super::stopper;

pub(super) async fn kill_pod(
    context: &PodContext,
    pod: Option<&Pod>,
    why: KillReason,
    grace: ordered_watch::Receiver<Grace>,
) -> KillOutcome {
    let (name, uid, seconds) = (&context.name, &context.uid, grace.get().seconds());
    tracing::info!(pod = %name, %uid, reason = %why, seconds, "killing pod");
    match stop_containers_and_sandboxes(context, pod, grace).await {
        Ok(true) => KillOutcome::Ok,
        Ok(false) => KillOutcome::StillRunning,
        Err(error) => KillOutcome::Failed(error.to_string()),
    }
}

/// Kills what runs of a pod that has ended, if anything does.
pub(super) async fn kill_leftovers(
    context: &PodContext,
    pod: Option<&Pod>,
    grace: ordered_watch::Receiver<Grace>,
) -> KillOutcome {
    match context.read().await {
        Ok(view) if view.nothing_runs() => KillOutcome::Ok,
        Ok(_) => kill_pod(context, pod, KillReason::Terminal, grace).await,
        Err(error) => KillOutcome::Failed(error.to_string()),
    }
}

/// Tells whether nothing runs any more.
async fn stop_containers_and_sandboxes(
    context: &PodContext,
    pod: Option<&Pod>,
    grace: ordered_watch::Receiver<Grace>,
) -> Result<bool, CriError> {
    let view = context.read().await?;
    let first = grace.get();
    let teardown = context.node.decisions.teardown(pod, &view, Some(first.seconds()));
    let shortened = Some(GraceShortened::new(grace));
    let stopped = stopper::kill_containers(context, pod, &teardown.stop, shortened).await;
    // A container that would not stop does not keep its sandbox: stopping that kills it.
    let sandboxes = stopper::stop_sandboxes(context, &teardown.sandboxes).await;
    let view = context.read().await?;
    stopped.and(sandboxes)?;
    Ok(view.nothing_runs())
}
