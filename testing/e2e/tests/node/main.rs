//! A node of a real cluster: what API clients see while pods come, change and go, while agents take over from each other or are killed, and
//! while the API server is away.

mod access;
mod admission;
mod autoscaling;
mod containers;
mod credentials;
mod deployment;
mod kills;
mod metrics;
mod objects;
mod outage;
mod reboot;
mod server_load;
mod stateful_set;
mod stats;
mod streaming;
mod swap;
mod tenants;
mod volume_kills;

use std::process::ExitCode;

use oarsman_e2e::scenario::Scenario;
use oarsman_e2e::{scenario, scenarios};

use access::both_agents_authorize_every_request_alike_but_for_what_is_meant;
use admission::pods_that_the_node_has_no_room_for_are_rejected_with_the_reason;
use autoscaling::kubectl_top_and_the_autoscaler_work_by_metrics_of_the_agent;
use containers::{
    an_ephemeral_container_sees_the_processes_of_its_target_and_runs_once,
    termination_messages_come_from_the_file_or_from_the_log,
};
use credentials::{
    a_certificate_is_renewed_before_it_expires_without_a_disturbance,
    a_node_joins_by_a_token_and_its_logs_are_read,
};
use deployment::a_deployment_is_scaled_updated_and_deleted_and_its_events_read_right;
use kills::{
    the_agent_killed_fifty_times_under_twenty_probed_pods_is_not_noticed,
    the_agent_killed_ten_times_under_twenty_ready_pods_is_not_noticed,
};
use metrics::the_kubelets_metrics_say_what_the_test_knows;
use objects::config_maps_and_secrets_of_a_pod_are_mounted_and_updated;
use outage::statuses_of_an_outage_of_the_api_server_are_sent_afterwards;
use reboot::pods_come_back_after_a_reboot_without_an_api_server;
use server_load::{
    followers_of_logs_and_commands_delay_no_pod_and_leave_nothing,
    stalled_log_readers_and_unfinished_requests_delay_neither_a_new_pod_nor_the_lease,
};
use stateful_set::a_stateful_set_on_local_volumes_keeps_its_data_over_restarts_of_the_node;
use stats::the_numbers_of_pods_are_those_of_their_cgroups;
use streaming::{
    kubectl_executes_attaches_copies_and_forwards_by_spdy,
    kubectl_executes_attaches_copies_and_forwards_by_websocket,
};
use swap::our_agent_takes_over_from_the_go_kubelet_and_gives_back;
use tenants::{
    an_image_of_another_tenant_is_refused_by_both_agents_unless_it_is_exempt,
    an_image_of_another_tenant_is_refused_by_both_agents_unless_none_is_verified,
};
use volume_kills::the_agent_killed_twenty_times_among_volumes_leaks_and_deletes_nothing;

fn main() -> ExitCode {
    let mut scenarios = scenarios![
        a_deployment_is_scaled_updated_and_deleted_and_its_events_read_right,
        config_maps_and_secrets_of_a_pod_are_mounted_and_updated,
        a_stateful_set_on_local_volumes_keeps_its_data_over_restarts_of_the_node,
        an_ephemeral_container_sees_the_processes_of_its_target_and_runs_once,
        termination_messages_come_from_the_file_or_from_the_log,
        the_numbers_of_pods_are_those_of_their_cgroups,
        our_agent_takes_over_from_the_go_kubelet_and_gives_back,
        the_agent_killed_ten_times_under_twenty_ready_pods_is_not_noticed,
        statuses_of_an_outage_of_the_api_server_are_sent_afterwards,
        pods_come_back_after_a_reboot_without_an_api_server,
        a_node_joins_by_a_token_and_its_logs_are_read,
        a_certificate_is_renewed_before_it_expires_without_a_disturbance,
        pods_that_the_node_has_no_room_for_are_rejected_with_the_reason,
        both_agents_authorize_every_request_alike_but_for_what_is_meant,
        kubectl_executes_attaches_copies_and_forwards_by_websocket,
        kubectl_executes_attaches_copies_and_forwards_by_spdy,
        an_image_of_another_tenant_is_refused_by_both_agents_unless_it_is_exempt,
        an_image_of_another_tenant_is_refused_by_both_agents_unless_none_is_verified,
        the_agent_killed_twenty_times_among_volumes_leaks_and_deletes_nothing,
        kubectl_top_and_the_autoscaler_work_by_metrics_of_the_agent,
        the_kubelets_metrics_say_what_the_test_knows,
    ];
    let alone = scenarios![
        followers_of_logs_and_commands_delay_no_pod_and_leave_nothing,
        stalled_log_readers_and_unfinished_requests_delay_neither_a_new_pod_nor_the_lease,
        the_agent_killed_fifty_times_under_twenty_probed_pods_is_not_noticed,
    ];
    scenarios.extend(alone.into_iter().map(Scenario::alone));
    scenario::main_with_cluster(&scenario::flavours(), &scenarios)
}
