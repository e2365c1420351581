//! Dead containers and the sandboxes they leave behind.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use jiff::Timestamp;

use crate::ids::{ContainerId, PodUid, SandboxId};
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
