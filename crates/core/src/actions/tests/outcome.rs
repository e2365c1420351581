//! What a sync comes to, and what a failed call made after all.

use std::time::Duration;

use super::*;
use crate::backoff::Crash;
use crate::fixture::{at, pod};
use crate::lifecycle::SyncOutcome;
use crate::pod::ContainerKind;
use crate::time::Mono;

fn second(seconds: u64) -> Mono {
    Mono(Duration::from_secs(seconds))
}

fn waiting(until: u64) -> PodActions {
    let crash = Crash { key: "k".to_owned(), container: "app-0".into(), at: at(1) };
    let wait = ContainerInBackOff {
        name: "app".to_owned(),
        kind: ContainerKind::Regular,
        until: second(until),
        delay: Duration::from_secs(10),
        message: String::new(),
        crash,
    };
    PodActions { wait: vec![wait], ..PodActions::default() }
}

fn results(failed: Option<&str>, until: Option<u64>) -> StartResults {
    let mut results = StartResults::default();
    failed.into_iter().for_each(|why| results.fail(why));
    until.into_iter().for_each(|until| results.hold(second(until)));
    results
}

#[test]
fn a_sync_ends_with_the_most_important_of_its_outcomes() {
    let end_reason =
        || PodActions { end_reason: Some(PodEndReason::NothingToRun), ..PodActions::default() };
    let failed = |why: &str| SyncOutcome::Failed(why.to_owned());
    let back_off = |until| SyncOutcome::BackOff { until: second(until) };
    let table = [
        ("nothing held back", PodActions::default(), false, results(None, None), SyncOutcome::Ok),
        ("a crash is waited for", waiting(20), false, results(None, None), back_off(20)),
        (
            "an image is waited for",
            PodActions::default(),
            false,
            results(None, Some(30)),
            back_off(30),
        ),
        ("the first wait counts", waiting(20), false, results(None, Some(30)), back_off(20)),
        ("the other way round", waiting(40), false, results(None, Some(30)), back_off(30)),
        (
            "a failure is told before a wait",
            waiting(20),
            false,
            results(Some("no"), Some(30)),
            failed("no"),
        ),
        ("a terminal phase", waiting(20), true, results(Some("no"), None), SyncOutcome::Terminal),
        (
            "a plan that ends the pod",
            end_reason(),
            false,
            results(None, None),
            SyncOutcome::Terminal,
        ),
    ];
    for (name, actions, is_terminal, results, want) in table {
        assert_eq!(actions.sync_outcome(is_terminal, results), want, "{name}");
    }
}

#[test]
fn the_first_failure_and_the_earliest_wait_of_several_containers_count() {
    let mut results = results(Some("first"), Some(30));
    results.fail("second");
    results.hold(second(20));
    results.hold(second(40));
    assert_eq!(results.failed.as_deref(), Some("first"));
    assert_eq!(results.until, Some(second(20)));
}

#[test]
fn a_pod_is_read_again_only_after_something_was_done_to_it() {
    let start = ContainerToStart {
        name: "app".to_owned(),
        kind: ContainerKind::Regular,
        restart_count: RestartCount::Known(0),
    };
    let busy = PodActions { start: vec![start], ..PodActions::default() };
    let read = StartResults { read: true, ..StartResults::default() };
    let table = [
        ("nothing to do", PodActions::default(), StartResults::default(), false),
        ("something waits", waiting(20), StartResults::default(), false),
        ("a start that was not read after", busy.clone(), StartResults::default(), true),
        ("a start that was read after", busy, read, false),
    ];
    for (name, actions, results, want) in table {
        assert_eq!(actions.changed_since_read(&results), want, "{name}");
    }
}

#[test]
fn what_a_failed_call_made_is_adopted_only_if_it_is_what_the_call_was_to_make() {
    let pod = pod().regular("app").build();
    let made = view(&pod).sandbox().created("app").build();
    let (sandbox, container) = (made.sandboxes[0].id.clone(), made.containers[0].id.clone());
    assert_eq!(adopted_sandbox(&made, 0), Some(sandbox.clone()));
    assert_eq!(adopted_sandbox(&made, 1), None, "another attempt");
    let stopped = view(&pod).dead_sandbox().build();
    assert_eq!(adopted_sandbox(&stopped, stopped.sandboxes[0].attempt), None, "not ready");
    assert_eq!(adopted_container(&made, &sandbox, "app", 0), Some(container));
    assert_eq!(adopted_container(&made, &sandbox, "app", 1), None, "another attempt");
    assert_eq!(adopted_container(&made, &sandbox, "other", 0), None, "another container");
    assert_eq!(adopted_container(&made, &"elsewhere".into(), "app", 0), None, "another sandbox");
    let running = view(&pod).sandbox().running("app").build();
    assert_eq!(adopted_container(&running, &sandbox, "app", 0), None, "started already");
}

#[test]
fn a_reserved_name_is_skipped_and_no_other() {
    let mut reserved = ReservedAttempts::default();
    assert_eq!((reserved.free_sandbox(2), reserved.free_container("app", 0)), (2, 0));
    reserved.reserve_sandbox(2);
    reserved.reserve_container("app", 1);
    reserved.reserve_container("app", 0);
    assert_eq!(reserved.free_sandbox(2), 3);
    assert_eq!(reserved.free_sandbox(7), 7);
    assert_eq!(
        reserved.free_container("app", 0),
        2,
        "an earlier reservation does not undo a later one"
    );
    assert_eq!(reserved.free_container("other", 0), 0);
    reserved.reserve_sandbox(u32::MAX);
    assert_eq!(reserved.free_sandbox(0), u32::MAX, "the last attempt there is");
}
