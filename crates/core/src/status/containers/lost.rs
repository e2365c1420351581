//! A container that the runtime does not know: never made, or gone.

use k8s_openapi::api::core::v1::{ContainerStateTerminated, ContainerStatus};

use super::{not_started, waiting};
use crate::pod::{ContainerKind, PodContainer, PodExt as _};
use crate::status::container_status_ext::{ContainerStatusExt, terminated};
use crate::status::context::{RESTARTING_ALL, StatusContext};

/// The exit code of a killed container, for ends that were not observed.
const KILLED: i32 = 137;
/// The reason of ends that were not observed.
const STATUS_UNKNOWN: &str = "ContainerStatusUnknown";

/// The status of a container that the runtime does not know.
pub(super) fn status(
    context: &StatusContext<'_>,
    wanted: &PodContainer<'_>,
    old: Option<&ContainerStatus>,
) -> ContainerStatus {
    let was_done = wanted.kind == ContainerKind::Init && context.is_past(&wanted.spec.name);
    match old {
        Some(old) if !old.is_waiting() && context.was_restarting_all() => restarting(wanted, old),
        Some(old) if old.ended().is_some() => old.clone(),
        Some(old) if old.is_running() => vanished(context, wanted, old),
        _ if was_done => done_before(wanted, old),
        _ => ContainerStatus { state: Some(not_started(context)), ..blank(wanted, old) },
    }
}

/// An end that was not observed.
pub(in crate::status) fn unknown_end(message: &str) -> ContainerStateTerminated {
    ContainerStateTerminated {
        exit_code: KILLED,
        reason: Some(STATUS_UNKNOWN.to_owned()),
        message: Some(message.to_owned()),
        ..ContainerStateTerminated::default()
    }
}

fn blank(wanted: &PodContainer<'_>, old: Option<&ContainerStatus>) -> ContainerStatus {
    let last_state = old.and_then(|old| old.last_state.clone()).unwrap_or_default();
    ContainerStatus {
        name: wanted.spec.name.clone(),
        image: wanted.spec.image.clone().unwrap_or_default(),
        restart_count: old.map(|old| old.restart_count).unwrap_or_default(),
        last_state: Some(last_state),
        ..ContainerStatus::default()
    }
}

/// It ran when we looked last and is gone. Without an end the pod would seem not to have started yet; and what
/// follows it will be one more.
fn vanished(
    context: &StatusContext<'_>,
    wanted: &PodContainer<'_>,
    old: &ContainerStatus,
) -> ContainerStatus {
    let end = unknown_end("the container used to run, and the runtime no longer knows it");
    let again = i32::from(!context.pod.is_deleting());
    ContainerStatus {
        state: Some(not_started(context)),
        last_state: Some(terminated(end)),
        restart_count: old.restart_count.saturating_add(again),
        ..blank(wanted, Some(old))
    }
}

/// It was removed so that it starts again together with all others.
fn restarting(wanted: &PodContainer<'_>, old: &ContainerStatus) -> ContainerStatus {
    let message = "the container was removed because all containers of the pod start again";
    let end = ContainerStateTerminated {
        reason: Some(RESTARTING_ALL.to_owned()),
        ..unknown_end(message)
    };
    ContainerStatus {
        state: Some(waiting(RESTARTING_ALL, Some(message))),
        last_state: Some(terminated(end)),
        ..blank(wanted, Some(old))
    }
}

/// What comes after an init container is made only once that has succeeded.
fn done_before(wanted: &PodContainer<'_>, old: Option<&ContainerStatus>) -> ContainerStatus {
    let message = "the runtime no longer knows this init container, but the pod is past it";
    let end = ContainerStateTerminated {
        exit_code: 0,
        reason: Some("Completed".to_owned()),
        ..unknown_end(message)
    };
    ContainerStatus { state: Some(terminated(end)), ..blank(wanted, old) }
}
