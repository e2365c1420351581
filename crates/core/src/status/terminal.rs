//! The end of a pod: its last status.

use k8s_openapi::api::core::v1::{ContainerStatus, Pod, PodStatus};

use super::container_status_ext::{ContainerStatusExt, terminated};
use super::containers::unknown_end;
use crate::pod::{ContainerKind, PodExt, init_kind};

/// Nothing is waited for any more: containers that can have run and have no end get one.
pub(super) fn end_containers(pod: &Pod, status: &mut PodStatus) {
    if has_initialised(pod, status) {
        status.container_statuses.iter_mut().flatten().for_each(end);
    }
    let init = status.init_container_statuses.as_deref_mut().unwrap_or_default();
    let tried = tried_init_containers(init);
    init[..tried].iter_mut().for_each(end);
}

fn end(status: &mut ContainerStatus) {
    if status.ended().is_none() {
        let end = unknown_end("The container could not be located when the pod was terminated");
        status.state = Some(terminated(end));
        status.ready = false;
        status.started = Some(false);
    }
}

/// Whether regular containers can have been started at all.
fn has_initialised(pod: &Pod, status: &PodStatus) -> bool {
    let was_tried =
        |status: &ContainerStatus| !status.is_waiting() || status.ended_before().is_some();
    let regular = status.container_statuses.iter().flatten();
    let last_init = status.init_container_statuses.iter().flatten().last();
    let last_is_done = last_init.is_some_and(|last| match pod.init().last().map(init_kind) {
        Some(ContainerKind::Sidecar) => last.is_running() && last.has_started(),
        _ => {
            [last.ended(), last.ended_before()].into_iter().flatten().any(|end| end.exit_code == 0)
        }
    });
    pod.init().is_empty() || regular.clone().any(was_tried) || last_is_done
}

/// How many init containers have been tried: all up to the last that is not merely waiting, and the first.
fn tried_init_containers(init: &[ContainerStatus]) -> usize {
    let was_tried =
        |status: &ContainerStatus| !status.is_waiting() || status.ended_before().is_some();
    let last = init.iter().rposition(was_tried).unwrap_or_default();
    (last + 1).min(init.len())
}
