//! The trace: every call and its outcome, every change of a sandbox, container, object or file, in order.

use std::fmt::{self, Write};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::clock::WorldClock;
use crate::cluster::ClusterChange;
use crate::disk::DiskChange;
use crate::fnv::Fnv;
use crate::lock;

/// All entries so far; clones are the same trace.
#[derive(Debug, Clone)]
pub struct Trace {
    clock: WorldClock,
    seen: Arc<Mutex<TraceLog>>,
}

#[derive(Debug, Default)]
struct TraceLog {
    records: Vec<TraceRecord>,
    hash: Fnv,
}

/// An entry, and its time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TraceRecord {
    /// Virtual time since the world's start.
    pub at: Duration,
    /// The entry.
    pub entry: TraceEntry,
}

/// One entry of the trace.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(missing_docs, reason = "the fields' names say what they are")]
pub enum TraceEntry {
    /// A call came in.
    Called {
        /// Who called.
        caller: Caller,
        /// Name of the call.
        call: &'static str,
        /// The object of the call.
        subject: String,
        /// Its fault, if it has one.
        fault_kind: Option<&'static str>,
    },
    /// The caller got its answer, or was dropped before.
    Answered {
        /// Who had called.
        caller: Caller,
        /// The answer.
        outcome: CallOutcome,
    },
    /// A container changed.
    Container { target: TracedContainer, change: ContainerTransition },
    /// A sandbox changed.
    Sandbox { target: TracedSandbox, change: SandboxTransition },
    /// An image was removed from the node.
    ImageRemoved {
        /// The name of the image.
        image: String,
        /// Whether the runtime had said that it must stay.
        is_pinned: bool,
        /// A container that uses it and has not ended.
        user: Option<String>,
    },
    /// A pod's object changed.
    Cluster {
        /// UID of the pod.
        uid: String,
        /// Full name of the pod.
        name: String,
        change: ClusterChange,
    },
    /// A pod's resources on the machine changed.
    Disk {
        /// UID of the pod.
        uid: String,
        change: DiskChange,
    },
    /// A server got a request.
    Asked { url: String },
    /// A server answered a probe.
    Probed {
        url: String,
        /// Whether it is well.
        is_good: bool,
    },
    /// The API server goes away for this long.
    ClusterAway {
        /// How long it is away.
        down: Duration,
    },
    /// The runtime goes away for this long.
    RuntimeRestarted {
        /// How long it is away.
        down: Duration,
    },
    /// The runtime has no network for pods for this long.
    NetworkLost {
        /// How long there is none.
        down: Duration,
    },
    /// An incarnation of the agent started.
    AgentStarted(u32),
    /// An incarnation of the agent ended.
    AgentStopped(u32),
}

/// An incarnation of the agent, and the number of the call in the world.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Caller {
    /// The incarnation.
    pub incarnation: u32,
    /// The call, counted over all incarnations.
    pub number: u64,
}

/// The outcome of a call for its caller.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CallOutcome {
    /// Success.
    Fine,
    /// An error of that kind.
    Failed(String),
    /// The caller was dropped before the answer.
    Abandoned,
}

/// The identity of a container.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct TracedContainer {
    /// UID of the pod.
    pub pod_uid: String,
    /// Name in the pod.
    pub name: String,
    /// The number of its start.
    pub attempt: u32,
    /// The runtime's id.
    pub id: String,
}

/// The identity of a sandbox.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct TracedSandbox {
    /// UID of the pod.
    pub pod_uid: String,
    /// Namespace of the pod.
    pub namespace: String,
    /// Name of the pod.
    pub name: String,
    /// The number of the sandbox within its pod.
    pub attempt: u32,
    /// The runtime's id.
    pub id: String,
}

/// Changes of containers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ContainerTransition {
    /// It was made.
    Created,
    /// Its process began.
    Started,
    /// Its process was sent a signal of that number.
    Signalled(u8),
    /// Its process ended, or never began and never will.
    Exited {
        /// Exit code.
        code: i32,
        /// Why, in a word.
        reason: &'static str,
    },
    /// The runtime has lost track of it.
    Lost,
    /// It was removed.
    Removed,
}

/// Changes of sandboxes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SandboxTransition {
    /// It was made, and is ready.
    Started,
    /// It was stopped, and has no network any more.
    Stopped,
    /// Its own process ended without being stopped.
    Died,
    /// It was removed.
    Removed,
}

impl Trace {
    /// A trace without records.
    pub fn new(clock: WorldClock) -> Self {
        Self { clock, seen: Arc::default() }
    }

    /// Adds an entry with the current time.
    pub fn append(&self, entry: TraceEntry) {
        let record = TraceRecord { at: self.clock.elapsed(), entry };
        let mut seen = lock(&self.seen);
        // Writing to a hash cannot fail.
        writeln!(seen.hash, "{record}").ok();
        seen.records.push(record);
    }

    /// Virtual time since the world's start.
    pub(crate) fn elapsed(&self) -> Duration {
        self.clock.elapsed()
    }

    /// All records so far.
    pub fn records(&self) -> Vec<TraceRecord> {
        lock(&self.seen).records.clone()
    }

    /// How many records there are.
    pub fn len(&self) -> usize {
        lock(&self.seen).records.len()
    }

    /// Whether there are no records yet.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The hash (FNV-1a, 64 bits) of all records as text: equal for equal simulations.
    pub fn hash(&self) -> u64 {
        lock(&self.seen).hash.value()
    }
}

impl fmt::Display for TraceRecord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:>10}.{:03} {}", self.at.as_secs(), self.at.subsec_millis(), self.entry)
    }
}

impl fmt::Display for TraceEntry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Called { caller, call, subject, fault_kind } => {
                write!(f, "{caller} {call} {subject}")?;
                fault_kind.map_or(Ok(()), |fault_kind| write!(f, " ({fault_kind})"))
            }
            Self::Answered { caller, outcome } => write!(f, "{caller} {outcome}"),
            Self::Container { target, change } => write!(f, "container {target} {change}"),
            Self::Sandbox { target, change } => write!(f, "sandbox {target} {change}"),
            Self::ImageRemoved { image, is_pinned, user } => {
                let pinned = if *is_pinned { ", which is pinned" } else { "" };
                let user = user.as_deref().unwrap_or("nobody");
                write!(f, "image {image}{pinned} removed, used by {user}")
            }
            Self::Cluster { uid, name, change } => write!(f, "object {uid} {name} {change}"),
            Self::Disk { uid, change } => write!(f, "pod {uid} {change}"),
            Self::Asked { url } => write!(f, "asked for {url}"),
            Self::Probed { url, is_good: true } => write!(f, "well when asked for {url}"),
            Self::Probed { url, is_good: false } => write!(f, "unwell when asked for {url}"),
            Self::ClusterAway { down } => write!(f, "API server away for {down:?}"),
            Self::RuntimeRestarted { down } => write!(f, "runtime away for {down:?}"),
            Self::NetworkLost { down } => write!(f, "no network for pods for {down:?}"),
            Self::AgentStarted(incarnation) => write!(f, "life {incarnation} began"),
            Self::AgentStopped(incarnation) => write!(f, "life {incarnation} ended"),
        }
    }
}

impl fmt::Display for Caller {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "life {} call {}", self.incarnation, self.number)
    }
}

impl fmt::Display for CallOutcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Fine => f.write_str("is fine"),
            Self::Failed(kind) => write!(f, "failed: {kind}"),
            Self::Abandoned => f.write_str("was abandoned"),
        }
    }
}

impl fmt::Display for TracedContainer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}#{} {}", self.pod_uid, self.name, self.attempt, self.id)
    }
}

impl fmt::Display for TracedSandbox {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { pod_uid, namespace, name, attempt, id } = self;
        write!(f, "{pod_uid} {namespace}/{name}#{attempt} {id}")
    }
}

impl fmt::Display for ContainerTransition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Created => f.write_str("created"),
            Self::Started => f.write_str("started"),
            Self::Signalled(number) => write!(f, "sent signal {number}"),
            Self::Exited { code, reason } => write!(f, "exited with {code} ({reason})"),
            Self::Lost => f.write_str("lost"),
            Self::Removed => f.write_str("removed"),
        }
    }
}

impl fmt::Display for SandboxTransition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Started => "started",
            Self::Stopped => "stopped",
            Self::Died => "died",
            Self::Removed => "removed",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn the_hash_tells_order_content_and_time_apart() {
        let hash = async |lives: &[u32], wait: Duration| {
            let trace = Trace::new(WorldClock::start());
            for incarnation in lives {
                trace.append(TraceEntry::AgentStarted(*incarnation));
                tokio::time::sleep(wait).await;
            }
            trace.hash()
        };
        let (short, long) = (Duration::from_millis(1), Duration::from_millis(2));
        let first = hash(&[1, 2], short).await;
        assert_eq!(hash(&[1, 2], short).await, first);
        for (lives, wait) in [([2, 1], short), ([1, 3], short), ([1, 2], long)] {
            assert_ne!(hash(&lives, wait).await, first, "{lives:?} {wait:?}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_record_is_printed_as_one_line() {
        let trace = Trace::new(WorldClock::start());
        tokio::time::sleep(Duration::from_millis(1_250)).await;
        trace.append(TraceEntry::Called {
            caller: Caller { incarnation: 1, number: 7 },
            call: "StopContainer",
            subject: "abc".to_owned(),
            fault_kind: Some("hangs"),
        });
        let shown = trace.records()[0].to_string();
        assert_eq!(shown.trim_start(), "1.250 life 1 call 7 StopContainer abc (hangs)");
    }
}
