//! The invariant on the network of pods: what is known to fail is not tried.

use std::time::Duration;

use oarsman_core::pod::PodExt;
use oarsman_world::trace::TraceEntry;

use super::InvariantViolation;
use super::timeline::Timeline;
use crate::SimulationResult;

/// How old the agent's object_state may be: an answer that took ten seconds, is used for fifteen, and files that take thirty to read before the
/// call; and some more.
const KNOWN_AFTER: Duration = Duration::from_secs(60);

pub(super) fn no_sandbox_is_tried_without_a_network(
    result: &SimulationResult,
    _: &Timeline,
) -> Vec<InvariantViolation> {
    let lost = result.records.iter().filter_map(|record| match record.entry {
        TraceEntry::NetworkLost { down } => Some((record.at + KNOWN_AFTER, record.at + down)),
        _ => None,
    });
    let lost: Vec<(Duration, Duration)> = lost.collect();
    let tried = result.records.iter().filter_map(|record| match &record.entry {
        TraceEntry::Called { call: "RunPodSandbox", subject, .. } => Some((record.at, subject)),
        _ => None,
    });
    let in_vain = tried.filter(|(at, _)| lost.iter().any(|(from, to)| (from..to).contains(&at)));
    let needs_network = in_vain.filter(|(_, subject)| !is_on_host_network(result, subject));
    let violation = |(at, subject): (Duration, &String)| InvariantViolation {
        rule: "no sandbox is tried without a network",
        at,
        what: format!("RunPodSandbox {subject}"),
    };
    needs_network.map(violation).collect()
}

/// Whether the pod that the call is about is on the host's network.
fn is_on_host_network(result: &SimulationResult, subject: &str) -> bool {
    let pods = result.plan.actions.iter().filter_map(|(_, action)| action.new_pod());
    let uid = subject.split(' ').next().unwrap_or_default();
    pods.filter(|pod| pod.uid().as_str() == uid).any(PodExt::host_network)
}
