//! A container that the runtime knows.

use k8s_openapi::api::core::v1::{
    ContainerState as ApiState, ContainerStateRunning, ContainerStateTerminated, ContainerStatus,
    ContainerUser, LinuxContainerUser,
};

use super::not_started;
use crate::ids::ContainerId;
use crate::pod::PodContainer;
use crate::status::container_status_ext::{ContainerStatusExt, terminated};
use crate::status::context::StatusContext;
use crate::status::normalise;
use crate::termination_message;
use crate::view::{ContainerState, ContainerView, Exit, LinuxUser};

/// The status of a container of which `newest` is the newest of its name.
pub(super) fn status(
    context: &StatusContext<'_>,
    wanted: &PodContainer<'_>,
    newest: &ContainerView,
    old: Option<&ContainerStatus>,
) -> ContainerStatus {
    let resources = wanted.spec.resources.clone().unwrap_or_default();
    let same = old.filter(|old| old.container_id == Some(full_id(context, &newest.id)));
    ContainerStatus {
        name: newest.name.clone(),
        image: newest.image.clone(),
        image_id: newest.image_ref.clone(),
        container_id: Some(full_id(context, &newest.id)),
        restart_count: restart_count(newest, old),
        state: Some(state(context, newest, old)),
        last_state: Some(last_state(context, newest, old)),
        allocated_resources: resources.requests.clone(),
        resources: Some(resources),
        user: newest.user.as_ref().map(user).or_else(|| same.and_then(|same| same.user.clone())),
        stop_signal: newest
            .stop_signal
            .clone()
            .filter(|_| context.input.node.features.container_stop_signals),
        // Our view of the runtime does not have these; a kubelet before us may have said them.
        allocated_resources_status: same.and_then(|same| same.allocated_resources_status.clone()),
        ..ContainerStatus::default()
    }
}

fn user(user: &LinuxUser) -> ContainerUser {
    let groups = Some(user.groups.clone()).filter(|groups| !groups.is_empty());
    let linux = LinuxContainerUser { uid: user.uid, gid: user.gid, supplemental_groups: groups };
    ContainerUser { linux: Some(linux) }
}

/// The container knows how often it was started before; we may know of more.
fn restart_count(newest: &ContainerView, old: Option<&ContainerStatus>) -> i32 {
    let labelled = i32::try_from(newest.label.restart_count).unwrap_or(i32::MAX);
    old.map_or(labelled, |old| old.restart_count.max(labelled))
}

fn state(
    context: &StatusContext<'_>,
    newest: &ContainerView,
    old: Option<&ContainerStatus>,
) -> ApiState {
    match &newest.state {
        ContainerState::Created => not_started(context),
        ContainerState::Running { started_at } => running(*started_at),
        ContainerState::Exited(exit) => terminated(end(context, &newest.id, exit)),
        ContainerState::Unknown => unknown(context, newest, old),
    }
}

fn running(started_at: jiff::Timestamp) -> ApiState {
    let running = ContainerStateRunning { started_at: Some(normalise::seconds(started_at)) };
    ApiState { running: Some(running), ..ApiState::default() }
}

/// A container that ran and of which the runtime cannot tell any more has ended, as far as we can say. To call
/// it waiting would have one that must run only once run twice.
fn unknown(
    context: &StatusContext<'_>,
    newest: &ContainerView,
    old: Option<&ContainerStatus>,
) -> ApiState {
    let id = full_id(context, &newest.id);
    match old.filter(|old| old.container_id.as_ref() == Some(&id)) {
        Some(old) if old.ended().is_some() => old.state.clone().unwrap_or_default(),
        Some(old) if old.is_running() => {
            let end = super::unknown_end("the runtime cannot tell what became of this container");
            terminated(ContainerStateTerminated { container_id: Some(id), ..end })
        }
        _ => not_started(context),
    }
}

/// How the one of this name before ended: by the runtime's state, else by the published status.
fn last_state(
    context: &StatusContext<'_>,
    newest: &ContainerView,
    old: Option<&ContainerStatus>,
) -> ApiState {
    let mut containers = context.view.containers.iter();
    let older = containers.find(|c| c.name == newest.name && c.id != newest.id);
    let from_runtime = older.and_then(|older| Some(end(context, &older.id, older.state.exit()?)));
    from_runtime
        .or_else(|| published_end(context, newest, old?))
        .map(terminated)
        .unwrap_or_default()
}

fn published_end(
    context: &StatusContext<'_>,
    newest: &ContainerView,
    old: &ContainerStatus,
) -> Option<ContainerStateTerminated> {
    let another = old.container_id != Some(full_id(context, &newest.id));
    old.ended().filter(|_| another).or_else(|| old.ended_before()).cloned()
}

fn end(context: &StatusContext<'_>, id: &ContainerId, exit: &Exit) -> ContainerStateTerminated {
    let termination_messages =
        context.input.termination_messages.get(id).map(String::as_str).unwrap_or_default();
    let message = termination_message::join(&exit.message, termination_messages);
    ContainerStateTerminated {
        container_id: Some(full_id(context, id)),
        exit_code: exit.code,
        reason: Some(exit.reason.clone()).filter(|reason| !reason.is_empty()),
        message: Some(message).filter(|message| !message.is_empty()),
        started_at: exit.started_at.map(normalise::seconds),
        finished_at: Some(normalise::seconds(exit.finished_at)),
        ..ContainerStateTerminated::default()
    }
}

/// `<runtime>://<id>`.
fn full_id(context: &StatusContext<'_>, id: &ContainerId) -> String {
    format!("{}://{id}", context.input.node.runtime_name)
}
