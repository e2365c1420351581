//! `oarsman explain` on real containerd: every cause is provoked, and the command's sentence is compared.

mod ask;
mod count;
mod hangs;
mod manifests;
mod network;
mod pulls;
mod rows;
mod runtime;
mod stops;

use std::process::ExitCode;

use oarsman_e2e::{scenario, scenarios};

use count::every_cause_is_provoked_or_excused;
use hangs::a_runtime_that_refuses_or_hangs_is_quoted;
use manifests::manifests_that_cannot_be_parsed_are_named;
use network::a_network_that_is_broken_or_missing_is_named;
use pulls::a_queued_pull_is_explained;
use rows::every_row_of_the_table_is_explained;
use runtime::a_runtime_that_is_down_is_named;
use stops::a_pod_that_ends_is_explained_with_its_remaining_time;

fn main() -> ExitCode {
    let scenarios = scenarios![
        every_cause_is_provoked_or_excused,
        every_row_of_the_table_is_explained,
        a_runtime_that_refuses_or_hangs_is_quoted,
        a_queued_pull_is_explained,
        a_network_that_is_broken_or_missing_is_named,
        a_runtime_that_is_down_is_named,
        manifests_that_cannot_be_parsed_are_named,
        a_pod_that_ends_is_explained_with_its_remaining_time,
    ];
    scenario::main(&scenario::flavours(), &scenarios)
}
