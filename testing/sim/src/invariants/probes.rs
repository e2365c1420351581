//! Invariants on probes: a container is ready and started only after a good answer, is not ready any more only after enough bad ones, and is
//! asked in the right order. What was answered is read from the trace, not from the agent.

use std::collections::BTreeMap;
use std::time::Duration;

use k8s_openapi::api::core::v1::{Container, ContainerStatus, Pod, Probe};
use oarsman_core::pod::PodExt;
use oarsman_core::probe::ProbeKind;

use super::InvariantViolation;
use super::starts::pod;
use super::timeline::{ContainerTimeline, ProbeCall, Timeline};
use crate::SimulationResult;
use crate::random_probes::{grpc_port, is_always_good, marker};

/// The finished calls of a container's probe up to that moment, in order.
fn calls<'a>(
    timeline: &'a Timeline,
    container: &ContainerTimeline,
    kind: ProbeKind,
    until: Duration,
) -> Vec<&'a ProbeCall> {
    let (uid, name) = (container.pod.as_str(), container.name.as_str());
    let (marker, port) = (marker(uid, name, kind), format!(":{}", grpc_port(uid, name, kind)));
    let is_its = |call: &&ProbeCall| {
        call.subject.contains(&marker)
            || (call.subject.starts_with("grpc://") && call.subject.ends_with(&port))
    };
    let began = container.started.unwrap_or(container.created);
    let calls = timeline.probe_calls.iter().filter(is_its);
    calls.filter(|call| began <= call.at && call.end.is_some_and(|end| end <= until)).collect()
}

/// Whether a good answer has been heard.
fn has_passed(calls: &[&ProbeCall]) -> bool {
    calls.iter().any(|call| call.answer == Some(true))
}

/// Whether as many bad answers in a row have been heard as the probe's threshold says.
fn has_failed(calls: &[&ProbeCall], probe: &Probe) -> bool {
    let threshold = probe.failure_threshold.unwrap_or(3);
    let mut run = 0;
    calls.iter().filter_map(|call| call.answer).any(|is_good| {
        run = if is_good { 0 } else { run + 1 };
        run >= threshold
    })
}

/// Whether a probe is a reason to stop the container at that moment.
pub(super) fn explain_stop(
    result: &SimulationResult,
    timeline: &Timeline,
    container: &ContainerTimeline,
    at: Duration,
) -> bool {
    let Some(wanted) = pod(result, &container.pod).and_then(|pod| pod.container(&container.name))
    else {
        return false;
    };
    [ProbeKind::Liveness, ProbeKind::Startup].into_iter().any(|kind| {
        let calls = calls(timeline, container, kind, at);
        kind.of(&wanted.spec).is_some_and(|probe| has_failed(&calls, probe))
    })
}

/// Whether a probe may restart a container of that spec: for its answers, or because calls fail.
pub(super) fn may_restart(result: &SimulationResult, spec: &Container) -> bool {
    let probes = [&spec.liveness_probe, &spec.startup_probe];
    probes.into_iter().flatten().any(|probe| !result.plan.is_fault_free() || !is_always_good(probe))
}

/// Whether probes may restart any container of the pod.
pub(super) fn may_restart_pod(result: &SimulationResult, pod: &Pod) -> bool {
    pod.all_containers().iter().any(|container| may_restart(result, &container.spec))
}

/// Statuses of containers that run, as the API server accepted them: when, what the world knows of the container, and its spec.
fn statuses<'a>(
    result: &'a SimulationResult,
    timeline: &'a Timeline,
) -> impl Iterator<Item = (Duration, &'a ContainerStatus, &'a ContainerTimeline)> {
    let by_id: BTreeMap<&str, &ContainerTimeline> =
        timeline.containers.iter().map(|container| (container.id.as_str(), container)).collect();
    result.statuses.iter().flat_map(move |published| {
        let lists =
            [&published.status.container_statuses, &published.status.init_container_statuses];
        let running =
            lists.into_iter().flatten().flatten().filter(|status| {
                status.state.as_ref().is_some_and(|state| state.running.is_some())
            });
        let known: Vec<_> = running
            .filter_map(|status| {
                let (_, id) = status.container_id.as_deref()?.split_once("://")?;
                Some((published.at, status, *by_id.get(id)?))
            })
            .collect();
        known
    })
}

/// The probe of that kind of a container.
fn probe_of(
    result: &SimulationResult,
    container: &ContainerTimeline,
    kind: ProbeKind,
) -> Option<Probe> {
    let wanted = pod(result, &container.pod)?.container(&container.name)?;
    kind.of(&wanted.spec).cloned()
}

pub(super) fn no_readiness_without_a_passed_probe(
    result: &SimulationResult,
    timeline: &Timeline,
) -> Vec<InvariantViolation> {
    let mut violations = Vec::new();
    for (at, status, container) in statuses(result, timeline) {
        let claims = [
            (ProbeKind::Readiness, status.ready),
            (ProbeKind::Startup, status.started.unwrap_or_default()),
        ];
        for (kind, _) in claims.into_iter().filter(|(_, claimed)| *claimed) {
            let is_probed = probe_of(result, container, kind).is_some();
            if is_probed && !has_passed(&calls(timeline, container, kind, at)) {
                let what = format!("{kind} of {}/{}", container.pod, container.name);
                let rule = "no readiness without a passed probe";
                violations.push(InvariantViolation { rule, at, what });
            }
        }
    }
    violations
}

/// A container that runs on is ready until its probe has failed, whatever becomes of the agent, and does not take back that it has started.
pub(super) fn readiness_is_lost_by_failed_probes_only(
    result: &SimulationResult,
    timeline: &Timeline,
) -> Vec<InvariantViolation> {
    let mut violations = Vec::new();
    // A write that timed out may take effect after a later one; the agent then writes again.
    if timeline.gave_up_a_status {
        return violations;
    }
    let rule = "readiness is lost by failed probes only";
    let mut before: BTreeMap<&str, (bool, bool)> = BTreeMap::new();
    for (at, status, container) in statuses(result, timeline) {
        let now = (status.ready, status.started.unwrap_or_default());
        let (was_ready, had_started) = before.insert(&container.id, now).unwrap_or_default();
        let name = format!("{}/{}", container.pod, container.name);
        if had_started && !now.1 {
            violations.push(InvariantViolation { rule, at, what: format!("start of {name}") });
        }
        if was_ready && !now.0 && now.1 {
            let probe = probe_of(result, container, ProbeKind::Readiness);
            let calls = calls(timeline, container, ProbeKind::Readiness, at);
            if !probe.is_some_and(|probe| has_failed(&calls, &probe)) {
                violations.push(InvariantViolation { rule, at, what: name });
            }
        }
    }
    violations
}

pub(super) fn liveness_is_asked_after_startup(
    result: &SimulationResult,
    timeline: &Timeline,
) -> Vec<InvariantViolation> {
    let mut violations = Vec::new();
    for container in &timeline.containers {
        if probe_of(result, container, ProbeKind::Startup).is_none() {
            continue;
        }
        let end = container.end().unwrap_or(Duration::MAX);
        for call in calls(timeline, container, ProbeKind::Liveness, end) {
            let startup = calls(timeline, container, ProbeKind::Startup, call.at);
            if !has_passed(&startup) {
                let what = format!("{}/{}", container.pod, container.name);
                let rule = "liveness is asked after startup";
                violations.push(InvariantViolation { rule, at: call.at, what });
            }
        }
    }
    violations
}
