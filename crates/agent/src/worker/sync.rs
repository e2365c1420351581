//! Making a pod run as its spec says: look, decide, do, look again.

use std::time::Duration;

use k8s_openapi::api::core::v1::{Pod, PodStatus};
use oarsman_cluster::ClusterError;
use oarsman_core::actions::{self, Plan, SandboxStep};
use oarsman_core::config::{ConfigError, Payloads, VolumeFault};
use oarsman_core::event;
use oarsman_core::ids::SandboxId;
use oarsman_core::lifecycle::SyncOutcome;
use oarsman_core::report::Activity;
use oarsman_core::start_error::{StartError, StartReason};
use oarsman_core::status::deadline::{self, Deadline};
use oarsman_core::status::phase::Phase;
use oarsman_core::time::Mono;
use oarsman_core::view::PodView;
use oarsman_cri::CriError;

use super::room::Room;
use super::start::{self, Started};
use super::stop;
use super::work::{Cancel, Cancelled};
use oarsman_host::pod_cgroups::PodCgroupError;
use oarsman_state::FileError;

use crate::volume_manager::MountError;

/// After this long a look at the pod is not one any more.
const STALE: Duration = Duration::from_millis(500);

/// Why a sync went no further.
#[derive(Debug, thiserror::Error)]
pub(super) enum SyncError {
    #[error("cancelled")]
    Cancelled,
    #[error("the runtime's network is not ready: {0}")]
    Network(CriError),
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
pub(super) async fn sync(room: &Room, pod: &Pod, cancel: &Cancel) -> (SyncOutcome, Option<Mono>) {
    let outcome = match attempt(room, pod, cancel).await {
        Ok(outcome) => outcome,
        Err(SyncError::Cancelled) => SyncOutcome::Cancelled,
        Err(error) => {
            tracing::warn!(pod = %room.name, %error, "the pod is not as it should be yet");
            room.memory().held_by = Some(error.to_string());
            room.publish(pod, None, None).await;
            match error {
                SyncError::Network(_) => SyncOutcome::NetworkNotReady,
                error => SyncOutcome::Failed(error.to_string()),
            }
        }
    };
    (outcome, room.deadline(pod))
}

async fn attempt(room: &Room, pod: &Pod, cancel: &Cancel) -> Result<SyncOutcome, SyncError> {
    let view = match room.take_first_look(STALE) {
        Some(view) => view,
        None => cancel.race(room.look()).await?.inspect_err(|error| {
            room.node.recorder.record(pod, [event::status_unknown(error)]);
        })?,
    };
    let status = room.publish(pod, None, None).await;
    if is_over(&status) {
        return Ok(SyncOutcome::Terminal);
    }
    let runs = view.possibly_running().next().is_some();
    if runs && !cancel.race(room.node.seams.cgroups.exists(&room.uid)).await?? {
        return Ok(SyncOutcome::CgroupGone);
    }
    cancel.check()?;
    let looked = room.now();
    let payloads = cancel.race(room.payloads(pod)).await??;
    let preparing = room.busy(Activity::Preparing);
    prepare(room, pod, payloads).await?;
    room.memory().has_volumes = true;
    drop(preparing);
    room.memory().held_by = None;
    // A call that we gave up long ago may have started a container meanwhile: what is decided is decided from a fresh look.
    let fresh = room.now().since(looked) < STALE;
    let view = if fresh { view } else { cancel.race(room.look()).await?? };
    let plan = room.plan(pod, &view, &status);
    let started = carry_out(room, pod, &plan, cancel).await;
    if !is_as_seen(&plan, &started) {
        room.look().await?;
    }
    let status = room.publish(pod, None, None).await;
    let outcome = conclude(&plan, &status, started?);
    if outcome == SyncOutcome::Ok && !plan.start.is_empty() {
        room.has_started();
    }
    room.sweep().await;
    Ok(outcome)
}

/// Makes what the pod holds besides its containers: its directories, then its cgroup and its volumes side by side.
async fn prepare(room: &Room, pod: &Pod, payloads: Payloads) -> Result<(), SyncError> {
    let node = &room.node;
    node.seams.pod_files.make_directories(pod).await?;
    let volumes = node.volume_manager.wait_for_attach_and_mount(pod, payloads);
    let (cgroup, volumes) = futures::join!(node.seams.cgroups.ensure(pod), volumes);
    cgroup?;
    Ok(volumes?)
}

/// Whether nothing has been done to the pod since it was looked at.
fn is_as_seen(plan: &Plan, started: &Result<Started, SyncError>) -> bool {
    let Plan { stop, stop_sandboxes, remove, start, sandbox, .. } = plan;
    let nothing = stop.is_empty() && stop_sandboxes.is_empty() && remove.is_empty();
    let no_start = start.is_empty() && !matches!(sandbox, SandboxStep::Create(_));
    started.as_ref().is_ok_and(|started| started.seen || (nothing && no_start))
}

async fn carry_out(
    room: &Room,
    pod: &Pod,
    plan: &Plan,
    cancel: &Cancel,
) -> Result<Started, SyncError> {
    room.node.recorder.record(pod, plan.events.iter().cloned());
    cancel.check()?;
    // A stop that is dropped leaves no name behind, and a kill asks again with what time there is then.
    cancel.race(stop::all(room, Some(pod), &plan.stop, None)).await??;
    cancel.check()?;
    stop::sandboxes(room, &plan.stop_sandboxes).await?;
    for removal in &plan.remove {
        cancel.check()?;
        room.node.seams.runtime.remove_container(removal.id.as_str()).await?;
        if !removal.why.keeps_log() {
            room.discard_log(&removal.id).await;
        }
    }
    let sandbox: SandboxId = match &plan.sandbox {
        SandboxStep::None => return Ok(Started::default()),
        SandboxStep::Keep(id) => id.clone(),
        SandboxStep::Create(new) => {
            cancel.check()?;
            let id = start::sandbox(room, pod, new.attempt).await?;
            room.look().await.inspect_err(|error| {
                room.node.recorder.record(pod, [event::sandbox_status_unknown(error)]);
            })?;
            room.publish(pod, None, None).await;
            id
        }
    };
    start::containers(room, pod, &sandbox, &plan.start, cancel).await
}

/// What a sync comes to that did what it could.
fn conclude(plan: &Plan, status: &PodStatus, started: Started) -> SyncOutcome {
    let held = [plan.next_look(), started.until].into_iter().flatten().min();
    // A pod of which nothing is ever to be started again has ended, also when its phase cannot tell yet.
    let over = is_over(status) || plan.over.is_some();
    match (over, started.failed, held) {
        (true, _, _) => SyncOutcome::Terminal,
        (false, Some(error), _) => SyncOutcome::Failed(error),
        (false, None, Some(until)) => SyncOutcome::BackOff { until },
        (false, None, None) => SyncOutcome::Ok,
    }
}

fn is_over(status: &PodStatus) -> bool {
    Phase::of(status).is_some_and(Phase::is_terminal)
}

impl Room {
    /// What to do now; the back-off hears of it.
    fn plan(&self, pod: &Pod, view: &PodView, published: &PodStatus) -> Plan {
        let mut memory = self.memory();
        let now = self.node.seams.clock.now();
        let plan = self.node.decisions.plan(&actions::Input {
            pod,
            view,
            probes: &memory.probes,
            backoff: &memory.crashes,
            published: Some(published),
            now,
        });
        plan.record(&mut memory.crashes, now);
        for wait in &plan.wait {
            let error =
                StartError { reason: StartReason::CrashLoopBackOff, message: wait.message.clone() };
            memory.start_errors.insert(wait.name.clone(), error);
        }
        plan
    }

    /// When the pod's active deadline passes.
    fn deadline(&self, pod: &Pod) -> Option<Mono> {
        let memory = self.memory();
        let status = memory.status.as_ref()?;
        match deadline::check(pod, status, self.node.seams.clock.wall()) {
            Deadline::In(left) => Some(self.now() + left),
            Deadline::None | Deadline::Exceeded => None,
        }
    }

    pub(super) fn now(&self) -> Mono {
        self.node.seams.clock.mono()
    }
}
