//! Invariants on published statuses: a terminal phase is final, and is not published before the pod has ended.

use std::collections::BTreeMap;
use std::time::Duration;

use oarsman_world::cluster::ClusterChange;

use super::InvariantViolation;
use super::timeline::Timeline;
use crate::SimulationResult;

fn published(timeline: &Timeline) -> impl Iterator<Item = (Duration, &str, &str)> {
    timeline.objects.iter().filter_map(|(at, uid, change)| match change {
        ClusterChange::Published { phase } => Some((*at, uid.as_str(), phase.as_str())),
        _ => None,
    })
}

fn is_terminal(phase: &str) -> bool {
    matches!(phase, "Succeeded" | "Failed")
}

pub(super) fn a_terminal_phase_is_final(
    _: &SimulationResult,
    timeline: &Timeline,
) -> Vec<InvariantViolation> {
    let mut last: BTreeMap<&str, &str> = BTreeMap::new();
    let mut violations = Vec::new();
    // A write that timed out may take effect after a later one; the agent then writes again.
    if timeline.gave_up_a_status {
        return violations;
    }
    for (at, uid, phase) in published(timeline) {
        let before = last.insert(uid, phase).unwrap_or_default();
        // Running may become Pending again: a new sandbox begins anew with its init containers.
        if is_terminal(before) && before != phase {
            let what = format!("{uid} goes from {before} to {phase}");
            violations.push(InvariantViolation { rule: "a terminal phase is final", at, what });
        }
    }
    violations
}

pub(super) fn a_terminal_phase_means_that_nothing_runs(
    _: &SimulationResult,
    timeline: &Timeline,
) -> Vec<InvariantViolation> {
    let mut violations = Vec::new();
    // A start that takes effect after its call timed out is not the agent's fault.
    if timeline.has_fault("late effect") {
        return violations;
    }
    for (at, uid, phase) in published(timeline).filter(|(_, _, phase)| is_terminal(phase)) {
        for container in timeline.running(uid, at) {
            let what = format!("{uid} is {phase} while {} runs", container.name);
            violations.push(InvariantViolation {
                rule: "a terminal phase means that nothing runs",
                at,
                what,
            });
        }
    }
    violations
}
