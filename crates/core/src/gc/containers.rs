//! Dead containers and the sandboxes they leave behind.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use jiff::Timestamp;

use crate::ids::{ContainerId, FullName, PodUid, SandboxId};
use crate::time::wall_between;
use crate::view::{ContainerState, ContainerView, PodView};

/// How many dead containers are kept, for their logs and their exit codes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ContainerGcPolicy {
    /// Of one container of one pod; none for no limit.
    pub per_container: Option<usize>,
    /// On the whole node; none for no limit.
    pub total: Option<usize>,
    /// Dead containers younger than this stay.
    pub min_age: Duration,
}

impl ContainerGcPolicy {
    /// How many dead containers of one name stay beside a pod that is there: at least one, from which the end and the back-off of a
    /// container that waits for its restart are read.
    pub fn kept_of_container(&self) -> usize {
        self.per_container.unwrap_or(usize::MAX).max(1)
    }

    /// What the worker of a pod removes by itself.
    #[must_use]
    pub fn of_pod(&self) -> Self {
        Self { per_container: Some(self.kept_of_container()), total: None, ..*self }
    }

    /// Whether something is to be removed that no change of its pod shows: what has become too old, or one too many on the node.
    pub fn concerns_node(&self) -> bool {
        self.total.is_some() || !self.min_age.is_zero()
    }
}

impl Default for ContainerGcPolicy {
    fn default() -> Self {
        Self { per_container: Some(1), total: None, min_age: Duration::ZERO }
    }
}

/// What the choice is made from.
#[derive(Clone, Copy, Debug)]
pub struct ContainerGcInput<'a> {
    /// Everything the runtime holds that is ours.
    pub views: &'a [PodView],
    /// Pods that may still want their dead containers, those being torn down included. Under disk pressure
    /// the caller leaves out the ones that have ended.
    pub kept: &'a BTreeSet<PodUid>,
    /// Whether every source has sent its pods; until then a pod not in `kept` may only be late.
    pub sources_ready: bool,
    /// Wall time, because that is what the runtime stamps.
    pub now: Timestamp,
}

/// A container to remove.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeadContainer {
    /// The pod it belongs to.
    pub pod: PodUid,
    /// The id that the runtime gave the container.
    pub id: ContainerId,
    /// The runtime cannot tell whether it runs, so it must be stopped before it is removed.
    pub stop_first: bool,
}

/// Containers to remove: those that never ran and never will, then the dead beyond the limits, oldest first.
pub fn containers_to_remove(
    input: &ContainerGcInput<'_>,
    policy: &ContainerGcPolicy,
) -> Vec<DeadContainer> {
    let (mut kept, mut garbage) = (Vec::new(), Vec::new());
    for view in input.views {
        let gone = input.is_gone(&view.uid);
        let old_enough =
            |c: &&ContainerView| wall_between(c.created_at, input.now) >= policy.min_age;
        let candidates: Vec<_> = view.containers.iter().filter(old_enough).collect();
        let stray = candidates.iter().filter(|c| is_stray(view, c, gone));
        garbage.extend(stray.map(|c| to_remove((&view.uid, c))));
        for mut dead in dead_by_name(view, &candidates) {
            let keep = if gone { 0 } else { policy.per_container.unwrap_or(usize::MAX) };
            garbage.extend(oldest_beyond(&mut dead, keep));
            kept.push(dead);
        }
    }
    garbage.extend(policy.total.map(|total| beyond_total(kept, total)).unwrap_or_default());
    garbage
}

/// A dead container to remove, with what its log is found by.
#[derive(Clone, Debug, PartialEq)]
pub struct DeadContainerOnNode {
    /// The pod it belongs to.
    pub pod: PodUid,
    /// The name of that pod.
    pub pod_name: FullName,
    /// The container.
    pub container: ContainerView,
}

/// Dead containers of the whole node to remove, oldest first. Of a pod that is active, the newest container of each name stays.
pub fn dead_on_node(
    input: &ContainerGcInput<'_>,
    policy: &ContainerGcPolicy,
    is_active: impl Fn(&PodUid) -> bool,
) -> Vec<DeadContainerOnNode> {
    let per_container = Some(policy.kept_of_container());
    let chosen = containers_to_remove(input, &ContainerGcPolicy { per_container, ..*policy });
    let removable = |dead: DeadContainer| {
        let view = input.views.iter().find(|view| view.uid == dead.pod)?;
        let container = view.containers.iter().find(|container| container.id == dead.id)?;
        let newest = view.newest(&container.name).is_some_and(|newest| newest.id == dead.id);
        let stays = newest && is_active(&dead.pod);
        let is_dead = container.state.exit().is_some();
        (is_dead && !stays).then(|| DeadContainerOnNode {
            pod: dead.pod,
            pod_name: view.full_name.clone(),
            container: container.clone(),
        })
    };
    chosen.into_iter().filter_map(removable).collect()
}

/// Sandboxes to remove, of every pod the oldest first: not ready, without containers, and not the newest of
/// a pod that is still there.
pub fn sandboxes_to_remove(input: &ContainerGcInput<'_>) -> Vec<SandboxId> {
    let of_pod = |view: &PodView| -> Vec<SandboxId> {
        let newest = usize::from(!input.is_gone(&view.uid));
        let empty =
            |id: &SandboxId| !view.containers.iter().any(|container| container.sandbox == *id);
        let old = view.sandboxes.iter().skip(newest).rev();
        old.filter(|sandbox| !sandbox.ready && empty(&sandbox.id)).map(|s| s.id.clone()).collect()
    };
    input.views.iter().flat_map(of_pod).collect()
}

impl ContainerGcInput<'_> {
    fn is_gone(&self, pod: &PodUid) -> bool {
        self.sources_ready && !self.kept.contains(pod)
    }
}

/// Dead containers of one name, newest first, as the view has them.
type Dead<'a> = Vec<(&'a PodUid, &'a ContainerView)>;

fn dead_by_name<'a>(view: &'a PodView, candidates: &[&'a ContainerView]) -> Vec<Dead<'a>> {
    let mut by_name: BTreeMap<&str, Dead<'_>> = BTreeMap::new();
    for container in candidates.iter().filter(|container| container.state.exit().is_some()) {
        by_name.entry(&container.name).or_default().push((&view.uid, container));
    }
    by_name.into_values().collect()
}

/// Neither running nor ended. The newest of its name in a pod that is still there is for the pod's worker to
/// start or to kill; any other has been passed over.
fn is_stray(view: &PodView, container: &ContainerView, pod_gone: bool) -> bool {
    let newest = view.newest(&container.name).is_some_and(|newest| newest.id == container.id);
    match container.state {
        ContainerState::Running { .. } | ContainerState::Exited(_) => false,
        ContainerState::Created | ContainerState::Unknown => pod_gone || !newest,
    }
}

/// Takes all but the newest `keep` away, oldest first.
fn oldest_beyond(dead: &mut Dead<'_>, keep: usize) -> Vec<DeadContainer> {
    let surplus = dead.split_off(keep.min(dead.len()));
    surplus.into_iter().rev().map(to_remove).collect()
}

/// First every container of every pod gives up the same share, then the oldest of the node go.
fn beyond_total(mut kept: Vec<Dead<'_>>, total: usize) -> Vec<DeadContainer> {
    let count = |kept: &[Dead<'_>]| kept.iter().map(Vec::len).sum::<usize>();
    if count(&kept) <= total {
        return Vec::new();
    }
    kept.retain(|dead| !dead.is_empty());
    let share = (total / kept.len()).max(1);
    let mut garbage: Vec<_> = kept.iter_mut().flat_map(|dead| oldest_beyond(dead, share)).collect();
    let mut rest: Dead<'_> = kept.into_iter().flatten().collect();
    rest.sort_by_key(|(_, container)| Reverse((container.created_at, container.id.clone())));
    garbage.extend(oldest_beyond(&mut rest, total));
    garbage
}

fn to_remove((pod, container): (&PodUid, &ContainerView)) -> DeadContainer {
    let stop_first = container.state == ContainerState::Unknown;
    DeadContainer { pod: pod.clone(), id: container.id.clone(), stop_first }
}

#[cfg(test)]
mod tests;
