//! A request for a container's log: what is asked for, and which log is meant.

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{ContainerState, ContainerStatus, Pod, PodStatus};

use crate::pod::PodExt;

#[cfg(test)]
mod tests;

/// What of a log is asked for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ContainerLogOptions {
    /// Go on with what is written until the container ends.
    pub follow: bool,
    /// Of the container before the last restart.
    pub previous: bool,
    /// With the time before every line.
    pub timestamps: bool,
    /// Only the last so many lines.
    pub tail: Option<usize>,
    /// Only what was written in the last so many seconds.
    pub since_seconds: Option<i64>,
    /// Only what was written since.
    pub since_time: Option<Timestamp>,
    /// Not more bytes than these.
    pub limit: Option<u64>,
}

/// Why there is no log to be had.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LogError {
    /// The request contradicts itself: what is wrong with it.
    Invalid(String),
    /// There is no such container.
    Unknown(String),
    /// There is none yet, or none any more.
    Absent(String),
}

impl ContainerLogOptions {
    /// Reads them from the names and values of a query; unknown names are ignored.
    ///
    /// # Errors
    /// When they make no sense.
    pub fn read(query: &[(String, String)]) -> Result<Self, LogError> {
        let mut options = Self::default();
        let mut all = false;
        for (name, value) in query.iter().filter(|(_, value)| !value.is_empty()) {
            match name.as_str() {
                "follow" => options.follow = flag(name, value)?,
                "previous" => options.previous = flag(name, value)?,
                "timestamps" => options.timestamps = flag(name, value)?,
                // The old word for the same; it had one for everything, too.
                "tail" if value == "all" => all = true,
                "tailLines" | "tail" => {
                    options.tail = usize::try_from(number(name, value, 0)?).ok();
                }
                "sinceSeconds" => options.since_seconds = Some(number(name, value, 1)?),
                "sinceTime" => {
                    let time = value
                        .parse()
                        .map_err(|_| wrong(name, value, "a time such as 2026-01-31T12:00:00Z"))?;
                    options.since_time = Some(time);
                }
                "limitBytes" => options.limit = u64::try_from(number(name, value, 1)?).ok(),
                _ => {}
            }
        }
        if all {
            options.tail = None;
        }
        if options.since_seconds.is_some() && options.since_time.is_some() {
            let why = "at most one of sinceTime or sinceSeconds may be specified";
            return Err(LogError::Invalid(why.to_owned()));
        }
        Ok(options)
    }

    /// What was written earlier is left out.
    pub fn since(&self, now: Timestamp) -> Option<Timestamp> {
        let ago = |seconds: i64| now.checked_sub(jiff::SignedDuration::from_secs(seconds)).ok();
        self.since_time.or_else(|| self.since_seconds.and_then(ago))
    }
}

fn flag(name: &str, value: &str) -> Result<bool, LogError> {
    match value {
        "1" | "t" | "T" | "true" | "TRUE" | "True" => Ok(true),
        "0" | "f" | "F" | "false" | "FALSE" | "False" => Ok(false),
        _ => Err(wrong(name, value, "true or false")),
    }
}

fn number(name: &str, value: &str, least: i64) -> Result<i64, LogError> {
    let number = value.parse().ok().filter(|number| *number >= least);
    number.ok_or_else(|| wrong(name, value, &format!("a number of at least {least}")))
}

fn wrong(name: &str, value: &str, fix: &str) -> LogError {
    LogError::Invalid(format!("{name}={value:?} is none; write {fix}"))
}

/// Which start of a container of a pod with that status left the log that is meant.
///
/// # Errors
/// When there is no such container, or no log of it.
pub fn log_restart_count(
    pod: &Pod,
    status: Option<&PodStatus>,
    container: &str,
    previous: bool,
) -> Result<u32, LogError> {
    let name = pod.full_name().name;
    if pod.container(container).is_none() {
        let message = format!("container {container:?} not found in pod {name:?}");
        return Err(LogError::Unknown(message));
    }
    let Some(status) = status_of(status, container) else {
        return Err(LogError::Absent(format!(
            "container {container:?} in pod {name:?} is not available"
        )));
    };
    let last = u32::try_from(status.restart_count).unwrap_or_default();
    let state = status.state.clone().unwrap_or_default();
    let has_ended_before = status.last_state.as_ref().is_some_and(|it| it.terminated.is_some());
    let waits = state.running.is_none() && state.terminated.is_none();
    match (previous, waits, has_ended_before) {
        // While the next start is waited for, the last one counts as both.
        (_, true, true) => Ok(last),
        (true, false, true) => Ok(last.saturating_sub(1)),
        (true, _, false) => Err(LogError::Absent(format!(
            "previous terminated container {container:?} in pod {name:?} not found"
        ))),
        (false, false, _) => Ok(last),
        (false, true, false) => Err(LogError::Absent(format!(
            "container {container:?} in pod {name:?} is waiting to start{}",
            waiting(&state)
        ))),
    }
}

fn waiting(state: &ContainerState) -> String {
    match state.waiting.as_ref().and_then(|it| it.reason.as_deref()) {
        Some("ErrImagePull") => ": image can't be pulled".to_owned(),
        Some("ImagePullBackOff") => ": trying and failing to pull image".to_owned(),
        Some(reason) => format!(": {reason}"),
        None => " - no logs yet".to_owned(),
    }
}

/// Whether a container that was started so often writes no more to that log, by the status of its pod.
pub fn is_log_complete(status: Option<&PodStatus>, container: &str, start: u32) -> bool {
    let Some(status) = status_of(status, container) else { return true };
    let runs = status.state.as_ref().is_some_and(|state| state.running.is_some());
    !runs || u32::try_from(status.restart_count).unwrap_or_default() != start
}

fn status_of<'a>(status: Option<&'a PodStatus>, container: &str) -> Option<&'a ContainerStatus> {
    let status = status?;
    let all = [
        &status.init_container_statuses,
        &status.container_statuses,
        &status.ephemeral_container_statuses,
    ];
    all.into_iter().flatten().flatten().find(|it| it.name == container)
}
