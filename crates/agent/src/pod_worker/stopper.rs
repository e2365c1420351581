//! Stops containers and sandboxes: preStop hooks first, then the containers that come before, then the runtime; all of it within the
//! grace period.

use std::collections::BTreeSet;
use std::time::Duration;

use futures::future::join_all;
use k8s_openapi::api::core::v1::{LifecycleHandler, Pod};
use oarsman_core::actions::ContainerToKill;
use oarsman_core::event::PodEvent;
use oarsman_core::ids::{ContainerId, SandboxId};
use oarsman_core::report::Activity;
use oarsman_cri::CriError;
use oarsman_sync::ordered_watch;

use super::context::PodContext;
use super::grace_budget::{GraceBudget, GraceShortened};
use super::handler::{HandlerError, HandlerRunner};
use crate::container_lifecycle::ContainerRef;

/// Stops containers side by side, each in its turn. A failure holds up no other container.
pub(super) async fn kill_containers(
    context: &PodContext,
    pod: Option<&Pod>,
    stops: &[ContainerToKill],
    shortened: Option<GraceShortened>,
) -> Result<(), CriError> {
    context.record_events(pod, stops.iter().map(ContainerToKill::event));
    let ended = ordered_watch::Sender::new(BTreeSet::new());
    let each = stops.iter().map(|stop| {
        let budget = GraceBudget::new(context, stop.grace, shortened.clone());
        kill_container(context, pod, stop, budget, &ended)
    });
    join_all(each).await.into_iter().collect()
}

/// Stops sandboxes. A failure holds up no other sandbox.
pub(super) async fn stop_sandboxes(
    context: &PodContext,
    ids: &[SandboxId],
) -> Result<(), CriError> {
    let runtime = &context.node.seams.runtime;
    let each = ids.iter().map(|id| runtime.stop_pod_sandbox(id.as_str()));
    join_all(each).await.into_iter().collect()
}

async fn kill_container(
    context: &PodContext,
    pod: Option<&Pod>,
    stop: &ContainerToKill,
    mut budget: GraceBudget<'_>,
    ended: &ordered_watch::Sender<BTreeSet<ContainerId>>,
) -> Result<(), CriError> {
    let container = ContainerRef { pod: &context.uid, name: &stop.name, id: Some(&stop.id) };
    if let Some(hook) = &stop.pre_stop {
        let _running = context.begin_container_activity(&stop.name, Activity::PreStop);
        run_pre_stop(context, pod, stop, hook, &mut budget).await;
    }
    let stopping = Activity::Stopping(budget.remaining().stop_timeout());
    let _stopping = context.begin_container_activity(&stop.name, stopping);
    let mut others = ended.subscribe();
    let is_its_turn = |ended: &BTreeSet<_>| stop.after.iter().all(|id| ended.contains(id));
    // Those that come before have ended, or there is no time left to wait for them.
    budget.spend(async { others.wait_for(is_its_turn).await.is_ok() }).await;
    context.node.container_lifecycle.pre_stop(&container).await;
    let stopped = call_runtime(context, &stop.id, &mut budget).await;
    if stopped.is_ok() {
        context.post_stop(&container).await;
    }
    // Also one that would not stop lets the others have their turn.
    ended.send_modify(|ended| {
        ended.insert(stop.id.clone());
    });
    stopped
}

/// Calls the runtime, and again with less grace when there is less time than was said.
async fn call_runtime(
    context: &PodContext,
    id: &ContainerId,
    budget: &mut GraceBudget<'_>,
) -> Result<(), CriError> {
    let runtime = &context.node.seams.runtime;
    loop {
        let grace = Duration::from_secs(budget.remaining().stop_timeout().unsigned_abs());
        tokio::select! {
            biased;
            stopped = runtime.stop_container(id.as_str(), grace) => return stopped,
            () = budget.shorten() => {}
        }
    }
}

/// Runs the preStop hook for as long as there is time. One that fails does not keep the container from being stopped.
async fn run_pre_stop(
    context: &PodContext,
    pod: Option<&Pod>,
    stop: &ContainerToKill,
    hook: &LifecycleHandler,
    budget: &mut GraceBudget<'_>,
) {
    let runner = HandlerRunner { context, pod, id: &stop.id, name: &stop.name };
    let error = match budget.spend(runner.run(hook)).await {
        Some(Ok(())) => return,
        // A sleep that is cut short has not failed.
        None if hook.sleep.is_some() => return,
        Some(Err(error)) => error,
        None => HandlerError::Overdue,
    };
    let container = stop.name.as_str();
    tracing::warn!(pod = %context.name, uid = %context.uid, container, %error, "preStop hook failed");
    // What a hook prints may be secret, and events are for many eyes.
    let event = PodEvent::warning("FailedPreStopHook", "PreStopHook failed");
    let event = match stop.kind {
        Some(kind) => event.about(kind, &stop.name),
        None => event,
    };
    context.record_events(pod, [event]);
}
