//! Leftover containers: those that run outside the current sandbox or spec, and dead ones that are not kept.

use std::collections::{BTreeMap, BTreeSet};

use super::builder::PodActionsBuilder;
use super::pod_actions::{ContainerKillReason, ContainerToRemove, RemoveReason};
use crate::ids::ContainerId;
use crate::pod::{ContainerKind, PodExt};
use crate::view::{ContainerState, ContainerView, PodView};

/// The dead containers to remove from a pod that has ended: all but the newest of each name, which is kept for its log and exit
/// code. Of an evicted pod all are removed, because the node is short of disk.
pub fn dead_containers(view: &PodView, evicted: bool) -> Vec<ContainerToRemove> {
    let dead = view.containers.iter().filter(|container| container.state.exit().is_some());
    beyond_newest(dead.filter(|container| is_ours(container)), usize::from(!evicted))
}

/// Stops what runs and is not the one of its name that counts.
pub(super) fn stop_strays(builder: &mut PodActionsBuilder<'_>) {
    for container in builder.input.view.possibly_running() {
        let counts = match builder.pod().container(&container.name).map(|wanted| wanted.kind) {
            None if !is_ours(container) => continue,
            None => None,
            // One in an earlier sandbox is stopped when it is looked after.
            Some(ContainerKind::Regular) => builder.newest(&container.name),
            Some(_) => builder.in_newest_sandbox(&container.name),
        };
        if counts.map(|counts| &counts.id) != Some(&container.id) {
            builder.stop(container, ContainerKillReason::Stray, false);
        }
    }
}

/// Every init container: a new sandbox is initialised from the beginning.
pub(super) fn init_containers_to_purge(builder: &PodActionsBuilder<'_>) -> Vec<ContainerToRemove> {
    let init = |name: &str| builder.pod().init().iter().any(|spec| spec.name == name);
    let all = builder.input.view.containers.iter().filter(|container| init(&container.name));
    all.map(|container| ContainerToRemove::of(container, RemoveReason::Purged)).collect()
}

/// Those that another container takes the place of without their having ended.
pub(super) fn replaced(builder: &PodActionsBuilder<'_>) -> Vec<ContainerToRemove> {
    let started: BTreeSet<&str> = builder.actions.start.iter().map(|s| s.name.as_str()).collect();
    let removed = removed(builder);
    let in_the_way = builder.input.view.containers.iter().filter_map(|container| {
        let why = match container.state {
            ContainerState::Created => RemoveReason::NeverStarted,
            ContainerState::Unknown => RemoveReason::Unknown,
            ContainerState::Running { .. } | ContainerState::Exited(_) => return None,
        };
        let gone = removed.contains(&container.id) || !started.contains(container.name.as_str());
        (!gone).then(|| ContainerToRemove::of(container, why))
    });
    in_the_way.collect()
}

/// Containers that are dead once the kills are done, but for the newest of each name, of which some are kept.
pub(super) fn older_dead(builder: &PodActionsBuilder<'_>) -> Vec<ContainerToRemove> {
    let removed = removed(builder);
    let stopped: BTreeSet<&ContainerId> =
        builder.actions.stop.iter().map(|stop| &stop.id).collect();
    let dead = builder.input.view.containers.iter().filter(|container| {
        let dead = container.state.exit().is_some() || stopped.contains(&container.id);
        dead && is_ours(container) && !removed.contains(&container.id)
    });
    beyond_newest(dead, builder.input.dead_kept.max(1))
}

fn removed<'d>(builder: &'d PodActionsBuilder<'_>) -> BTreeSet<&'d ContainerId> {
    builder.actions.remove.iter().map(|removal| &removal.id).collect()
}

/// All but the first so many of each name; they come newest first.
fn beyond_newest<'v>(
    dead: impl Iterator<Item = &'v ContainerView>,
    kept: usize,
) -> Vec<ContainerToRemove> {
    let mut seen: BTreeMap<&str, usize> = BTreeMap::new();
    let surplus = dead.filter(|container| {
        let of_name = seen.entry(&container.name).or_default();
        *of_name += 1;
        *of_name > kept
    });
    surplus.map(|container| ContainerToRemove::of(container, RemoveReason::Dead)).collect()
}

/// Whether a kubelet made it. What else lives in the sandbox is not ours to touch.
fn is_ours(container: &ContainerView) -> bool {
    container.label.hash.is_some()
}

impl ContainerToRemove {
    pub(super) fn of(container: &ContainerView, why: RemoveReason) -> Self {
        Self { id: container.id.clone(), name: container.name.clone(), why }
    }
}
