//! The form in which statuses are kept and compared: times to the second, messages within their share.

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{ContainerState, ContainerStatus, Pod, PodStatus};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use crate::pod::PodExt;
use crate::termination_message::{cut, share};

/// The moment as the API keeps it, without fractions of a second.
pub(super) fn seconds(moment: Timestamp) -> Time {
    Time(Timestamp::from_second(moment.as_second()).unwrap_or(moment))
}

/// Cuts times to the second and termination messages to their share of the pod's.
pub(super) fn normalise_status(pod: &Pod, status: &mut PodStatus) {
    let limit = share(pod.regular().len() + pod.init().len() + pod.ephemeral().len());
    truncate_times(status);
    for container in containers(status) {
        for state in [&mut container.state, &mut container.last_state].into_iter().flatten() {
            cut_message(state, limit);
        }
    }
}

/// Cuts times to the second.
pub(super) fn truncate_times(status: &mut PodStatus) {
    truncate(&mut status.start_time);
    for condition in status.conditions.iter_mut().flatten() {
        truncate(&mut condition.last_probe_time);
        truncate(&mut condition.last_transition_time);
    }
    for container in containers(status) {
        for state in [&mut container.state, &mut container.last_state].into_iter().flatten() {
            truncate_state(state);
        }
    }
}

fn containers(status: &mut PodStatus) -> impl Iterator<Item = &mut ContainerStatus> {
    let lists = [
        &mut status.container_statuses,
        &mut status.init_container_statuses,
        &mut status.ephemeral_container_statuses,
    ];
    lists.into_iter().flatten().flatten()
}

fn truncate_state(state: &mut ContainerState) {
    if let Some(running) = &mut state.running {
        truncate(&mut running.started_at);
    }
    if let Some(ended) = &mut state.terminated {
        truncate(&mut ended.started_at);
        truncate(&mut ended.finished_at);
    }
}

fn truncate(time: &mut Option<Time>) {
    *time = time.take().map(|time| seconds(time.0));
}

fn cut_message(state: &mut ContainerState, limit: usize) {
    if let Some(message) = state.terminated.as_mut().and_then(|ended| ended.message.as_mut()) {
        message.truncate(cut(message, limit).len());
    }
}
