//! Invariants on deletion: a pod's object is deleted last, and nothing is removed under running containers.

use std::time::Duration;

use oarsman_world::cluster::ClusterChange;
use oarsman_world::disk::DiskChange;

use super::InvariantViolation;
use super::timeline::Timeline;
use crate::{ExternalAction, SimulationResult};

pub(super) fn objects_go_last(
    result: &SimulationResult,
    timeline: &Timeline,
) -> Vec<InvariantViolation> {
    // Mirror pods are created and deleted as needed.
    let is_made = |of: &str| {
        let mut made = result
            .actions
            .iter()
            .filter(|(.., action)| matches!(action, ExternalAction::Create(_)));
        made.any(|(_, uid, _)| uid.as_str() == of)
    };
    let objects = timeline.objects.iter().filter(|(_, uid, _)| is_made(uid));
    let deleted = objects.filter_map(|(at, uid, change)| match change {
        ClusterChange::DeletedByAgent { terminal, asked } => Some((*at, uid, *terminal, *asked)),
        _ => None,
    });
    let mut violations: Vec<InvariantViolation> = deleted
        .flat_map(|(at, uid, terminal, asked)| {
            // A start or a status that takes effect after its call timed out is not the agent's fault.
            let late = timeline.has_fault("late effect");
            let runs = timeline.running(uid, at).next().is_some() && !late;
            let rows = [
                (!asked, "nobody asked for it"),
                (!terminal && !timeline.gave_up_a_status, "its phase was not terminal"),
                (runs, "a container still ran"),
                (
                    holds(timeline, uid, at),
                    "it still held a cgroup, volumes or mounts of their parts",
                ),
            ];
            let broken = rows.into_iter().filter(|(broken, _)| *broken);
            let violation = |(_, why)| InvariantViolation {
                rule: "objects go last",
                at,
                what: format!("{uid} was deleted though {why}"),
            };
            broken.map(violation).collect::<Vec<_>>()
        })
        .collect();
    violations.extend(timeline.disk.iter().filter_map(|(at, uid, change)| match change {
        DiskChange::Violated(what) if !timeline.has_fault("late effect") => {
            Some(InvariantViolation {
                rule: "nothing is taken from under what runs",
                at: *at,
                what: format!("{uid}: {what:?}"),
            })
        }
        _ => None,
    }));
    violations
}

/// Whether the machine still has resources of the pod at that moment.
fn holds(timeline: &Timeline, uid: &str, at: Duration) -> bool {
    let before = timeline.disk.iter().filter(|(when, of, _)| of == uid && *when <= at);
    let (mut cgroup, mut volumes, mut sub_paths) = (false, false, false);
    for (_, _, change) in before {
        match change {
            DiskChange::CgroupMade => cgroup = true,
            DiskChange::CgroupRemoved | DiskChange::CgroupVanished => cgroup = false,
            DiskChange::VolumesMade => volumes = true,
            DiskChange::VolumesReleased => volumes = false,
            DiskChange::SubPathsMounted => sub_paths = true,
            DiskChange::SubPathsUnmounted => sub_paths = false,
            _ => {}
        }
    }
    cgroup || volumes || sub_paths
}
