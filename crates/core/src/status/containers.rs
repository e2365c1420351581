//! The statuses of a pod's containers.

mod from_runtime;
mod lost;
mod readiness;

pub(super) use lost::unknown_end;

use k8s_openapi::api::core::v1::{
    ContainerState, ContainerStateWaiting, ContainerStatus, VolumeMountStatus,
};

use super::container_status_ext::ContainerStatusExt;
use super::context::StatusContext;
use super::some;
use crate::pod::{ContainerKind, PodContainer, PodExt};

/// The three lists of a status.
#[derive(Debug, Default)]
pub(super) struct Lists {
    /// Regular containers, sorted by name.
    pub(super) regular: Vec<ContainerStatus>,
    /// As in the spec.
    pub(super) init: Vec<ContainerStatus>,
    /// Ephemeral containers, sorted by name.
    pub(super) ephemeral: Vec<ContainerStatus>,
}

/// One status for each container of the spec.
pub(super) fn lists(context: &StatusContext<'_>) -> Lists {
    let mut lists = Lists::default();
    for wanted in context.pod.all_containers() {
        let list = match wanted.kind {
            ContainerKind::Init | ContainerKind::Sidecar => &mut lists.init,
            ContainerKind::Regular => &mut lists.regular,
            ContainerKind::Ephemeral => &mut lists.ephemeral,
        };
        list.push(status(context, &wanted));
    }
    lists.regular.sort_by(|a, b| a.name.cmp(&b.name));
    lists.ephemeral.sort_by(|a, b| a.name.cmp(&b.name));
    lists
}

fn status(context: &StatusContext<'_>, wanted: &PodContainer<'_>) -> ContainerStatus {
    let old = previous(context, wanted);
    let newest = context.newest(&wanted.spec.name);
    let mut status = match newest {
        Some(container) => from_runtime::status(context, wanted, container, old),
        None => lost::status(context, wanted, old),
    };
    show_start_error(context, wanted, &mut status);
    if let Some(old) = old.filter(|old| is_final(context, wanted, old, &status)) {
        status = old.clone();
    }
    status.volume_mounts = volume_mounts(context, wanted);
    readiness::fill(context, wanted, newest, &mut status);
    status
}

fn previous<'s>(
    context: &'s StatusContext<'_>,
    wanted: &PodContainer<'_>,
) -> Option<&'s ContainerStatus> {
    let list = match wanted.kind {
        ContainerKind::Init | ContainerKind::Sidecar => &context.previous.init_container_statuses,
        ContainerKind::Regular => &context.previous.container_statuses,
        ContainerKind::Ephemeral => &context.previous.ephemeral_container_statuses,
    };
    list.iter().flatten().find(|status| status.name == wanted.spec.name)
}

/// A container that is to be started and could not be is waiting, and this is why.
fn show_start_error(
    context: &StatusContext<'_>,
    wanted: &PodContainer<'_>,
    status: &mut ContainerStatus,
) {
    let Some(error) = context.input.start_errors.get(&wanted.spec.name) else { return };
    if !awaits_start(context, wanted, status) {
        return;
    }
    if status.ended().is_some() {
        status.last_state = status.state.take();
    }
    status.state = Some(waiting(&error.reason.to_string(), Some(&error.message)));
}

fn awaits_start(
    context: &StatusContext<'_>,
    wanted: &PodContainer<'_>,
    status: &ContainerStatus,
) -> bool {
    let follows = |end| context.will_restart(wanted.kind, &wanted.spec, end);
    !context.is_ending() && !status.is_running() && status.ended().is_none_or(follows)
}

/// What has ended for good stays so, whatever else may seem to be the case. Only an init container may run
/// again, in a new sandbox.
fn is_final(
    context: &StatusContext<'_>,
    wanted: &PodContainer<'_>,
    old: &ContainerStatus,
    new: &ContainerStatus,
) -> bool {
    let Some(end) = old.ended().filter(|_| new.ended().is_none()) else { return false };
    let another = new.container_id.is_some() && new.container_id != old.container_id;
    let rerun = wanted.kind == ContainerKind::Init && another;
    !rerun && !context.may_restart_all() && !context.will_restart(wanted.kind, &wanted.spec, end)
}

/// What a container waits for that nothing more is known of.
fn not_started(context: &StatusContext<'_>) -> ContainerState {
    let reason =
        if context.pod.init().is_empty() { "ContainerCreating" } else { "PodInitializing" };
    waiting(reason, context.input.held_by)
}

fn waiting(reason: &str, message: Option<&str>) -> ContainerState {
    let message = message.filter(|message| !message.is_empty()).map(ToOwned::to_owned);
    let waiting = ContainerStateWaiting { reason: Some(reason.to_owned()), message };
    ContainerState { waiting: Some(waiting), ..ContainerState::default() }
}

/// What the container mounts, and whether what is read-only is so all the way down.
fn volume_mounts(
    context: &StatusContext<'_>,
    wanted: &PodContainer<'_>,
) -> Option<Vec<VolumeMountStatus>> {
    let supported = context.input.node.recursive_read_only;
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
