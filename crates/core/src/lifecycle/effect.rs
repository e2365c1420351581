//! What a pod's worker wants done.

use std::fmt;
use std::sync::Arc;

use k8s_openapi::api::core::v1::Pod;

use crate::event::PodEvent;
use crate::pod::PodExt;
use crate::time::Mono;

use super::event::{Hint, KillRequester, PodFailure};
use super::grace::Grace;

/// Something for the shell to do. Names that begin with `Start` are pieces of work that take time or can fail.
#[derive(Clone, Debug, PartialEq)]
#[expect(missing_docs, reason = "the fields' names say what they are")]
pub enum Effect {
    /// Read the runtime's state of the pod and its record for the first time. Answered by [`super::Event::ReadDone`].
    StartRead { pod: Option<Arc<Pod>> },
    /// Make the pod run as its spec says. Answered by [`super::Event::SyncDone`].
    StartSync {
        pod: Arc<Pod>,
        /// What made us look.
        why: SyncReason,
    },
    /// Let the sync end soon: waits are dropped, a call that changes the runtime runs on. No answer of its own.
    CancelSync,
    /// Stop every container, then every sandbox, and see that nothing runs. Answered by [`super::Event::KillDone`].
    StartKill {
        /// The pod; none for an orphan, whose containers carry what is needed.
        pod: Option<Arc<Pod>>,
        /// How long it has to stop by itself.
        grace: Grace,
        /// Why it must stop.
        why: KillReason,
    },
    /// The kill under way has only this long from now on. No answer of its own.
    ShortenKill {
        /// How long the pod has to stop by itself.
        grace: Grace,
    },
    /// A pod that is going down is not to be restarted: no more liveness and startup probes. Readiness goes on.
    StopLivenessProbes,
    /// Nothing is left to probe.
    StopProbes,
    /// Make the pod's status of what was last read, and hand it to the status manager. Nothing is waited for.
    Publish {
        pod: Arc<Pod>,
        /// How far it has come.
        termination: TerminationStage,
        /// What the node has to say about its end.
        failure: Option<PodFailure>,
    },
    /// Nothing of the pod runs any more: what admission counts for it is free.
    Stopped,
    /// Release what the pod held. Answered by [`super::Event::ReleaseDone`].
    StartRelease(HeldResource),
    /// Write the status that was published last to disk, so that it survives the machine. Answered by
    /// [`super::Event::RecordDone`].
    StartRecord,
    /// The API object may be deleted (with grace 0) as soon as the API server has the terminal status.
    AllowDelete,
    /// Everything is released: the pod's name is free. Keep the worker while a source holds the pod, so that it is
    /// not started again.
    Finished,
    /// Look whether anything runs of a pod that has ended, and kill it. Answered by [`super::Event::KillDone`].
    StartKillLeftovers { pod: Option<Arc<Pod>> },
    /// No source holds this pod any more: remove its containers, sandboxes and files. Answered by
    /// [`super::Event::CleanupDone`].
    StartCleanup,
    /// Nothing is left of the pod: end the worker.
    Forget,
    /// Tell people what happened to the pod.
    Record {
        pod: Arc<Pod>,
        /// The event to record.
        event: PodEvent,
    },
    /// Wake me then; replaces any earlier one.
    WakeAt(Mono),
}

/// How far a pod has come on its way out, which decides what its status may say.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum TerminationStage {
    /// It is being stopped: its phase must not be terminal yet, for something may still run.
    Terminating,
    /// Nothing runs: its phase is terminal now.
    Stopped,
    /// Everything of the pod is released: no status follows this one.
    Released,
}

/// What a pod holds besides its containers, in the order in which it is given back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum HeldResource {
    /// Its volumes, and the secrets and config maps watched for it.
    Volumes,
    /// Its cgroup and whatever else of the node's was its own.
    Cgroup,
}

/// What made us look at a pod. In order of urgency, the least first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum SyncReason {
    /// Its time had come.
    Due,
    /// Something may have changed.
    Hinted(Hint),
    /// It was killed because its cgroup had vanished, and is built up again.
    Reset,
    /// Its source says something new.
    Updated,
    /// It is new here.
    First,
}

/// Why a pod must stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum KillReason {
    /// Its deletion was asked for.
    Deleted,
    /// Its phase is terminal.
    Terminal,
    /// Its source no longer holds it.
    Removed,
    /// It was not admitted.
    Rejected,
    /// Only the runtime knows of it.
    Orphan,
    /// Its cgroup vanished; it will be built up again.
    CgroupGone,
    /// A component of this node asked for it.
    Asked(KillRequester),
}

impl KillReason {
    /// Why the pod must stop by what its source says of it.
    pub(super) fn of(pod: &Pod) -> Option<Self> {
        match (pod.is_deleting(), pod.has_terminal_phase()) {
            (true, _) => Some(Self::Deleted),
            (false, true) => Some(Self::Terminal),
            (false, false) => None,
        }
    }
}

impl SyncReason {
    /// Whether it can wait until a pod that just failed has calmed down.
    pub(super) fn can_wait(self) -> bool {
        self < Self::Reset
    }
}

impl fmt::Display for KillReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Deleted => f.write_str("its deletion was asked for"),
            Self::Terminal => f.write_str("it has nothing more to run"),
            Self::Removed => f.write_str("its source no longer holds it"),
            Self::Rejected => f.write_str("it was not admitted to this node"),
            Self::Orphan => f.write_str("no source knows of it"),
            Self::CgroupGone => f.write_str("its cgroup vanished"),
            Self::Asked(killer) => killer.fmt(f),
        }
    }
}
