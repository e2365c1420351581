//! Static pods on real containerd: how they start, change, fail and end, as seen in the runtime and the kernel.

mod admission;
mod agent_exit;
mod configured;
mod crashes;
mod credentials;
mod disks;
mod endings;
mod image_disk;
mod linked_root;
mod order;
mod probes;
mod starts;
mod sub_paths;
mod systemd;
mod trouble;
mod user_namespaces;
mod volume_sources;

use std::process::ExitCode;

use oarsman_e2e::scenario::Scenario;
use oarsman_e2e::{scenario, scenarios};

use admission::{
    a_critical_pod_makes_one_of_lower_priority_leave,
    pods_that_do_not_fit_the_node_are_rejected_with_the_reason,
};
use agent_exit::an_agent_that_gets_sigterm_during_a_crash_ends_at_once_and_its_pods_stay;
use configured::an_agent_is_configured_by_its_file_and_drop_ins;
use crashes::{
    a_crash_loop_waits_nothing_then_ten_then_twenty_seconds,
    containers_of_a_killed_shim_are_restarted_by_policy, exit_code_rules_come_before_the_policy,
    on_failure_restarts_failures_only, what_never_restarts_runs_once,
};
use credentials::{
    a_private_image_is_for_those_who_can_pull_it_also_after_a_restart,
    a_private_image_is_pulled_with_a_credential_provider,
    a_private_image_is_pulled_with_a_secret_beside_its_pod,
};
use disks::{
    on_a_full_disk_the_agent_starts_and_pods_can_be_deleted,
    on_a_read_only_disk_the_agent_starts_and_pods_can_be_deleted,
};
use endings::{
    a_container_is_stopped_by_the_signal_that_its_spec_names,
    a_container_that_ignores_its_end_is_killed_when_its_grace_is_over,
    a_hook_and_its_container_share_one_grace, a_removed_manifest_ends_its_pod_within_grace,
    a_sidecar_outlives_the_others_and_goes_last,
};
use image_disk::{
    images_go_from_a_full_disk_down_to_the_low_threshold_and_running_pods_keep_theirs,
    images_that_were_not_used_for_longest_go_first,
};
use linked_root::a_root_behind_a_link_has_constant_mounts_over_100_syncs;
use order::{init_containers_run_one_after_the_other, two_pods_of_one_name_run_in_turn};
use probes::{
    a_command_that_times_out_leaves_no_process,
    a_failed_liveness_probe_restarts_and_a_startup_probe_holds_it_back,
    a_probe_that_misbehaves_affects_its_own_pod_only,
    each_kind_of_probe_makes_a_pod_ready_or_does_not,
    readiness_follows_its_probe_without_a_restart,
};
use starts::{
    a_pod_starts_with_all_fields_of_its_spec, an_edited_image_restarts_that_container_only,
    an_edited_manifest_without_a_uid_replaces_the_pod, fifty_pods_start_at_once,
};
use sub_paths::parts_of_volumes_outlive_containers_and_agents_and_go_with_the_pod;
use systemd::systemd_is_notified_of_the_agents_state;
use trouble::{
    a_broken_manifest_keeps_its_pod_and_hides_no_other,
    a_container_removed_by_another_program_comes_back, a_failed_pull_has_a_reason_and_is_retried,
    a_pod_cgroup_removed_by_another_program_comes_back,
    a_private_image_is_pulled_with_the_nodes_credentials,
};
use user_namespaces::pods_in_user_namespaces_have_ids_of_their_own_over_a_restart;
use volume_sources::a_container_has_variables_of_a_file_and_an_image_as_a_volume;

fn main() -> ExitCode {
    let mut scenarios = scenarios![
        a_pod_starts_with_all_fields_of_its_spec,
        an_agent_is_configured_by_its_file_and_drop_ins,
        an_edited_image_restarts_that_container_only,
        an_edited_manifest_without_a_uid_replaces_the_pod,
        fifty_pods_start_at_once,
        pods_in_user_namespaces_have_ids_of_their_own_over_a_restart,
        parts_of_volumes_outlive_containers_and_agents_and_go_with_the_pod,
        a_container_has_variables_of_a_file_and_an_image_as_a_volume,
        on_failure_restarts_failures_only,
        what_never_restarts_runs_once,
        exit_code_rules_come_before_the_policy,
        containers_of_a_killed_shim_are_restarted_by_policy,
        init_containers_run_one_after_the_other,
        two_pods_of_one_name_run_in_turn,
        each_kind_of_probe_makes_a_pod_ready_or_does_not,
        readiness_follows_its_probe_without_a_restart,
        a_failed_liveness_probe_restarts_and_a_startup_probe_holds_it_back,
        a_command_that_times_out_leaves_no_process,
        a_probe_that_misbehaves_affects_its_own_pod_only,
        a_removed_manifest_ends_its_pod_within_grace,
        a_container_that_ignores_its_end_is_killed_when_its_grace_is_over,
        a_hook_and_its_container_share_one_grace,
        a_container_is_stopped_by_the_signal_that_its_spec_names,
        a_sidecar_outlives_the_others_and_goes_last,
        an_agent_that_gets_sigterm_during_a_crash_ends_at_once_and_its_pods_stay,
        a_container_removed_by_another_program_comes_back,
        a_pod_cgroup_removed_by_another_program_comes_back,
        a_broken_manifest_keeps_its_pod_and_hides_no_other,
        a_failed_pull_has_a_reason_and_is_retried,
        a_private_image_is_pulled_with_the_nodes_credentials,
        a_private_image_is_pulled_with_a_credential_provider,
        a_private_image_is_pulled_with_a_secret_beside_its_pod,
        a_private_image_is_for_those_who_can_pull_it_also_after_a_restart,
        systemd_is_notified_of_the_agents_state,
        a_root_behind_a_link_has_constant_mounts_over_100_syncs,
        on_a_full_disk_the_agent_starts_and_pods_can_be_deleted,
        on_a_read_only_disk_the_agent_starts_and_pods_can_be_deleted,
        images_go_from_a_full_disk_down_to_the_low_threshold_and_running_pods_keep_theirs,
        pods_that_do_not_fit_the_node_are_rejected_with_the_reason,
        a_critical_pod_makes_one_of_lower_priority_leave,
    ];
    let alone = scenarios![a_crash_loop_waits_nothing_then_ten_then_twenty_seconds];
    scenarios.extend(alone.into_iter().map(Scenario::alone));
    let long = scenarios![images_that_were_not_used_for_longest_go_first];
    scenarios.extend(long.into_iter().map(Scenario::long));
    scenario::main(&scenario::flavours(), &scenarios)
}
