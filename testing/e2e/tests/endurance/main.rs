//! Disturbances of an agent on real containerd that its pods must not notice: its own death, the runtime's, calls that hang, other agents; and
//! its cost on an idle node.

mod container_observer;
mod hangs;
mod idle;
mod kills;
mod log_rotation;
mod other_clients;

use std::process::ExitCode;

use oarsman_e2e::scenario::Scenario;
use oarsman_e2e::{scenario, scenarios};

use hangs::{
    one_hung_sandbox_holds_up_no_other_pod, while_containerd_is_stopped_only_pods_that_need_it_wait,
};
use idle::fifty_idle_pods_cost_nothing_but_the_relist;
use kills::{
    containerd_killed_ten_times_under_twenty_pods_restarts_nothing,
    the_agent_killed_fifty_times_doubles_nothing_and_restarts_nothing,
};
use log_rotation::{
    a_follower_sees_every_line_once_over_twenty_rotations,
    logs_of_20_mb_a_second_stay_small_and_whole_for_two_minutes,
    logs_of_a_fast_writer_stay_small_and_whole_over_restarts,
};
use other_clients::{
    a_runtime_has_one_kubelet, two_agents_and_a_foreign_sandbox_do_not_affect_each_other,
};

fn main() -> ExitCode {
    let mut scenarios = scenarios![
        containerd_killed_ten_times_under_twenty_pods_restarts_nothing,
        while_containerd_is_stopped_only_pods_that_need_it_wait,
        two_agents_and_a_foreign_sandbox_do_not_affect_each_other,
        a_runtime_has_one_kubelet,
        fifty_idle_pods_cost_nothing_but_the_relist,
        logs_of_a_fast_writer_stay_small_and_whole_over_restarts,
        a_follower_sees_every_line_once_over_twenty_rotations,
    ];
    let alone = scenarios![
        the_agent_killed_fifty_times_doubles_nothing_and_restarts_nothing,
        one_hung_sandbox_holds_up_no_other_pod,
    ];
    scenarios.extend(alone.into_iter().map(Scenario::alone));
    let long = scenarios![logs_of_20_mb_a_second_stay_small_and_whole_for_two_minutes];
    scenarios.extend(long.into_iter().map(Scenario::long));
    scenario::main(&scenario::flavours(), &scenarios)
}
