//! The status column of `kubectl get pods`: a pod's state in one word.

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{
    Container, ContainerState, ContainerStateTerminated, ContainerStatus,
};
use k8s_openapi::api::core::v1::{Pod, PodSpec, PodStatus};
use oarsman_core::report::PodReport;

#[cfg(test)]
mod tests;

/// The columns of a pod's line.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct PodSummary {
    /// How many containers are ready.
    pub(super) ready: usize,
    /// How many containers there are.
    pub(super) total: usize,
    /// The status word.
    pub(super) status: String,
    /// How often containers were restarted.
    pub(super) restarts: i32,
    /// When the last container that was restarted had ended.
    pub(super) last_restart: Option<Timestamp>,
}

/// The summary of a pod.
pub(super) fn summary(report: &PodReport) -> PodSummary {
    let (spec, status) = parts(&report.pod);
    let mut summary = PodSummary { status: phase_or_reason(&status), ..PodSummary::default() };
    let sidecars = init_containers(&spec).filter(|container| is_sidecar(container)).count();
    summary.total = spec.containers.len() + sidecars;
    let initializing = summarize_init_containers(&mut summary, &spec, &status);
    if !initializing || has_condition(&status, "Initialized") {
        summarize_containers(&mut summary, &spec, &status);
    }
    let over = matches!(status.phase.as_deref(), Some("Succeeded" | "Failed"));
    let leaving = report.leaving || report.pod.metadata.deletion_timestamp.is_some();
    if leaving && !over {
        "Terminating".clone_into(&mut summary.status);
    }
    summary
}

fn parts(pod: &Pod) -> (PodSpec, PodStatus) {
    (pod.spec.clone().unwrap_or_default(), pod.status.clone().unwrap_or_default())
}

/// The status reason of the pod as a whole, or its phase.
fn phase_or_reason(status: &PodStatus) -> String {
    let reason = status.reason.as_ref().filter(|reason| !reason.is_empty());
    reason.or(status.phase.as_ref()).cloned().unwrap_or_else(|| "Pending".to_owned())
}

/// Adds the init containers; true while they have not all completed.
fn summarize_init_containers(summary: &mut PodSummary, spec: &PodSpec, status: &PodStatus) -> bool {
    let statuses = status.init_container_statuses.iter().flatten();
    statuses.clone().for_each(|container| summary.count_restarts(container));
    for (number, container) in statuses.enumerate() {
        let state = container.state.clone().unwrap_or_default();
        let restarts = init_containers(spec).any(|it| it.name == container.name && is_sidecar(it));
        if state.terminated.as_ref().is_some_and(|ended| ended.exit_code == 0) {
            continue;
        }
        if restarts && container.started == Some(true) {
            summary.ready += usize::from(container.ready);
            continue;
        }
        let why =
            exit_reason(&state).or_else(|| waiting(&state).filter(|why| why != "PodInitializing"));
        let of = init_containers(spec).count();
        summary.status = format!("Init:{}", why.unwrap_or_else(|| format!("{number}/{of}")));
        return true;
    }
    false
}

/// Adds the regular containers; the status word is that of the first one that has any.
fn summarize_containers(summary: &mut PodSummary, spec: &PodSpec, status: &PodStatus) {
    let sidecars: Vec<&str> =
        init_containers(spec).filter(|it| is_sidecar(it)).map(|it| it.name.as_str()).collect();
    (summary.restarts, summary.last_restart) = (0, None);
    let inits = status.init_container_statuses.iter().flatten();
    inits
        .filter(|it| sidecars.contains(&it.name.as_str()))
        .for_each(|it| summary.count_restarts(it));
    let mut runs = false;
    for container in status.container_statuses.iter().flatten().rev() {
        summary.count_restarts(container);
        let state = container.state.clone().unwrap_or_default();
        if let Some(why) = waiting(&state).or_else(|| exit_reason(&state)) {
            summary.status = why;
        } else if container.ready && state.running.is_some() {
            runs = true;
            summary.ready += 1;
        }
    }
    if summary.status == "Completed" && runs {
        let ready = has_condition(status, "Ready");
        if ready { "Running" } else { "NotReady" }.clone_into(&mut summary.status);
    }
}

impl PodSummary {
    fn count_restarts(&mut self, container: &ContainerStatus) {
        self.restarts += container.restart_count;
        let last = container.last_state.as_ref().and_then(|state| state.terminated.as_ref());
        let ended = last.and_then(|ended| ended.finished_at.as_ref()).map(|at| at.0);
        self.last_restart = self.last_restart.max(ended);
    }
}

fn init_containers(spec: &PodSpec) -> impl Iterator<Item = &Container> {
    spec.init_containers.iter().flatten()
}

fn is_sidecar(container: &Container) -> bool {
    container.restart_policy.as_deref() == Some("Always")
}

fn has_condition(status: &PodStatus, kind: &str) -> bool {
    let mut conditions = status.conditions.iter().flatten();
    conditions.any(|condition| condition.type_ == kind && condition.status == "True")
}

fn waiting(state: &ContainerState) -> Option<String> {
    let reason = state.waiting.as_ref()?.reason.clone();
    reason.filter(|reason| !reason.is_empty())
}

fn exit_reason(state: &ContainerState) -> Option<String> {
    let ended: &ContainerStateTerminated = state.terminated.as_ref()?;
    let reason = ended.reason.clone().filter(|reason| !reason.is_empty());
    let by_signal = ended.signal.filter(|signal| *signal != 0);
    let bare = || match by_signal {
        Some(signal) => format!("Signal:{signal}"),
        None => format!("ExitCode:{}", ended.exit_code),
    };
    Some(reason.unwrap_or_else(bare))
}
