//! Which scenarios cannot be played on the embedded runtime, inside of an agent or as `oarsman cri`, and why.

use oarsman_rig::ContainerdFlavour;

/// On which of the two a scenario is not played.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Obstacle {
    /// On the runtime inside of the agent: `oarsman cri` plays it.
    Inside(&'static str),
    /// On both.
    Always(&'static str),
}

const PROXY: Obstacle =
    Obstacle::Inside("it holds calls to a runtime up in a proxy before its socket");
const PROCESS: Obstacle = Obstacle::Inside("it kills or stops the process of the runtime");
const IMAGE_DISK: Obstacle = Obstacle::Inside("it gives a runtime's images a disk of their own");
const SHARED: Obstacle = Obstacle::Inside("two agents share the runtime");
const GO: Obstacle =
    Obstacle::Inside("the Go kubelet takes part, which needs a runtime with a socket");
const WITHOUT_AGENT: Obstacle = Obstacle::Inside("it looks at pods while no agent runs");
const OPEN_FILES: Obstacle =
    Obstacle::Inside("the disk that becomes read-only has files of the runtime that are open");
const WORDS: Obstacle =
    Obstacle::Always("it compares what containerd says of failed pulls word for word");
const CNI: Obstacle =
    Obstacle::Always("it breaks the configuration of CNI, which the embedded runtime does not use");

/// By their names, which are the same in all test binaries.
const OBSTACLES: &[(&str, Obstacle)] = &[
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
    ("our_agent_takes_over_from_the_go_kubelet_and_gives_back", GO),
    ("both_agents_authorize_every_request_alike_but_for_what_is_meant", GO),
    ("an_image_of_another_tenant_is_refused_by_both_agents_unless_it_is_exempt", GO),
    ("an_image_of_another_tenant_is_refused_by_both_agents_unless_none_is_verified", GO),
];

/// Why a scenario is not played on a rig of that flavour, if so.
pub(super) fn obstacle(flavour: ContainerdFlavour, scenario: &str) -> Option<String> {
    let (_, obstacle) = OBSTACLES.iter().find(|(name, _)| *name == scenario)?;
    match (flavour, obstacle) {
        (ContainerdFlavour::Absent, Obstacle::Inside(why)) => {
            Some(format!("OARSMAN_ON_CRI=1 plays it: {why}"))
        }
        (ContainerdFlavour::Absent | ContainerdFlavour::OarsmanCri, Obstacle::Always(why)) => {
            Some((*why).to_owned())
        }
        _ => None,
    }
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
        use ContainerdFlavour::{Absent, Built, OarsmanCri};
        let all = sources(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests"));
        for (name, why) in OBSTACLES {
            assert!(all.contains(&format!("async fn {name}(")), "{name}: {why:?}");
            assert_eq!(obstacle(Built, name), None);
            assert!(obstacle(Absent, name).is_some());
            let is_always = matches!(why, Obstacle::Always(_));
            assert_eq!(obstacle(OarsmanCri, name).is_some(), is_always, "{name}");
        }
        assert_eq!(obstacle(Absent, "fifty_pods_start_at_once"), None);
    }
}
