//! How often a container has been started before: a number that never goes back.

use k8s_openapi::api::core::v1::{Container, ContainerStatus, PodStatus};

use super::PodActionsInput;

/// How often a container of this name was started before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RestartCount {
    /// The runtime or the published status has the count.
    Known(u32),
    /// Neither runtime nor status know of one: the names of the files in its log directory tell, by
    /// [`count_from_logs`].
    FromLogs,
}

/// The restart count of the next container: one above the last, which the runtime knows, or the published status when
/// the runtime has lost it.
pub(super) fn restart_count(input: &PodActionsInput<'_>, spec: &Container) -> RestartCount {
    let of_name = input.view.containers.iter().filter(|c| c.name == spec.name);
    let held = of_name.map(|c| c.label.restart_count.saturating_add(1)).max();
    let from_status = input.published.and_then(|status| published(status, &spec.name));
    held.max(from_status).map_or(RestartCount::FromLogs, RestartCount::Known)
}

/// The restart count of the next container by the names of its log files, which are `<restart count>.log` and what
/// rotation makes of that.
pub fn count_from_logs<'a>(file_names: impl IntoIterator<Item = &'a str>) -> u32 {
    let counts = file_names.into_iter().filter_map(|name| {
        let (count, rest) = name.split_once(".log")?;
        let digits = !count.is_empty() && count.bytes().all(|byte| byte.is_ascii_digit());
        let ours = digits && (rest.is_empty() || rest.starts_with('.'));
        ours.then(|| count.parse::<u32>().ok())?
    });
    counts.max().map_or(0, |last| last.saturating_add(1))
}

/// What the status says the next count is; none when it knows of no start.
fn published(status: &PodStatus, name: &str) -> Option<u32> {
    let lists = [
        &status.init_container_statuses,
        &status.container_statuses,
        &status.ephemeral_container_statuses,
    ];
    let mut all = lists.into_iter().flatten().flatten();
    next_after(all.find(|status| status.name == name)?)
}

fn next_after(status: &ContainerStatus) -> Option<u32> {
    let count = u32::try_from(status.restart_count).unwrap_or_default();
    let state = status.state.as_ref();
    let last = status.last_state.as_ref().and_then(|state| state.terminated.as_ref());
    if state.is_some_and(|state| state.running.is_some() || state.terminated.is_some()) {
        return Some(count.saturating_add(1));
    }
    // The status of a container that was lost while it ran counts the restart that is yet to come.
    let lost = last?.reason.as_deref() == Some("ContainerStatusUnknown");
    Some(if lost { count } else { count.saturating_add(1) })
}
