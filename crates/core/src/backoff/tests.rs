//! The waits of the facts, and what a jumping clock may not do to them.

use std::time::Duration;

use jiff::SignedDuration;
use k8s_openapi::api::core::v1::{Container, ResourceRequirements};
use proptest::prelude::*;

use super::*;
use crate::fixture::{at, now, pod};
use crate::time::{Mono, Now};

fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

/// The n-th container of one name, ended so many seconds into the test.
fn crash(n: u32, finished: i64) -> Crash {
    Crash { key: "key".to_owned(), container: format!("app-{n}").into(), at: at(finished) }
}

fn wait(remaining: u64, delay: u64) -> BackoffDecision {
    BackoffDecision::Wait { remaining: seconds(remaining), delay: seconds(delay) }
}

/// The delays a container meets that ends as soon as it is started.
fn delays(max: u64, crashes: u32) -> Vec<u64> {
    let mut table = CrashBackoff::new(seconds(max));
    let mut clock = 0;
    (0..crashes)
        .map(|n| {
            let crash = crash(n, clock.into());
            let delay = match table.check(&crash, now(clock)) {
                BackoffDecision::Ready => 0,
                BackoffDecision::Wait { remaining, delay } => {
                    assert_eq!(remaining, delay, "it has only just ended");
                    delay.as_secs()
                }
            };
            clock += u32::try_from(delay).unwrap();
            assert_eq!(table.check(&crash, now(clock)), BackoffDecision::Ready);
            table.advance(&crash, now(clock));
            delay
        })
        .collect()
}

#[test]
fn restarts_wait_0_10_20_40_80_160_300_seconds() {
    assert_eq!(delays(300, 9), [0, 10, 20, 40, 80, 160, 300, 300, 300]);
}

#[test]
fn a_lower_maximum_caps_the_waits_and_below_ten_seconds_it_is_the_first_too() {
    let rows = [
        (60, vec![0, 10, 20, 40, 60, 60]),
        (10, vec![0, 10, 10]),
        (4, vec![0, 4, 4, 4]),
        (1, vec![0, 1, 1]),
        (0, vec![0, 1, 1]),
        (900, vec![0, 10, 20, 40, 80, 160, 300, 300]),
    ];
    for (max, expected) in rows {
        assert_eq!(delays(max, u32::try_from(expected.len()).unwrap()), expected, "max {max}");
    }
}

#[test]
fn the_wait_is_measured_from_when_the_container_ended() {
    let mut table = CrashBackoff::default();
    table.advance(&crash(0, 0), now(0));
    let rows = [(100, wait(10, 10)), (103, wait(7, 10)), (110, BackoffDecision::Ready)];
    for (clock, expected) in rows {
        assert_eq!(table.check(&crash(1, 100), now(clock)), expected, "at {clock}");
    }
}

#[test]
fn ten_good_minutes_make_the_next_crash_the_first_also_with_a_lower_maximum() {
    for max in [300, 5] {
        let mut table = CrashBackoff::new(seconds(max));
        table.advance(&crash(0, 0), now(0));
        table.advance(&crash(1, 10), now(20));
        let late = crash(2, 20 + 601);
        assert_ne!(table.check(&crash(2, 20 + 600), now(620)), BackoffDecision::Ready, "max {max}");
        assert_eq!(table.check(&late, now(621)), BackoffDecision::Ready, "max {max}");
        table.advance(&late, now(621));
        let first = max.min(10);
        assert_eq!(table.check(&crash(3, 622), now(622)), wait(first, first), "max {max}");
    }
}

#[test]
fn a_start_that_is_tried_again_does_not_wait_and_does_not_count_twice() {
    let mut table = CrashBackoff::default();
    for clock in [0, 1, 30] {
        assert_eq!(table.check(&crash(0, 0), now(clock)), BackoffDecision::Ready);
        table.advance(&crash(0, 0), now(clock));
    }
    assert_eq!(table.check(&crash(1, 31), now(31)), wait(10, 10));
}

#[test]
fn a_wait_is_an_event_only_once() {
    let mut table = CrashBackoff::default();
    table.advance(&crash(0, 0), now(0));
    assert!(!table.is_held(&crash(1, 1)));
    table.hold(&crash(1, 1), now(1));
    assert!(table.is_held(&crash(1, 1)));
    assert!(!table.is_held(&crash(2, 1)), "another crash is another wait");
}

#[test]
fn other_containers_do_not_wait() {
    let mut table = CrashBackoff::default();
    table.advance(&crash(0, 0), now(0));
    let other = Crash { key: "other".to_owned(), ..crash(1, 0) };
    assert_eq!(table.check(&other, now(0)), BackoffDecision::Ready);
    table.hold(&other, now(0));
    assert_eq!(table.len(), 1, "a container that never waited is not remembered");
}

#[test]
fn quiet_containers_are_forgotten_and_waiting_ones_are_not() {
    let mut table = CrashBackoff::default();
    table.advance(&crash(0, 0), now(0));
    table.collect(Mono(seconds(600)));
    assert_eq!(table.len(), 1);
    table.hold(&crash(1, 590), now(590));
    table.collect(Mono(seconds(1190)));
    assert_eq!(table.len(), 1, "it waits since 590");
    table.collect(Mono(seconds(1191)));
    assert!(table.is_empty());
}

#[test]
fn a_container_that_ended_before_it_was_started_waits_by_our_own_clock() {
    let mut table = CrashBackoff::default();
    table.advance(&crash(0, 0), now(100));
    let broken = crash(1, -1_000_000);
    assert_eq!(table.check(&broken, now(101)), wait(10, 10));
    table.hold(&broken, now(101));
    assert_eq!(table.check(&broken, now(105)), wait(6, 10));
    assert_eq!(table.check(&broken, now(111)), BackoffDecision::Ready);
}

#[test]
fn ten_good_minutes_count_also_if_the_wall_clock_went_back_meanwhile() {
    let mut table = CrashBackoff::default();
    table.advance(&crash(0, 5000), jumped(0, 5000));
    let late = crash(1, 700);
    assert_eq!(table.check(&late, now(600)), wait(10, 10));
    assert_eq!(table.check(&late, now(601)), BackoffDecision::Ready);
}

#[test]
fn an_edit_of_image_or_resources_is_a_new_chance() {
    let pod = pod().build();
    let key = |image: &str, resources: Option<ResourceRequirements>| {
        let image = Some(image.to_owned());
        let name = "app".to_owned();
        container_key(&pod, &Container { name, image, resources, ..Container::default() })
    };
    assert_eq!(key("a:1", None), key("a:1", None));
    assert_ne!(key("a:1", None), key("a:2", None));
    assert_ne!(key("a:1", None), key("a:1", Some(ResourceRequirements::default())));
}

#[test]
fn every_container_of_every_pod_waits_for_itself() {
    let key = |name: &str, namespace: &str, uid: &str, container: &str| {
        let mut pod = pod().build();
        pod.metadata.name = Some(name.to_owned());
        pod.metadata.namespace = Some(namespace.to_owned());
        pod.metadata.uid = Some(uid.to_owned());
        let image = Some("a:1".to_owned());
        let name = container.to_owned();
        container_key(&pod, &Container { name, image, ..Container::default() })
    };
    let first = key("web", "default", "uid", "app");
    for other in [
        key("db", "default", "uid", "app"),
        key("web", "other", "uid", "app"),
        key("web", "default", "another", "app"),
        key("web", "default", "uid", "side"),
    ] {
        assert_ne!(first, other);
    }
}

#[test]
fn a_failed_pull_waits_10_20_40_80_160_300_seconds_and_starts_over_after_ten_minutes() {
    let mut table = RetryBackoff::default();
    let mut clock = Mono::default();
    assert_eq!(table.check("uid_image", clock), BackoffDecision::Ready);
    for delay in [10, 20, 40, 80, 160, 300, 300] {
        table.failed("uid_image", clock);
        assert_eq!(table.check("uid_image", clock), wait(delay, delay));
        assert_eq!(table.check("uid_image", clock + seconds(3)), wait(delay - 3, delay));
        clock = clock + seconds(delay);
        assert_eq!(table.check("uid_image", clock), BackoffDecision::Ready);
    }
    let long_after = clock + seconds(301);
    table.failed("uid_image", long_after);
    assert_eq!(table.check("uid_image", long_after), wait(10, 10));
    table.collect(long_after + seconds(600));
    assert_eq!(table.len(), 1);
    table.collect(long_after + seconds(601));
    assert!(table.is_empty());
}

/// A moment at which the wall clock is off by `jump` seconds.
fn jumped(clock: u32, jump: i64) -> Now {
    let now = now(clock);
    Now { wall: now.wall + SignedDuration::from_secs(jump), ..now }
}

proptest! {
    #[test]
    fn no_jump_of_the_wall_clock_makes_a_wait_longer_than_the_maximum(
        max in 0u64..400,
        steps in prop::collection::vec((0u32..400, -100_000i64..100_000, -100_000i64..100_000), 1..20),
    ) {
        let mut table = CrashBackoff::new(seconds(max));
        let allowed = seconds(max.clamp(1, 300));
        let mut clock = 0u32;
        for (n, (ran, jump_before, jump_after)) in (0u32..).zip(steps) {
            clock += ran;
            let crash = Crash { at: jumped(clock, jump_before).wall, ..crash(n, 0) };
            let mut seen = jumped(clock, jump_after);
            if let BackoffDecision::Wait { remaining, delay } = table.check(&crash, seen) {
                prop_assert!(remaining <= delay && delay <= allowed, "{remaining:?} of {delay:?}");
                table.hold(&crash, seen);
                clock += u32::try_from(delay.as_secs()).unwrap();
                seen = jumped(clock, -jump_before);
                prop_assert_eq!(table.check(&crash, seen), BackoffDecision::Ready);
            }
            table.advance(&crash, seen);
        }
    }
}

#[test]
fn waits_double_from_the_first_to_the_longest_and_begin_anew_after_a_success() {
    let mut failures = Failures::new(Backoff::new(seconds(1), seconds(7)));
    assert_eq!(failures.wait(), Duration::ZERO, "nothing has failed yet");
    let waits: Vec<_> = (0..5).map(|_| failures.next_wait().as_secs()).collect();
    assert_eq!(waits, [1, 2, 4, 7, 7]);
    assert_eq!(failures.wait(), seconds(7));
    failures.reset();
    assert_eq!(failures.next_wait(), seconds(1));
    let backoff = Backoff::new(seconds(1), Duration::MAX);
    assert!(backoff.after(u32::MAX) >= backoff.after(31), "it does not overflow");
}
