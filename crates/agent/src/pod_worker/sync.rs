//! Syncs a pod: read, decide, act, read again.

use std::time::Duration;

use k8s_openapi::api::core::v1::{Pod, PodStatus};
use oarsman_cluster::ClusterError;
use oarsman_core::actions::{self, PodActions, SandboxAction, StartResults};
use oarsman_core::cri_spec::{ConfigError, VolumeFault};
use oarsman_core::event;
use oarsman_core::ids::SandboxId;
use oarsman_core::lifecycle::SyncOutcome;
use oarsman_core::pod::PodExt;
use oarsman_core::report::Activity;
use oarsman_core::start_error::{StartError, StartReason};
use oarsman_core::status::phase::Phase;
use oarsman_core::time::{Mono, wall_between};
use oarsman_core::view::PodView;
use oarsman_cri::CriError;
use oarsman_host::pod_cgroups::PodCgroupError;
use oarsman_state::FileError;

use super::container_config::GenerateConfigError;
use super::context::PodContext;
use super::objects::VolumeSources;
use super::work::{Cancel, Cancelled};
use super::{sandbox, starter, stopper};
use crate::runtime_health::RuntimeUnknown;
use crate::volume_manager::MountError;

/// A read of the pod that is older than this is not decided from.
const STALE: Duration = Duration::from_millis(500);

/// Why a sync went no further.
#[derive(Debug, thiserror::Error)]
pub(super) enum SyncError {
    #[error("cancelled")]
    Cancelled,
    #[error("network is not ready: {0}")]
    Network(String),
    #[error("the runtime's status is not known: {0}")]
    RuntimeUnknown(#[from] RuntimeUnknown),
    #[error(transparent)]
    Runtime(#[from] CriError),
    #[error(transparent)]
    Cgroup(#[from] PodCgroupError),
    #[error(transparent)]
    Files(#[from] FileError),
    #[error(transparent)]
    Mount(#[from] MountError),
    #[error(transparent)]
    Config(#[from] ConfigError),
    #[error(transparent)]
    GenerateConfig(#[from] GenerateConfigError),
    #[error(transparent)]
    Cluster(#[from] ClusterError),
    #[error(transparent)]
    Volume(Box<VolumeFault>),
}

impl From<Cancelled> for SyncError {
    fn from(_: Cancelled) -> Self {
        Self::Cancelled
    }
}

/// One sync: how it ended, and when the pod changes by itself.
pub(super) async fn sync_pod(
    context: &PodContext,
    pod: &Pod,
    cancel: &Cancel,
) -> (SyncOutcome, Option<Mono>) {
    let outcome = match try_sync_pod(context, pod, cancel).await {
        Ok(outcome) => outcome,
        Err(SyncError::Cancelled) => SyncOutcome::Cancelled,
        Err(error) => {
            tracing::warn!(pod = %context.name, uid = %context.uid, %error, "pod sync failed, will retry");
            context.publisher.set_sync_error(Some(error.to_string()));
            context.publish_and_record(pod).await;
            match error {
                SyncError::Network(_) => SyncOutcome::NetworkNotReady,
                error => SyncOutcome::Failed(error.to_string()),
            }
        }
    };
    (outcome, context.active_deadline(pod))
}

async fn try_sync_pod(
    context: &PodContext,
    pod: &Pod,
    cancel: &Cancel,
) -> Result<SyncOutcome, SyncError> {
    let view = match context.reader.take_first_read(context.now(), STALE) {
        Some(view) => view,
        None => cancel.race(context.read()).await?.inspect_err(|error| {
            context.node.recorder.record(pod, [event::status_unknown(error)]);
        })?,
    };
    let status = context.publish_and_record(pod).await;
    if is_terminal(&status) {
        return Ok(SyncOutcome::Terminal);
    }
    let runs = view.possibly_running().next().is_some();
    if runs && !cancel.race(update_cgroup(context, pod)).await?? {
        return Ok(SyncOutcome::CgroupGone);
    }
    if !view.sandboxes.iter().any(|sandbox| sandbox.ready) {
        cancel.race(sandbox::check_network(context, pod)).await??;
    }
    cancel.check()?;
    let read_at = context.now();
    prepare(context, pod, runs, cancel).await?;
    // A call that was given up long ago may have started a container meanwhile: a stale read is repeated.
    let is_fresh = context.now().since(read_at) < STALE;
    let view = if is_fresh { view } else { cancel.race(context.read()).await?? };
    context.reader.set_acted_on();
    let plan = compute_pod_actions(context, pod, &view, &status);
    let results = execute_actions(context, pod, &plan, cancel).await;
    if results.as_ref().map_or(true, |results| plan.changed_since_read(results)) {
        context.read().await?;
    }
    let before = Phase::of(&status);
    let status = context.publish_and_record(pod).await;
    if (before, Phase::of(&status)) == (Some(Phase::Pending), Some(Phase::Running)) {
        measure_start(context, pod);
    }
    let outcome = plan.sync_outcome(is_terminal(&status), results?);
    context.remove_garbage().await;
    Ok(outcome)
}

/// Makes what the pod holds besides its containers: its directories, then its cgroup and its volumes side by side.
async fn prepare(
    context: &PodContext,
    pod: &Pod,
    pod_runs: bool,
    cancel: &Cancel,
) -> Result<(), SyncError> {
    let sources = cancel.race(context.volume_sources(pod, pod_runs)).await??;
    let preparing = context.begin_activity(Activity::Preparing);
    make_pod_resources(context, pod, pod_runs, sources).await?;
    drop(preparing);
    context.objects.set_volumes_made();
    context.publisher.set_sync_error(None);
    Ok(())
}

async fn make_pod_resources(
    context: &PodContext,
    pod: &Pod,
    pod_runs: bool,
    sources: VolumeSources,
) -> Result<(), SyncError> {
    let (node, recorder) = (&context.node, &context.node.recorder);
    let directories = node.seams.pod_files.make_directories(pod).await;
    directories.inspect_err(|error| recorder.record(pod, [event::no_directories(error)]))?;
    let VolumeSources { payloads, claimed } = sources;
    let volumes = node.volume_manager.wait_for_attach_and_mount(pod, payloads, &claimed);
    // The cgroup of a pod that runs was there at the beginning of this sync. Were it gone since, a new one would hide that from the next sync.
    let cgroup = async { if pod_runs { Ok(()) } else { node.seams.cgroups.ensure(pod).await } };
    let (cgroup, volumes) = futures::join!(cgroup, volumes);
    let volumes = volumes.inspect_err(|error| recorder.record(pod, error.events()));
    cgroup.inspect_err(|error| recorder.record(pod, [event::no_pod_cgroup(error)]))?;
    Ok(volumes?)
}

/// Sets the values of the cgroup of a pod that runs, and returns whether it is there.
async fn update_cgroup(context: &PodContext, pod: &Pod) -> Result<bool, SyncError> {
    let updated = context.node.seams.cgroups.update(pod).await;
    let recorder = &context.node.recorder;
    Ok(updated.inspect_err(|error| recorder.record(pod, [event::no_pod_cgroup(error)]))?)
}

async fn execute_actions(
    context: &PodContext,
    pod: &Pod,
    plan: &PodActions,
    cancel: &Cancel,
) -> Result<StartResults, SyncError> {
    context.node.recorder.record(pod, plan.events.iter().cloned());
    cancel.check()?;
    // A stop that is dropped leaves no name behind, and a kill asks again with the time there is then.
    cancel.race(stopper::kill_containers(context, Some(pod), &plan.stop, None)).await??;
    cancel.check()?;
    stopper::stop_sandboxes(context, &plan.stop_sandboxes).await?;
    for removal in &plan.remove {
        cancel.check()?;
        context.node.seams.runtime.remove_container(removal.id.as_str()).await?;
        if !removal.why.keeps_log() {
            context.remove_log(&removal.id).await;
        }
    }
    let sandbox = match &plan.sandbox {
        SandboxAction::None => return Ok(StartResults::default()),
        SandboxAction::Keep(id) => id.clone(),
        SandboxAction::Create(new) => {
            cancel.race(sandbox::check_network(context, pod)).await??;
            cancel.check()?;
            create_sandbox(context, pod, new.attempt).await?
        }
    };
    starter::start_containers(context, pod, &sandbox, &plan.start, cancel).await
}

async fn create_sandbox(
    context: &PodContext,
    pod: &Pod,
    attempt: u32,
) -> Result<SandboxId, SyncError> {
    let id = sandbox::create_pod_sandbox(context, pod, attempt).await?;
    context.read().await.inspect_err(|error| {
        context.node.recorder.record(pod, [event::sandbox_status_unknown(error)]);
    })?;
    context.publish_and_record(pod).await;
    Ok(id)
}

fn is_terminal(status: &PodStatus) -> bool {
    Phase::of(status).is_some_and(Phase::is_terminal)
}

/// The actions for the pod now; the crash back-off is updated with them.
fn compute_pod_actions(
    context: &PodContext,
    pod: &Pod,
    view: &PodView,
    published: &PodStatus,
) -> PodActions {
    let now = context.node.seams.clock.now();
    let mut crashes = context.starter.crashes();
    let plan = context.node.decisions.compute_pod_actions(&actions::PodActionsInput {
        pod,
        view,
        probes: &context.probes.lock(),
        backoff: &crashes,
        published: Some(published),
        dead_kept: context.node.config.container_gc.kept_of_container(),
        now,
    });
    plan.record(&mut crashes, now);
    for wait in &plan.wait {
        let reason = StartReason::CrashLoopBackOff;
        let error = StartError { reason, message: wait.message.clone() };
        context.starter.set_error(&wait.name, error);
    }
    plan
}

/// All of the pod has been started for the first time.
fn measure_start(context: &PodContext, pod: &Pod) {
    if let Some(seen) = pod.first_seen() {
        let duration = wall_between(seen, context.node.seams.clock.wall());
        context.node.metrics.pod_start.observe_duration(duration);
    }
}
