//! `oarsman run` as a user runs it: the examples, pods that end, interruptions at any moment.

mod config;
mod examples;
mod interruptions;

use std::process::ExitCode;

use oarsman_e2e::{scenario, scenarios};

use config::an_edited_config_map_shows_in_the_container_that_runs;
use examples::{
    every_example_has_a_scenario, the_config_example_gives_variables_and_files,
    the_hello_example_says_hello_until_interrupted, the_hooks_example_runs_its_hooks,
    the_init_example_makes_its_page_first, the_job_example_ends_with_its_exit_code,
    the_restart_example_is_started_again, the_sidecar_example_ends_with_its_job,
    the_static_pods_example_runs_a_directory,
};
use interruptions::{
    a_second_interruption_leaves_pods_and_says_so, ten_interruptions_at_random_leave_nothing,
};

fn main() -> ExitCode {
    let scenarios = scenarios![
        every_example_has_a_scenario,
        the_hello_example_says_hello_until_interrupted,
        the_init_example_makes_its_page_first,
        the_sidecar_example_ends_with_its_job,
        the_restart_example_is_started_again,
        the_hooks_example_runs_its_hooks,
        the_config_example_gives_variables_and_files,
        an_edited_config_map_shows_in_the_container_that_runs,
        the_job_example_ends_with_its_exit_code,
        the_static_pods_example_runs_a_directory,
        ten_interruptions_at_random_leave_nothing,
        a_second_interruption_leaves_pods_and_says_so,
    ];
    scenario::main(&scenario::flavours(), &scenarios)
}
