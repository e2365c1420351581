//! The invariants that must hold in every simulation, checked on the world's trace.

mod convergence;
mod deletion;
mod hooks;
mod images;
mod network;
mod order;
mod probes;
mod room;
mod starts;
mod status;
mod stops;
mod timeline;

use std::fmt;
use std::time::Duration;

use crate::SimulationResult;

pub use timeline::Timeline;

/// A violation of an invariant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InvariantViolation {
    /// The name of the invariant.
    pub rule: &'static str,
    /// The virtual time since the start.
    pub at: Duration,
    /// What was observed.
    pub what: String,
}

impl fmt::Display for InvariantViolation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at {:.3} s: {}", self.rule, self.at.as_secs_f64(), self.what)
    }
}

/// All violations of a simulation.
pub fn check(result: &SimulationResult) -> Vec<InvariantViolation> {
    let timeline = Timeline::of(&result.records);
    let rules = [
        starts::never_two_of_one_name,
        starts::only_what_is_wanted_starts,
        starts::the_restart_policy_is_obeyed,
        starts::crashes_are_followed_by_a_wait,
        starts::what_was_made_is_used,
        images::no_image_goes_that_is_needed,
        network::no_sandbox_is_tried_without_a_network,
        room::no_more_starts_than_there_is_room_for,
        room::what_runs_is_not_rejected,
        order::init_containers_come_first_and_in_turn,
        order::sidecars_end_last,
        stops::grace_is_respected,
        hooks::hooks_come_before_stops,
        stops::nothing_is_stopped_without_a_reason,
        probes::no_readiness_without_a_passed_probe,
        probes::readiness_is_lost_by_failed_probes_only,
        probes::liveness_is_asked_after_startup,
        status::a_terminal_phase_is_final,
        status::a_terminal_phase_means_that_nothing_runs,
        deletion::objects_go_last,
        convergence::what_is_wanted_runs,
        convergence::what_has_ended_is_told,
        convergence::pods_from_files_are_shown,
        convergence::what_is_not_wanted_is_gone,
        convergence::little_is_kept,
        convergence::a_node_at_rest_is_quiet,
    ];
    rules.iter().flat_map(|rule| rule(result, &timeline)).collect()
}
