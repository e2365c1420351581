//! `oarsman cri`, the embedded runtime in a process of its own: how it starts, ends and comes back, and what its clients see of that.

mod events;
mod lives;
mod refusals;
mod streams;

use std::process::ExitCode;
use std::time::Duration;

use oarsman_e2e::{scenario, scenarios};
use oarsman_rig::ContainerdFlavour;

use events::a_client_that_reads_gets_every_event_of_every_container_once;
use lives::{
    it_ends_within_two_seconds_and_finds_what_runs_again,
    killed_and_stopped_it_disturbs_no_container, systemd_is_notified_that_it_is_ready_and_well,
};
use refusals::{
    a_second_process_on_its_directory_or_its_socket_is_refused,
    a_socket_that_was_left_by_a_killed_process_is_replaced,
};
use streams::sessions_are_reached_by_url_once;

/// A wait that is this long has failed.
const MAX_WAIT: Duration = Duration::from_secs(60);

fn main() -> ExitCode {
    let scenarios = scenarios![
        it_ends_within_two_seconds_and_finds_what_runs_again,
        killed_and_stopped_it_disturbs_no_container,
        systemd_is_notified_that_it_is_ready_and_well,
        a_second_process_on_its_directory_or_its_socket_is_refused,
        a_socket_that_was_left_by_a_killed_process_is_replaced,
        a_client_that_reads_gets_every_event_of_every_container_once,
        sessions_are_reached_by_url_once,
    ];
    scenario::main(&[ContainerdFlavour::OarsmanCri], &scenarios)
}
