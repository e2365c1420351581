//! Disturbances of an agent on real containerd that its pods must not notice: its own death, the runtime's, calls that hang, other agents; and
//! its cost on an idle node.

mod container_observer;
mod hangs;
mod idle;
mod kills;
mod neighbours;

use std::process::ExitCode;

use oarsman_e2e::scenario::Scenario;
use oarsman_e2e::{scenario, scenarios};

use hangs::{
    one_hung_sandbox_holds_up_nobody_else,
    while_containerd_is_stopped_only_those_who_want_something_wait,
};
use idle::fifty_idle_pods_cost_nothing_but_the_audit;
use kills::{
    containerd_killed_ten_times_under_twenty_pods_restarts_nothing,
    the_agent_killed_fifty_times_doubles_nothing_and_restarts_nothing,
};
use neighbours::{a_runtime_has_one_kubelet, two_agents_and_a_stranger_leave_each_other_alone};

fn main() -> ExitCode {
    let mut scenarios = scenarios![
        containerd_killed_ten_times_under_twenty_pods_restarts_nothing,
        while_containerd_is_stopped_only_those_who_want_something_wait,
        two_agents_and_a_stranger_leave_each_other_alone,
        a_runtime_has_one_kubelet,
        fifty_idle_pods_cost_nothing_but_the_audit,
    ];
    let alone = scenarios![
        the_agent_killed_fifty_times_doubles_nothing_and_restarts_nothing,
        one_hung_sandbox_holds_up_nobody_else,
    ];
    scenarios.extend(alone.into_iter().map(Scenario::alone));
    scenario::main(&scenario::flavours(), &scenarios)
}
