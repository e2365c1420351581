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
use manifests::manifests_that_nobody_understands_are_named;
use network::a_network_that_is_broken_or_missing_is_named;
use pulls::a_pull_that_waits_for_its_turn_says_so;
use rows::every_row_of_the_table_is_explained;
use runtime::a_runtime_that_is_down_is_named;
use stops::what_ends_says_how_long_it_has;

fn main() -> ExitCode {
    let scenarios = scenarios![
        every_cause_is_provoked_or_excused,
        every_row_of_the_table_is_explained,
        a_runtime_that_refuses_or_hangs_is_quoted,
        a_pull_that_waits_for_its_turn_says_so,
        a_network_that_is_broken_or_missing_is_named,
        a_runtime_that_is_down_is_named,
        manifests_that_nobody_understands_are_named,
        what_ends_says_how_long_it_has,
    ];
    scenario::main(&scenario::flavours(), &scenarios)
}
