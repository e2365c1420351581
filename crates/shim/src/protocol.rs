//! What agent and shim say to each other: frames of JSON over a unix socket, with descriptors beside some of them.
//!
//! The shim says [`ShimHello`] first. Then the agent sends [`RequestFrame`]s, and each gets at least one [`ReplyFrame`] with its number. A shim may be
//! older or newer than the agent: fields that one side does not know are ignored, fields that it misses have defaults, and a request that it
//! does not know is answered with [`RefusalKind::UnknownRequest`]. [`PROTOCOL`] is raised only when that is not enough.

use std::path::PathBuf;

use jiff::Timestamp;
use oci_spec::runtime::{LinuxResources, Process, Spec};
use serde::{Deserialize, Serialize};
use serde_json::Value;

pub(crate) mod frame;
#[cfg(test)]
mod tests;

/// The version of the protocol that this program speaks.
pub const PROTOCOL: u32 = 1;
/// The oldest version of a shim that this program understands.
pub const OLDEST_PROTOCOL: u32 = 1;

/// The first thing a shim says on a connection.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShimHello {
    /// The version of the protocol it speaks.
    pub protocol: u32,
    /// The version of its program.
    #[serde(default)]
    pub program: String,
    /// Its process.
    #[serde(default)]
    pub pid: u32,
}

/// A request with its number.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct RequestFrame {
    /// The number that its replies carry.
    pub number: u64,
    /// What is wanted: a [`ShimRequest`], or what a newer agent wants.
    pub request: Value,
}

/// A reply to the request of that number.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ReplyFrame {
    /// The request's number.
    pub number: u64,
    /// The answer.
    pub reply: ShimReply,
}

/// What a shim can do.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "call", rename_all = "snake_case")]
pub enum ShimRequest {
    /// All containers with their states.
    List,
    /// Makes a container up to the moment before its program runs.
    Create(Box<CreateRequest>),
    /// Runs the program of a container that was created.
    Start {
        /// The container.
        container: String,
    },
    /// Sends a signal to a container's first process, or to all of its processes.
    Kill {
        /// The container.
        container: String,
        /// The signal's number.
        signal: i32,
        /// To all processes of its control group.
        #[serde(default)]
        all: bool,
    },
    /// Answered once the container has ended and its output is in the log.
    Wait {
        /// The container.
        container: String,
    },
    /// Removes what is left of a container; one that runs is killed first.
    Delete {
        /// The container.
        container: String,
    },
    /// Runs a further process in a container. Up to three descriptors come with it: its stdin, stdout and stderr, each if `streams` says so.
    /// With a terminal there are none, and the terminal's other end comes with [`ShimReply::ExecStarted`].
    Exec(Box<ExecRequest>),
    /// Joins the streams of a container's first process. The descriptors come in the order stdin, stdout, stderr, each if `streams` says so.
    Attach {
        /// The container.
        container: String,
        /// Which of them come with the request.
        streams: StreamSet,
    },
    /// Changes the size of a container's terminal.
    Resize {
        /// The container.
        container: String,
        /// Columns.
        width: u16,
        /// Rows.
        height: u16,
    },
    /// Writes to a new file at the path of the log from now on.
    ReopenLog {
        /// The container.
        container: String,
    },
    /// Changes the limits of a container.
    Update {
        /// The container.
        container: String,
        /// The new limits; what is not in it stays.
        resources: Box<LinuxResources>,
    },
    /// A pid namespace for containers to share, with a process that reaps in it. Asked again, it is the same one.
    PidNamespace {
        /// The file of the user namespace that it belongs to; without one, the shim's. Shims of the first version do not know it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        user_namespace: Option<PathBuf>,
    },
    /// Every exit of a container from now on is a reply to this request.
    Events,
    /// Ends the shim; refused while it has containers.
    Shutdown,
}

/// A container to make.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CreateRequest {
    /// Its id, a plain name.
    pub container: String,
    /// What it is. `root.path`, and paths of namespaces and mounts, are those of the host; `linux.cgroupsPath` has to be given.
    pub spec: Spec,
    /// Where its log goes; without one it is dropped.
    #[serde(default)]
    pub log: Option<PathBuf>,
    /// Whether its stdin can be attached to; it is `/dev/null` otherwise.
    #[serde(default)]
    pub stdin: bool,
    /// Whether its stdin ends with the first attached client's.
    #[serde(default)]
    pub stdin_once: bool,
    /// The program that makes it, such as runc; without one libcontainer does. Only shims that know it are asked for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub oci_runtime: Option<PathBuf>,
}

/// A further process of a container.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ExecRequest {
    /// The container.
    pub container: String,
    /// What to run; its `terminal` decides about the streams.
    pub process: Process,
    /// Which descriptors come with the request.
    #[serde(default)]
    pub streams: StreamSet,
    /// After this it is killed, with all that it has started.
    #[serde(default)]
    pub timeout_ms: Option<u64>,
    /// It is killed like that, too, when the connection of the request ends. An older shim lets it go on, with closed streams.
    #[serde(default)]
    pub ends_with_connection: bool,
}

/// Which of the three streams.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StreamSet {
    /// Standard input.
    #[serde(default)]
    pub stdin: bool,
    /// Standard output.
    #[serde(default)]
    pub stdout: bool,
    /// Standard error.
    #[serde(default)]
    pub stderr: bool,
}

impl StreamSet {
    /// How many they are.
    pub fn count(self) -> usize {
        [self.stdin, self.stdout, self.stderr].into_iter().filter(|given| *given).count()
    }
}

/// A shim's answers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "answer", rename_all = "snake_case")]
pub enum ShimReply {
    /// Done.
    Done,
    /// Not done.
    Refused {
        /// Of which kind.
        #[serde(default)]
        kind: RefusalKind,
        /// Why.
        message: String,
    },
    /// All containers.
    Containers {
        /// In the order of their ids.
        containers: Vec<ContainerReport>,
    },
    /// The container is there; its first process waits for the start.
    Created {
        /// That process, in the shim's pid namespace.
        pid: u32,
    },
    /// A container has ended.
    Exited {
        /// The container.
        container: String,
        /// How.
        exit: ExitReport,
    },
    /// The process runs; [`ShimReply::ExecExited`] follows.
    ExecStarted {
        /// That process, in the shim's pid namespace.
        pid: u32,
    },
    /// The process has ended.
    ExecExited {
        /// How.
        exit: ExitReport,
    },
    /// The pid namespace.
    PidNamespace {
        /// Its first process.
        pid: u32,
        /// The file to join it by.
        path: PathBuf,
    },
}

/// Why a shim did not do something.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RefusalKind {
    /// There is no such container.
    NotFound,
    /// There is one of that id already.
    Exists,
    /// Not in the state that the container is in.
    WrongState,
    /// The request is not as it has to be.
    Invalid,
    /// This shim does not know the request.
    UnknownRequest,
    /// The container could not be made, or the system refused something.
    Failed,
    /// Something that a newer shim has a word for.
    #[default]
    #[serde(other)]
    Other,
}

/// Where a container is in its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ContainerPhase {
    /// The helper makes it.
    Creating,
    /// It waits for its start.
    Created,
    /// Its first process runs.
    Running,
    /// Its first process has ended.
    Exited,
}

/// What a shim knows of a container.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ContainerReport {
    /// Its id.
    pub container: String,
    /// Where it is in its life.
    pub phase: ContainerPhase,
    /// Its first process, in the shim's pid namespace.
    #[serde(default)]
    pub pid: Option<u32>,
    /// When it was created.
    #[serde(default)]
    pub created_at: Option<Timestamp>,
    /// When its program was started.
    #[serde(default)]
    pub started_at: Option<Timestamp>,
    /// How it ended.
    #[serde(default)]
    pub exit: Option<ExitReport>,
    /// Bytes of output that could not be written to the log.
    #[serde(default)]
    pub lost_log_bytes: u64,
}

/// How a process ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExitReport {
    /// Its exit code; 128 and the signal's number if a signal ended it.
    pub exit_code: i32,
    /// The signal that ended it.
    #[serde(default)]
    pub signal: Option<i32>,
    /// When.
    pub finished_at: Timestamp,
    /// The kernel has killed a process of the container for want of memory.
    #[serde(default)]
    pub oom_killed: bool,
    /// It was killed because its time was over.
    #[serde(default)]
    pub timed_out: bool,
    /// How it ended is not known: its shim was gone. The exit code is 137 then.
    #[serde(default)]
    pub unknown: bool,
}

/// Takes messages off these bytes, for fuzzing: they are the same when the bytes come in two pieces, and what is understood is understood again
/// when it is sent on.
#[doc(hidden)]
pub fn fuzz_messages(bytes: &[u8], cut: usize) {
    let whole = frame::take_all(&[bytes]);
    let (first, second) = bytes.split_at(cut);
    assert_eq!(frame::take_all(&[first, second]), whole, "messages depend on where a read ended");
    for message in whole {
        if let Ok(request) = RequestFrame::deserialize(&message)
            && let Ok(request) = ShimRequest::deserialize(&request.request)
        {
            let again = serde_json::to_value(&request).map(ShimRequest::deserialize);
            assert!(matches!(again, Ok(Ok(again)) if again == request), "{request:?}");
        }
        if let Ok(reply) = ReplyFrame::deserialize(&message) {
            let again = serde_json::to_value(&reply.reply).map(ShimReply::deserialize);
            assert!(matches!(again, Ok(Ok(again)) if again == reply.reply), "{reply:?}");
        }
        drop(ShimHello::deserialize(&message));
    }
}
