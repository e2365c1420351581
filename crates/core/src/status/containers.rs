//! The statuses of a pod's containers.

mod lost;
mod readiness;
mod seen;

pub(super) use lost::unknown_end;

use k8s_openapi::api::core::v1::{
    ContainerState, ContainerStateWaiting, ContainerStatus, VolumeMountStatus,
};

use super::questions::StatusExt;
use super::scene::Scene;
use super::some;
use crate::pod::{ContainerKind, PodExt, WantedContainer};

/// The three lists of a status.
#[derive(Debug, Default)]
pub(super) struct Lists {
    /// By name.
    pub(super) regular: Vec<ContainerStatus>,
    /// As in the spec.
    pub(super) init: Vec<ContainerStatus>,
    /// By name.
    pub(super) ephemeral: Vec<ContainerStatus>,
}

/// One status for each container of the spec.
pub(super) fn lists(scene: &Scene<'_>) -> Lists {
    let mut lists = Lists::default();
    for wanted in scene.pod.all_containers() {
        let list = match wanted.kind {
            ContainerKind::Init | ContainerKind::Sidecar => &mut lists.init,
            ContainerKind::Regular => &mut lists.regular,
            ContainerKind::Ephemeral => &mut lists.ephemeral,
        };
        list.push(status(scene, &wanted));
    }
    lists.regular.sort_by(|a, b| a.name.cmp(&b.name));
    lists.ephemeral.sort_by(|a, b| a.name.cmp(&b.name));
    lists
}

fn status(scene: &Scene<'_>, wanted: &WantedContainer<'_>) -> ContainerStatus {
    let old = previous(scene, wanted);
    let newest = scene.newest(&wanted.spec.name);
    let mut status = match newest {
        Some(container) => seen::status(scene, wanted, container, old),
        None => lost::status(scene, wanted, old),
    };
    show_start_error(scene, wanted, &mut status);
    if let Some(old) = old.filter(|old| is_final(scene, wanted, old, &status)) {
        status = old.clone();
    }
    status.volume_mounts = volume_mounts(scene, wanted);
    readiness::fill(scene, wanted, newest, &mut status);
    status
}

fn previous<'s>(scene: &'s Scene<'_>, wanted: &WantedContainer<'_>) -> Option<&'s ContainerStatus> {
    let list = match wanted.kind {
        ContainerKind::Init | ContainerKind::Sidecar => &scene.previous.init_container_statuses,
        ContainerKind::Regular => &scene.previous.container_statuses,
        ContainerKind::Ephemeral => &scene.previous.ephemeral_container_statuses,
    };
    list.iter().flatten().find(|status| status.name == wanted.spec.name)
}

/// A container that is to be started and could not be is waiting, and this is why.
fn show_start_error(scene: &Scene<'_>, wanted: &WantedContainer<'_>, status: &mut ContainerStatus) {
    let Some(error) = scene.input.start_errors.get(&wanted.spec.name) else { return };
    if !awaits_start(scene, wanted, status) {
        return;
    }
    if status.ended().is_some() {
        status.last_state = status.state.take();
    }
    status.state = Some(waiting(&error.reason.to_string(), Some(&error.message)));
}

fn awaits_start(scene: &Scene<'_>, wanted: &WantedContainer<'_>, status: &ContainerStatus) -> bool {
    let follows = |end| scene.is_followed(wanted.kind, &wanted.spec, end);
    !scene.is_ending() && !status.is_running() && status.ended().is_none_or(follows)
}

/// What has ended for good stays so, whatever else may seem to be the case. Only an init container may run
/// again, in a new sandbox.
fn is_final(
    scene: &Scene<'_>,
    wanted: &WantedContainer<'_>,
    old: &ContainerStatus,
    new: &ContainerStatus,
) -> bool {
    let Some(end) = old.ended().filter(|_| new.ended().is_none()) else { return false };
    let another = new.container_id.is_some() && new.container_id != old.container_id;
    let rerun = wanted.kind == ContainerKind::Init && another;
    !rerun && !scene.may_restart_all() && !scene.is_followed(wanted.kind, &wanted.spec, end)
}

/// What a container waits for that nothing more is known of.
fn not_started(scene: &Scene<'_>) -> ContainerState {
    let reason = if scene.pod.init().is_empty() { "ContainerCreating" } else { "PodInitializing" };
    waiting(reason, scene.input.held_by)
}

fn waiting(reason: &str, message: Option<&str>) -> ContainerState {
    let message = message.filter(|message| !message.is_empty()).map(ToOwned::to_owned);
    let waiting = ContainerStateWaiting { reason: Some(reason.to_owned()), message };
    ContainerState { waiting: Some(waiting), ..ContainerState::default() }
}

/// What the container mounts, and whether what is read-only is so all the way down.
fn volume_mounts(
    scene: &Scene<'_>,
    wanted: &WantedContainer<'_>,
) -> Option<Vec<VolumeMountStatus>> {
    let supported = scene.input.node.recursive_read_only;
    let mounts = wanted.spec.volume_mounts.iter().flatten().map(|mount| {
        let recursive = match mount.recursive_read_only.as_deref() {
            Some("Enabled") => true,
            Some("IfPossible") => supported,
            _ => false,
        };
        let mode = if recursive { "Enabled" } else { "Disabled" };
        VolumeMountStatus {
            name: mount.name.clone(),
            mount_path: mount.mount_path.clone(),
            read_only: mount.read_only,
            recursive_read_only: (mount.read_only == Some(true)).then(|| mode.to_owned()),
            ..VolumeMountStatus::default()
        }
    });
    some(mounts.collect())
}
