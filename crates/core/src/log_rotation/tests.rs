//! When logs are checked, and what becomes of rotated ones.

use std::sync::Arc;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{
    ContainerState, ContainerStateRunning, ContainerStateTerminated, PodStatus,
};
use proptest::prelude::*;

use super::*;
use crate::active_pods::{ActivePods, PodStage, PodUpdate};
use crate::fixture::pod;
use crate::lifecycle::Stage;
use crate::time::Mono;

fn policy() -> LogRotationPolicy {
    LogRotationPolicy { max_size: 1000, ..LogRotationPolicy::default() }
}

fn names(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

fn at(text: &str) -> Timestamp {
    text.parse().unwrap()
}

fn mono(seconds: u64) -> Mono {
    Mono(Duration::from_secs(seconds))
}

fn status(name: &str, restart_count: i32, state: ContainerState) -> ContainerStatus {
    ContainerStatus {
        name: name.to_owned(),
        restart_count,
        container_id: Some(format!("world://{name}-{restart_count}")),
        state: Some(state),
        ..ContainerStatus::default()
    }
}

#[test]
fn logs_are_those_of_running_containers_of_every_kind() {
    let running = || ContainerState {
        running: Some(ContainerStateRunning::default()),
        ..ContainerState::default()
    };
    let terminated = ContainerState {
        terminated: Some(ContainerStateTerminated::default()),
        ..ContainerState::default()
    };
    let status = PodStatus {
        init_container_statuses: Some(vec![status("side", 2, running())]),
        container_statuses: Some(vec![status("main", 0, running()), status("dead", 1, terminated)]),
        ephemeral_container_statuses: Some(vec![status("shell", 0, running())]),
        ..PodStatus::default()
    };
    let (pod, mut pods) = (Arc::new(pod().regular("main").build()), ActivePods::default());
    pods.set_pod(&pod, PodStage::Worker(Stage::Syncing));
    pods.apply(&pod.uid(), PodUpdate { stage: None, status: Some(Arc::new(status)) });
    let logs = running_logs(pods.by_uid(&pod.uid()).unwrap());
    let of_pod = format!("{}_{}_{}", pod.full_name().namespace, pod.full_name().name, pod.uid());
    let found: Vec<String> = logs
        .iter()
        .map(|(id, log)| format!("{id} {}", log.directory().join(log.file_name()).display()))
        .collect();
    let want = [
        format!("side-2 {of_pod}/side/2.log"),
        format!("main-0 {of_pod}/main/0.log"),
        format!("shell-0 {of_pod}/shell/0.log"),
    ];
    assert_eq!(found, want);
}

#[test]
fn a_full_log_is_rotated_and_a_missing_one_is_opened_again() {
    let rows = [
        (LogFileState::Missing, LogAction::Reopen),
        (LogFileState::Size(0), LogAction::Nothing),
        (LogFileState::Size(999), LogAction::Nothing),
        (LogFileState::Size(1000), LogAction::Rotate),
        (LogFileState::Size(u64::MAX), LogAction::Rotate),
        (LogFileState::NotRegular, LogAction::Nothing),
    ];
    for (state, action) in rows {
        assert_eq!(state.action(&policy()), action, "{state:?}");
    }
}

#[test]
fn a_log_is_checked_at_the_interval_and_earlier_when_it_will_be_full_by_then() {
    let first = |size| LogGrowth::first(&policy(), size, mono(100));
    let checked = |from, size, after: u64| first(from).checked(size, mono(100 + after));
    let rows = [
        ("an empty log", first(0), 10_000),
        ("one that may be old", first(500), 10_000),
        ("one that is nearly full", first(900), 1_111),
        ("one that did not grow", checked(0, 0, 10), 10_000),
        ("one that grows slowly", checked(100, 110, 10), 10_000),
        ("half full within two seconds", checked(0, 500, 2), 2_000),
        ("full at once", checked(0, 999, 1), 1_000),
        ("after its rotation", checked(0, 500, 2).rotated(mono(102)), 4_000),
        ("rotated by another program", checked(900, 500, 2), 2_000),
        ("a clock that stands still", checked(0, 500, 0), 1_000),
        ("quiet after a burst", checked(0, 600, 2).checked(600, mono(110)), 2_666),
    ];
    for (case, growth, millis) in rows {
        assert_eq!(growth.wait(&policy()), Duration::from_millis(millis), "{case}");
    }
}

#[test]
fn a_rotated_log_has_the_time_in_its_name_and_the_order_of_names_is_that_of_rotations() {
    let now = at("2026-11-17T19:20:21.9Z");
    let rows: [(&[&str], &str); 5] = [
        (&[], "0.log.20261117-192021"),
        (&["0.log", "1.log.20261117-192021"], "0.log.20261117-192021"),
        (&["0.log.20261117-192021"], "0.log.20261117-192022"),
        (&["0.log.20270101-000000.gz"], "0.log.20270101-000001"),
        (&["0.log.20261231-235959.tmp"], "0.log.20270101-000000"),
    ];
    for (there, want) in rows {
        assert_eq!(plan_rotation("0.log", &names(there), 5, now).rotated, want, "{there:?}");
    }
}

#[test]
fn remainders_and_the_oldest_beyond_the_limit_are_removed() {
    let (a, b, c) = ("0.log.20260101-000000", "0.log.20260102-000000", "0.log.20260103-000000");
    let (a_gz, b_gz) = (format!("{a}.gz"), format!("{b}.gz"));
    let (b_tmp, c_tmp) = (format!("{b}.tmp"), format!("{c}.tmp"));
    let rows: [(usize, &[&str], &[&str]); 9] = [
        (5, &["0.log"], &[]),
        (5, &["0.log", &a_gz, &b_gz, c], &[]),
        (4, &["0.log", &a_gz, &b_gz, c], &[&a_gz]),
        (2, &["0.log", &a_gz, &b_gz, c], &[&a_gz, &b_gz, c]),
        (0, &["0.log", c], &[c]),
        (5, &[a, &a_gz, &b_tmp, b, c], &[a, &b_tmp]),
        (3, &[a, &a_gz, &b_tmp, b, &c_tmp], &[a, &b_tmp, &c_tmp, &a_gz]),
        (2, &["1.log.20260101-000000", "10.log.20260101-000000", "0.log.bak", "0.log.1.gz"], &[]),
        (2, &["0.log.20260101-0000", "0.log.20261301-000000", "0.log.+0260101-000000"], &[]),
    ];
    for (max_files, there, want) in rows {
        let plan = plan_rotation("0.log", &names(there), max_files, at("2026-11-17T00:00:00Z"));
        assert_eq!(plan.remove, want, "{max_files} {there:?}");
    }
}

#[test]
fn all_rotated_logs_but_the_newest_are_compressed() {
    let (a, b, c) = ("0.log.20260101-000000", "0.log.20260102-000000", "0.log.20260103-000000");
    let b_gz = format!("{b}.gz");
    let rows: [(&[&str], &[&str]); 5] = [
        (&["0.log"], &[]),
        (&["0.log", a], &[]),
        (&["0.log", a, b, c], &[a, b]),
        (&["0.log", a, b, &b_gz, c], &[a]),
        (&["0.log", "1.log.20250101-000000", c], &[]),
    ];
    for (there, want) in rows {
        assert_eq!(logs_to_compress("0.log", &names(there)), want, "{there:?}");
    }
}

#[test]
fn readers_find_one_file_for_each_rotation_oldest_first() {
    let (a, b, c) = ("0.log.20260101-000000", "0.log.20260102-000000", "0.log.20260103-000000");
    let (a_gz, b_gz, b_tmp) = (format!("{a}.gz"), format!("{b}.gz"), format!("{b}.tmp"));
    let rows: [(&[&str], &[&str]); 3] = [
        (&["0.log", "1.log.20260101-000000"], &[]),
        (&[c, "0.log", &b_gz, &b_tmp, b, &a_gz], &[&a_gz, b, c]),
        (&[&b_tmp, &a_gz], &[&a_gz]),
    ];
    for (there, want) in rows {
        assert_eq!(rotated_in_order("0.log", &names(there)), want, "{there:?}");
    }
}

proptest! {
    #[test]
    fn after_a_rotation_there_are_never_more_files_than_allowed(
        rotations in prop::collection::vec(0..2_000_000_000_i64, 0..20),
        max_files in 2..7_usize,
    ) {
        let mut there = names(&["0.log"]);
        for second in rotations {
            let before = there.clone();
            let now = Timestamp::from_second(second).unwrap();
            let plan = plan_rotation("0.log", &there, max_files, now);
            there.retain(|name| !plan.remove.contains(name));
            prop_assert!(!before.contains(&plan.rotated));
            there.push(plan.rotated.clone());
            for plain in logs_to_compress("0.log", &there) {
                there.retain(|name| *name != plain);
                there.push(format!("{plain}{COMPRESSED_SUFFIX}"));
            }
            prop_assert!(there.len() <= max_files, "{there:?}");
            prop_assert_eq!(there.iter().max(), Some(&plan.rotated), "it is the newest");
            let plain = there.iter().filter(|name| !name.ends_with(COMPRESSED_SUFFIX)).count();
            prop_assert_eq!(plain, 2, "{:?}", there);
        }
    }
}
