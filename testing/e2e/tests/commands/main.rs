//! The commands against running agents: what they show of pods in all states, and what they do to them.

mod logs;
mod shows;
mod socket;
mod stops;
mod streams;

use std::process::ExitCode;
use std::time::Duration;

use oarsman_e2e::{scenario, scenarios};

use logs::{logs_are_followed_over_a_restart_to_the_end, logs_are_shown_in_parts};
use shows::{
    containers_and_the_node_are_measured_without_a_cluster,
    pods_are_found_by_name_and_similar_names_suggested,
    pods_in_all_states_are_shown_as_kubectl_does,
};
use socket::{only_root_can_use_the_socket, two_agents_answer_at_their_own_sockets};
use stops::{
    a_kubelet_names_the_manifest_instead, run_mode_stops_a_pod_for_good,
    run_mode_stops_all_pods_and_ends,
};
use streams::commands_talk_to_containers_and_their_ports;

/// A wait that is this long has failed.
const MAX_WAIT: Duration = Duration::from_secs(60);

fn main() -> ExitCode {
    let scenarios = scenarios![
        pods_in_all_states_are_shown_as_kubectl_does,
        pods_are_found_by_name_and_similar_names_suggested,
        containers_and_the_node_are_measured_without_a_cluster,
        logs_are_shown_in_parts,
        logs_are_followed_over_a_restart_to_the_end,
        run_mode_stops_a_pod_for_good,
        run_mode_stops_all_pods_and_ends,
        a_kubelet_names_the_manifest_instead,
        only_root_can_use_the_socket,
        two_agents_answer_at_their_own_sockets,
        commands_talk_to_containers_and_their_ports,
    ];
    scenario::main(&scenario::flavours(), &scenarios)
}
