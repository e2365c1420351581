//! Invariants on convergence: after the faults end, wanted pods run, others are gone, and the agent is quiet.

use std::collections::BTreeSet;
use std::time::Duration;

use k8s_openapi::api::core::v1::{Container, Pod};
use oarsman_core::ids::FullName;
use oarsman_core::pod::{ContainerKind, MIRROR_ANNOTATION, PodExt, init_kind};
use oarsman_cri_types::v1::ContainerState;
use oarsman_world::trace::TraceEntry;

use super::InvariantViolation;
use super::probes::{may_restart, may_restart_pod};
use super::room::may_lack_room;
use super::starts::is_disturbed;
use super::timeline::Timeline;
use crate::random_pods::{MISSING, post_start_always_fails};
use crate::{ExternalAction, SimulationResult};

/// The longest crash-loop back-off, with jitter, and a script.
const LONGEST_WAIT: Duration = Duration::from_secs(300 + 150 + 90);
/// In which last part of the time calls are counted.
const WATCHED: Duration = Duration::from_secs(300);
/// The most calls of a converged node in that time: relists, its lease, its addresses, and for each pod its back-offs and its pulls.
const CALLS_OF_NODE: usize = 130;
const CALLS_OF_POD: usize = 400;

/// The pods that are wanted at the end.
fn wanted(result: &SimulationResult) -> impl Iterator<Item = &Pod> {
    let objects = result.final_state.objects.iter().filter(|pod| !pod.is_deleting());
    objects.chain(&result.final_state.files)
}

/// Whether an init container or sidecar can never start, or may be restarted by its probes again and again, and so nothing after it
/// starts.
fn is_blocked(result: &SimulationResult, pod: &Pod) -> bool {
    pod.init()
        .iter()
        .any(|spec| is_missing(spec) || post_start_always_fails(spec) || may_restart(result, spec))
}

fn is_missing(spec: &Container) -> bool {
    spec.image.as_deref() == Some(MISSING)
}

fn lasts(spec: &Container) -> bool {
    spec.args.iter().flatten().any(|step| step == "forever")
}

fn may_be_cut_short(result: &SimulationResult, pod: &Pod) -> bool {
    let limited = pod.spec().is_some_and(|spec| spec.active_deadline_seconds.is_some());
    let evicted = result.actions.iter().any(|(_, uid, action)| {
        *uid == pod.uid() && matches!(action, ExternalAction::Evict { .. })
    });
    limited || evicted || may_lack_room(result, pod.uid().as_str())
}

pub(super) fn what_is_wanted_runs(
    result: &SimulationResult,
    timeline: &Timeline,
) -> Vec<InvariantViolation> {
    let end = result.plan.end();
    let mut violations = Vec::new();
    let restarting = wanted(result).filter(|pod| {
        pod.restart_policy() == "Always"
            && !is_blocked(result, pod)
            && !may_be_cut_short(result, pod)
    });
    for pod in restarting {
        let uid = pod.uid();
        let sidecars = pod.init().iter().filter(|spec| init_kind(spec) == ContainerKind::Sidecar);
        for spec in pod.regular().iter().chain(sidecars).filter(|spec| !is_missing(spec)) {
            let lasts = lasts(spec) && !post_start_always_fails(spec) && !may_restart(result, spec);
            let states = result
                .final_state
                .containers
                .iter()
                .filter(|(of, name, _)| *of == uid && *name == spec.name);
            let runs =
                states.clone().any(|(_, _, state)| *state == ContainerState::ContainerRunning);
            let recently = timeline.containers.iter().any(|container| {
                container.pod == uid.as_str()
                    && container.name == spec.name
                    && container.started.is_some_and(|at| at + LONGEST_WAIT > end)
            });
            if !runs && (lasts || !recently) {
                let what = format!("{uid}/{} does not run", spec.name);
                violations.push(InvariantViolation { rule: "what is wanted runs", at: end, what });
            }
        }
    }
    violations
}

pub(super) fn what_has_ended_is_told(
    result: &SimulationResult,
    timeline: &Timeline,
) -> Vec<InvariantViolation> {
    let end = result.plan.end();
    let objects = result.final_state.objects.iter().filter(|pod| !pod.is_deleting());
    let told = objects.filter_map(|pod| {
        let phase = pod.status.as_ref().and_then(|status| status.phase.as_deref());
        let expected = expected_phase(result, timeline, pod)?;
        (phase != Some(expected)).then(|| InvariantViolation {
            rule: "what has ended is told",
            at: end,
            what: format!("{} should be {expected} and is {phase:?}", pod.uid()),
        })
    });
    told.collect()
}

/// Each static pod has one mirror pod at the API server, which has its UID and status; and there are no other mirror pods.
pub(super) fn pods_from_files_are_shown(
    result: &SimulationResult,
    timeline: &Timeline,
) -> Vec<InvariantViolation> {
    let (files, mirrors) = (&result.final_state.files, &result.final_state.mirrors);
    let of = |name: FullName| files.iter().find(|pod| pod.full_name() == name);
    let stray = mirrors.iter().filter(|mirror| of(mirror.full_name()).is_none());
    let stray = stray.map(|mirror| format!("nothing is behind {}", mirror.full_name()));
    let wrong = files.iter().filter_map(|pod| {
        let name = pod.full_name();
        let Some(mirror) = mirrors.iter().find(|mirror| mirror.full_name() == name) else {
            return Some(format!("nothing shows {}", pod.uid()));
        };
        if mirror.is_deleting() || mirror.annotation(MIRROR_ANNOTATION) != Some(pod.uid().as_str())
        {
            return Some(format!("{} is not what shows {}", mirror.uid(), pod.uid()));
        }
        let phase = mirror.status.as_ref().and_then(|status| status.phase.as_deref());
        let expected = expected_phase(result, timeline, pod)?;
        (phase != Some(expected))
            .then(|| format!("{} should be shown as {expected}, not {phase:?}", pod.uid()))
    });
    let violation = |what| InvariantViolation {
        rule: "pods from files are shown",
        at: result.plan.end(),
        what,
    };
    stray.chain(wrong).map(violation).collect()
}

/// The phase of a pod whose scripts determine it.
fn expected_phase(
    result: &SimulationResult,
    timeline: &Timeline,
    pod: &Pod,
) -> Option<&'static str> {
    let uid = pod.uid();
    let doubtful = is_blocked(result, pod)
        || pod.regular().iter().any(is_missing)
        || may_be_cut_short(result, pod)
        || may_restart_pod(result, pod)
        || is_disturbed(result, timeline, uid.as_str());
    if doubtful {
        return None;
    }
    let mut codes = pod.regular().iter().map(exit_code);
    match pod.restart_policy() {
        "Always" => Some("Running"),
        _ if pod.regular().iter().any(lasts) => Some("Running"),
        "Never" if codes.all(|code| code == Some(0)) => Some("Succeeded"),
        "Never" => Some("Failed"),
        _ if codes.all(|code| code == Some(0)) => Some("Succeeded"),
        _ => Some("Running"),
    }
}

fn exit_code(spec: &Container) -> Option<i32> {
    let last = spec.args.as_ref()?.last()?;
    last.strip_prefix("exit:")?.parse().ok()
}

pub(super) fn what_is_not_wanted_is_gone(
    result: &SimulationResult,
    _: &Timeline,
) -> Vec<InvariantViolation> {
    let at = result.plan.end();
    let known: BTreeSet<_> = wanted(result).map(Pod::uid).collect();
    let violation =
        |what: String| InvariantViolation { rule: "what is not wanted is gone", at, what };
    let objects = result.final_state.objects.iter().filter(|pod| pod.is_deleting());
    let objects = objects.map(|pod| format!("object {}", pod.uid()));
    let sandboxes = result.final_state.sandboxes.iter().filter(|(uid, _, _)| !known.contains(uid));
    let sandboxes = sandboxes.map(|(uid, id, _)| format!("sandbox {id} of {uid}"));
    let containers =
        result.final_state.containers.iter().filter(|(uid, _, _)| !known.contains(uid));
    let containers = containers.map(|(uid, name, _)| format!("container {uid}/{name}"));
    let on_disk = result.final_state.on_disk.iter().filter(|uid| !known.contains(*uid));
    let on_disk = on_disk.map(|uid| format!("directory or cgroup of {uid}"));
    let two = wanted(result).filter(|pod| {
        let ready = result
            .final_state
            .sandboxes
            .iter()
            .filter(|(uid, _, ready)| *uid == pod.uid() && *ready);
        ready.count() > 1
    });
    let two = two.map(|pod| format!("a second ready sandbox of {}", pod.uid()));
    objects.chain(sandboxes).chain(containers).chain(on_disk).chain(two).map(violation).collect()
}

/// Of a pod that is wanted, one dead container of each name is kept, and no sandbox but its newest and those of such
/// containers.
pub(super) fn little_is_kept(result: &SimulationResult, _: &Timeline) -> Vec<InvariantViolation> {
    let at = result.plan.end();
    let mut violations = Vec::new();
    for pod in wanted(result) {
        let (uid, names) = (pod.uid(), pod.all_containers().len());
        let dead = result
            .final_state
            .containers
            .iter()
            .filter(|(of, _, state)| *of == uid && *state == ContainerState::ContainerExited);
        let sandboxes = result.final_state.sandboxes.iter().filter(|(of, _, _)| *of == uid).count();
        let (dead, sandboxes_allowed) = (dead.count(), names + 1);
        if dead > names || sandboxes > sandboxes_allowed {
            let what = format!("{dead} dead containers and {sandboxes} sandboxes of {uid}");
            violations.push(InvariantViolation { rule: "little is kept", at, what });
        }
    }
    violations
}

pub(super) fn a_node_at_rest_is_quiet(
    result: &SimulationResult,
    _: &Timeline,
) -> Vec<InvariantViolation> {
    let end = result.plan.end();
    let late = result.records.iter().filter(|record| record.at + WATCHED > end);
    let probes = ["get", "connect", "check_health", "ExecSync"];
    let is_counted = |entry: &TraceEntry| match entry {
        TraceEntry::Called { call, .. } => !probes.contains(call),
        _ => false,
    };
    let calls = late.filter(|record| is_counted(&record.entry)).count();
    let allowed = CALLS_OF_NODE + CALLS_OF_POD * wanted(result).count();
    if calls <= allowed {
        return Vec::new();
    }
    let what = format!("{calls} calls in the last {WATCHED:?}, {allowed} are plenty");
    vec![InvariantViolation { rule: "a node at rest is quiet", at: end, what }]
}
