//! The events that a pod's worker handles.

use std::fmt;
use std::sync::Arc;

use k8s_openapi::api::core::v1::Pod;

use crate::time::Mono;

/// An event for a pod's worker.
#[derive(Clone, Debug, PartialEq)]
pub enum Event {
    /// This is the pod as its source has it now. Its deletion, when asked for, is in there too.
    Wanted(Arc<Pod>),
    /// The source no longer holds the pod.
    Removed,
    /// A component of this node asks for the pod to be killed.
    Kill(KillRequest),
    /// Something may have changed: read the runtime's state again.
    Hint(Hint),
    /// The timer is due.
    Wake,
    /// The first read has ended: whether nothing of the pod runs, or why it could not be read.
    ReadDone(Result<bool, String>),
    /// The sync has ended.
    SyncDone {
        /// The result, which decides when the next sync is.
        outcome: SyncOutcome,
        /// When the pod changes by itself, whatever the outcome: its active deadline.
        look_again: Option<Mono>,
    },
    /// The kill has ended.
    KillDone(KillOutcome),
    /// The release of the part asked for has ended.
    ReleaseDone(Result<(), String>),
    /// The record of the pod's end has been written, or not.
    RecordDone(Result<(), String>),
    /// The clean-up has ended.
    CleanupDone(Result<(), String>),
}

/// Why to read again. In order of how little each tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Hint {
    /// The relist found a difference.
    Relist,
    /// The runtime said that a container or the sandbox changed.
    Runtime,
    /// A probe's result changed.
    Probe,
    /// The node changed under the pod: a volume, a device, a secret.
    Node,
}

/// A request of a component of this node to kill a pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KillRequest {
    /// The part of the agent that asks.
    pub by: KillRequester,
    /// Seconds the pod has to stop by itself; none leaves it to the pod.
    pub grace: Option<i64>,
    /// What its status shall say about it.
    pub failure: Option<PodFailure>,
}

/// The component of this node that asks for a kill.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum KillRequester {
    /// The node runs out of something.
    Eviction,
    /// A critical pod needs the room.
    Preemption,
    /// The node shuts down.
    Shutdown,
}

/// Why the node ended a pod: its status becomes Failed with this.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PodFailure {
    /// Whether the pod was turned away or cut short.
    pub kind: PodFailureKind,
    /// The one word that tools match on, such as `Evicted`.
    pub reason: String,
    /// The sentence that a person reads.
    pub message: String,
}

/// What sort of end a pod was put to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum PodFailureKind {
    /// It was never admitted: its status has no containers.
    Rejected,
    /// It ran and was cut short: its status has the condition `DisruptionTarget`.
    Disrupted,
}

impl KillRequest {
    /// Two requests as one: the shortest grace and the first failure count.
    #[must_use]
    pub fn and(self, later: Self) -> Self {
        Self {
            by: self.by,
            grace: [self.grace, later.grace].into_iter().flatten().min(),
            failure: self.failure.or(later.failure),
        }
    }
}

impl PodFailure {
    /// For a pod that was not admitted.
    pub fn rejected(reason: &str, message: &str) -> Self {
        let message = format!("Pod was rejected: {message}");
        Self { kind: PodFailureKind::Rejected, reason: reason.to_owned(), message }
    }

    /// For a pod that the node cuts short: `Evicted`, `Preempting`, `Terminated`.
    pub fn disrupted(reason: &str, message: impl Into<String>) -> Self {
        let message = message.into();
        Self { kind: PodFailureKind::Disrupted, reason: reason.to_owned(), message }
    }
}

/// How a sync ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SyncOutcome {
    /// All is as it should be.
    Ok,
    /// The pod's phase became terminal: there is nothing more to run.
    Terminal,
    /// The pod's cgroup vanished under running containers: nothing was done, all of them must go first.
    CgroupGone,
    /// Something is held back.
    BackOff {
        /// When the first back-off ends.
        until: Mono,
    },
    /// The runtime's network is not up.
    NetworkNotReady,
    /// It failed, and this is why.
    Failed(String),
    /// It was told to stop, and did.
    Cancelled,
}

/// How a kill ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KillOutcome {
    /// Nothing of the pod runs, and the runtime says so.
    Ok,
    /// The runtime took every call, and yet something still runs.
    StillRunning,
    /// It failed, and this is why.
    Failed(String),
}

impl fmt::Display for KillRequester {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Eviction => "the node runs out of something",
            Self::Preemption => "a critical pod needs the room",
            Self::Shutdown => "the node shuts down",
        })
    }
}
