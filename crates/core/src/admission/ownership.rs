//! Which agent owns a sandbox. An agent never touches what it does not own.

use std::collections::BTreeMap;

use crate::ids::SandboxId;
use crate::labels::ROOT_ANNOTATION;
use crate::view::from_cri::ListedPod;
use crate::view::{PodView, SandboxView};

/// How an agent shares the runtime with other agents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// `oarsman run`: only sandboxes with the annotation of its root directory are its own.
    Run,
    /// The node's kubelet, which holds the runtime's lock: all sandboxes without the annotation of another agent are its own.
    Kubelet,
}

/// What on this machine is an agent's own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ownership {
    /// Whether sandboxes without an annotation are its own.
    pub mode: Mode,
    /// The root directory, which its sandboxes carry as an annotation.
    pub root: String,
}

/// What a pod in the runtime is to us.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OwnershipClaim {
    /// There is nothing of ours in it.
    Foreign,
    /// It is ours, and wanted or looked after already.
    Known,
    /// It is ours and unknown, but a source that has not sent its pods yet may hold it.
    TooEarly,
    /// It is ours and no source holds it: kill it.
    Orphan,
}

impl Ownership {
    /// What of a pod in the runtime is ours. Two agents may run a pod of the same UID, each in sandboxes of its own,
    /// so this comes before any other look at what the runtime holds.
    #[must_use]
    pub fn own_part(&self, view: PodView) -> PodView {
        let (own, others): (Vec<_>, Vec<_>) =
            view.sandboxes.into_iter().partition(|sandbox| self.owns(sandbox));
        let within =
            |sandboxes: &[SandboxView], id: &SandboxId| sandboxes.iter().any(|s| s.id == *id);
        let mut containers = view.containers;
        containers.retain(|container| match self.mode {
            Mode::Run => within(&own, &container.sandbox),
            Mode::Kubelet => !within(&others, &container.sandbox),
        });
        PodView { sandboxes: own, containers, ..view }
    }

    fn owns(&self, sandbox: &SandboxView) -> bool {
        self.owns_annotated(&sandbox.annotations)
    }

    /// Whether anything of what the runtime lists of a pod is ours: what [`Self::own_part`] would leave of it.
    pub fn owns_any_of(&self, pod: &ListedPod) -> bool {
        let (own, others): (Vec<_>, Vec<_>) =
            pod.sandboxes.iter().partition(|sandbox| self.owns_annotated(&sandbox.annotations));
        let elsewhere = |id: &str| !others.iter().any(|sandbox| sandbox.id == id);
        let mut stray = pod.containers.iter().filter(|c| elsewhere(&c.pod_sandbox_id));
        !own.is_empty() || (self.mode == Mode::Kubelet && stray.next().is_some())
    }

    /// Whether a sandbox with these annotations is ours.
    fn owns_annotated(&self, annotations: &BTreeMap<String, String>) -> bool {
        match (annotations.get(ROOT_ANNOTATION), self.mode) {
            (Some(mark), _) => *mark == self.root,
            (None, Mode::Run) => false,
            (None, Mode::Kubelet) => true,
        }
    }
}

/// What a pod in the runtime or on the disk is to us.
///
/// It is known when a source wants it or a worker looks after it.
pub fn claim(is_ours: bool, is_known: bool, all_sources_ready: bool) -> OwnershipClaim {
    match (is_ours, is_known, all_sources_ready) {
        (false, _, _) => OwnershipClaim::Foreign,
        (true, true, _) => OwnershipClaim::Known,
        (true, false, false) => OwnershipClaim::TooEarly,
        (true, false, true) => OwnershipClaim::Orphan,
    }
}
