//! Which scenarios cannot be played on the embedded runtime, and why.

const PROXY: &str = "it holds calls to a runtime up in a proxy before its socket";
const PROCESS: &str = "it kills or stops the process of the runtime";
const WORDS: &str = "it compares what containerd says of failed pulls word for word";
const IMAGE_DISK: &str = "it gives a runtime's images a disk of their own";
const SHARED: &str = "two agents share the runtime";
const CNI: &str = "it breaks the configuration of CNI, which the embedded runtime does not use";
const WITHOUT_AGENT: &str = "it looks at pods while no agent runs";
const OPEN_FILES: &str = "the disk that becomes read-only has files of the runtime that are open";

/// By their names, which are the same in all test binaries.
const OBSTACLES: &[(&str, &str)] = &[
    ("systemd_is_notified_of_the_agents_state", PROXY),
    (
        "images_go_from_a_full_disk_down_to_the_low_threshold_and_running_pods_keep_theirs",
        IMAGE_DISK,
    ),
    ("images_that_were_not_used_for_longest_go_first", IMAGE_DISK),
    ("an_agent_that_gets_sigterm_during_a_crash_ends_at_once_and_its_pods_stay", WITHOUT_AGENT),
    ("on_a_read_only_disk_the_agent_starts_and_pods_can_be_deleted", OPEN_FILES),
    ("containerd_killed_ten_times_under_twenty_pods_restarts_nothing", PROCESS),
    ("while_containerd_is_stopped_only_pods_that_need_it_wait", PROCESS),
    ("logs_of_a_fast_writer_stay_small_and_whole_over_restarts", PROCESS),
    ("logs_of_20_mb_a_second_stay_small_and_whole_for_two_minutes", PROCESS),
    ("one_hung_sandbox_holds_up_no_other_pod", PROXY),
    ("fifty_idle_pods_cost_nothing_but_the_relist", PROXY),
    ("two_agents_and_a_foreign_sandbox_do_not_affect_each_other", SHARED),
    ("a_runtime_has_one_kubelet", SHARED),
    ("a_runtime_that_refuses_or_hangs_is_quoted", PROXY),
    ("a_queued_pull_is_explained", PROXY),
    ("a_runtime_that_is_down_is_named", PROCESS),
    ("a_network_that_is_broken_or_missing_is_named", CNI),
    ("every_row_of_the_table_is_explained", WORDS),
];

/// Why a scenario is not played on the embedded runtime, if so.
pub(super) fn obstacle(scenario: &str) -> Option<&'static str> {
    OBSTACLES.iter().find(|(name, _)| *name == scenario).map(|(_, why)| *why)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use super::*;

    fn sources(directory: &Path) -> String {
        let entries = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
        let read = |path: std::path::PathBuf| {
            if path.is_dir() { sources(&path) } else { fs::read_to_string(path).unwrap() }
        };
        entries.map(read).collect()
    }

    #[test]
    fn every_obstacle_is_that_of_a_scenario_which_exists() {
        let all = sources(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests"));
        for (name, why) in OBSTACLES {
            assert!(all.contains(&format!("async fn {name}(")), "{name}: {why}");
            assert_eq!(obstacle(name), Some(*why));
        }
        assert_eq!(obstacle("fifty_pods_start_at_once"), None);
    }
}
