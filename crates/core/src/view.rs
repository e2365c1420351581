//! The runtime's state of one pod, read in one go: its sandboxes and containers as they are.
//!
//! All decisions about a pod are made from this view and the desired pod; no other part of the agent keeps its own record of
//! what runs.

pub mod from_cri;

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::path::PathBuf;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{ContainerPort, LifecycleHandler};

use crate::ids::{ContainerId, FullName, PodUid, SandboxId};

/// What the runtime holds of one pod.
#[derive(Clone, Debug, PartialEq)]
pub struct PodView {
    /// The pod's UID, from the sandbox metadata.
    pub uid: PodUid,
    /// The pod's name and namespace, from the sandbox metadata.
    pub full_name: FullName,
    /// Newest first: by attempt, which only grows, then by creation, which follows a clock that may jump, then by id.
    pub sandboxes: Vec<SandboxView>,
    /// Of every sandbox, newest first: by restart count, then by creation, then by id.
    pub containers: Vec<ContainerView>,
}

/// A sandbox as the runtime describes it.
#[derive(Clone, Debug, PartialEq)]
pub struct SandboxView {
    /// The id that the runtime gave the sandbox.
    pub id: SandboxId,
    /// Counts the sandboxes this pod has had, from 0.
    pub attempt: u32,
    /// READY, as the runtime says it; a stopped sandbox is not.
    pub ready: bool,
    /// When the runtime made it.
    pub created_at: Timestamp,
    /// Whether it uses the node's network namespace.
    pub host_network: bool,
    /// Whether the runtime says anything of its network; only then it lacks an address if there is none.
    pub network_reported: bool,
    /// Its addresses, the primary one first; empty for the host network.
    pub ips: Vec<String>,
    /// The annotations it was made with (where a pod came from, and its hash).
    pub annotations: BTreeMap<String, String>,
}

/// A container as the runtime describes it.
#[derive(Clone, Debug, PartialEq)]
pub struct ContainerView {
    /// The id that the runtime gave the container.
    pub id: ContainerId,
    /// The sandbox it lives in.
    pub sandbox: SandboxId,
    /// The name in the pod's spec.
    pub name: String,
    /// The image as the spec named it.
    pub image: String,
    /// What the runtime resolved the image to.
    pub image_ref: String,
    /// When the runtime made it.
    pub created_at: Timestamp,
    /// What it does now.
    pub state: ContainerState,
    /// What we wrote on it when we made it.
    pub label: ContainerLabel,
    /// The file on this machine that it sees at its termination message path.
    pub message_file: Option<PathBuf>,
    /// Whom its first process runs as, where the runtime tells.
    pub user: Option<LinuxUser>,
    /// The signal that stops it, such as `SIGTERM`, where the runtime tells.
    pub stop_signal: Option<String>,
}

/// Whom a process runs as.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LinuxUser {
    /// User id.
    pub uid: i64,
    /// Group id.
    pub gid: i64,
    /// Its other groups, those of the image included.
    pub groups: Vec<i64>,
}

/// What a container does now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ContainerState {
    /// The container was created and not started.
    Created,
    /// The process of the container runs.
    Running {
        /// When the process was started.
        started_at: Timestamp,
    },
    /// Its process has ended.
    Exited(Exit),
    /// The runtime cannot tell.
    Unknown,
}

/// How a container ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Exit {
    /// When it had started; none when it never did.
    pub started_at: Option<Timestamp>,
    /// When the process ended.
    pub finished_at: Timestamp,
    /// The exit code; 128 + n for signal n.
    pub code: i32,
    /// The runtime's one word: `Completed`, `Error`, `OOMKilled`, `ContainerCannotRun`.
    pub reason: String,
    /// The runtime's sentence, often empty.
    pub message: String,
}

/// What we write into a container's annotations so that an agent that starts later can pick it up.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ContainerLabel {
    /// Hash of name and image; none on a container that no kubelet made.
    pub hash: Option<u32>,
    /// How often a container of this name had been started before this one.
    pub restart_count: u32,
    /// Where in the container the termination message is written.
    pub termination_message_path: String,
    /// `File` or `FallbackToLogsOnError`.
    pub termination_message_policy: String,
    /// The pod's deletion grace period at creation, in seconds.
    pub deletion_grace: Option<i64>,
    /// The pod's termination grace period at creation, in seconds.
    pub termination_grace: Option<i64>,
    /// The preStop hook, so that an orphan's is still run.
    pub pre_stop: Option<LifecycleHandler>,
    /// The ports, which a hook may name.
    pub ports: Vec<ContainerPort>,
}

impl PodView {
    /// A pod the runtime holds nothing of.
    pub fn empty(uid: PodUid, full_name: FullName) -> Self {
        Self { uid, full_name, sandboxes: Vec::new(), containers: Vec::new() }
    }

    /// The same, newest first, however the runtime listed it.
    #[must_use]
    pub fn in_order(mut self) -> Self {
        self.sandboxes.sort_by(|a, b| Reverse(a.age_key()).cmp(&Reverse(b.age_key())));
        self.containers.sort_by(|a, b| Reverse(a.age_key()).cmp(&Reverse(b.age_key())));
        self
    }

    /// The newest sandbox: the only one whose addresses and containers count as the pod's own.
    pub fn newest_sandbox(&self) -> Option<&SandboxView> {
        self.sandboxes.first()
    }

    /// The newest container of that name, in whatever sandbox.
    pub fn newest(&self, name: &str) -> Option<&ContainerView> {
        self.containers.iter().find(|c| c.name == name)
    }

    /// Containers whose process runs, or may run for all the runtime can tell.
    pub fn possibly_running(&self) -> impl Iterator<Item = &ContainerView> {
        self.containers.iter().filter(|c| c.state.may_run())
    }

    /// Whether nothing of this pod runs: no container that may, no sandbox that is ready.
    pub fn nothing_runs(&self) -> bool {
        self.possibly_running().next().is_none() && !self.sandboxes.iter().any(|s| s.ready)
    }

    /// Whether the runtime holds nothing at all of this pod.
    pub fn is_empty(&self) -> bool {
        self.sandboxes.is_empty() && self.containers.is_empty()
    }
}

impl SandboxView {
    fn age_key(&self) -> (u32, Timestamp, &SandboxId) {
        (self.attempt, self.created_at, &self.id)
    }
}

impl ContainerView {
    fn age_key(&self) -> (u32, Timestamp, &ContainerId) {
        (self.label.restart_count, self.created_at, &self.id)
    }
}

impl ContainerState {
    /// Running, or in a state in which the runtime cannot say that it is not.
    pub fn may_run(&self) -> bool {
        matches!(self, Self::Running { .. } | Self::Unknown)
    }

    /// How it ended, if it has.
    pub fn exit(&self) -> Option<&Exit> {
        match self {
            Self::Exited(exit) => Some(exit),
            Self::Created | Self::Running { .. } | Self::Unknown => None,
        }
    }
}
