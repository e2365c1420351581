//! A pod that is being brought down.

use super::*;

#[test]
fn a_shorter_grace_takes_effect_at_once_and_a_longer_one_never() {
    let mut pod_under_test = PodUnderTest::terminating(deleted(20));
    pod_under_test.follows([
        ("same", wanted(deleted(20)), &[]),
        ("longer", wanted(deleted(40)), &[]),
        ("shorter", wanted(deleted(10)), &["shorten to 10"]),
        ("back to what it was", wanted(deleted(20)), &[]),
        ("no word", wanted(web()), &[]),
        (
            "an eviction in a hurry",
            evict(Some(3)),
            &["publish Terminating Evicted", "shorten to 3", "wake at 10"],
        ),
        ("grace 0 is one second", wanted(deleted(0)), &["shorten to 1", "wake at 10"]),
        (
            "less than nothing is one second",
            evict(Some(-5)),
            &["publish Terminating Evicted", "wake at 10"],
        ),
    ]);
}

#[test]
fn a_shorter_grace_that_comes_before_the_sync_has_ended_is_kept_for_the_kill() {
    let (mut pod_under_test, _) = PodUnderTest::begin(admitted(web()));
    pod_under_test.follows([
        ("deleted", wanted(deleted(20)), &["cancel sync"]),
        ("hurry", wanted(deleted(4)), &[]),
        ("a verdict", evict(Some(6)), &["wake at 10"]),
        (
            "sync ends",
            synced(SyncOutcome::Cancelled),
            &["publish Terminating Evicted", "stop liveness", "kill in 4 Deleted", "wake at 10"],
        ),
    ]);
}

#[test]
fn a_kill_that_does_not_succeed_is_tried_again() {
    let again: &[&str] = &["publish Terminating", "stop liveness", "kill in 20 Deleted"];
    let table = [
        (KillOutcome::StillRunning, "something still runs after it was stopped"),
        (KillOutcome::Failed("hung".to_owned()), "the last try failed: hung"),
    ];
    for (outcome, why) in table {
        let mut pod_under_test = PodUnderTest::terminating(deleted(20));
        assert_eq!(pod_under_test.tell(Event::KillDone(outcome)), ["wake at 10"], "{why}");
        let reason = pod_under_test.state.waiting().map(|waiting| waiting.reason().to_string());
        assert_eq!(reason.as_deref(), Some(why));
        assert_eq!(pod_under_test.tell(killed()), ["wake at 10"], "{why}: nobody asked");
        assert_eq!(pod_under_test.at(9).tell(Event::Wake), ["wake at 10"], "{why}: too early");
        assert_eq!(pod_under_test.at(10).tell(Event::Wake), again, "{why}");
    }
}

#[test]
fn between_two_kills_a_shorter_grace_or_a_hint_brings_the_next() {
    let failed = || Event::KillDone(KillOutcome::StillRunning);
    let mut pod_under_test = PodUnderTest::terminating(deleted(20));
    pod_under_test.follows([
        ("failed", failed(), &["wake at 10"]),
        (
            "hurry",
            wanted(deleted(2)),
            &["publish Terminating", "stop liveness", "kill in 2 Deleted"],
        ),
        ("failed", failed(), &["wake at 10"]),
        ("hints are gathered", Event::Hint(Hint::Runtime), &["wake at 1"]),
    ]);
    let hinted = pod_under_test.at(1).tell(Event::Hint(Hint::Runtime));
    assert_eq!(hinted.last().map(String::as_str), Some("kill in 2 Deleted"), "calm again");
}

#[test]
fn while_containers_go_down_the_status_follows() {
    let mut pod_under_test = PodUnderTest::terminating(deleted(20));
    assert_eq!(pod_under_test.tell(Event::Hint(Hint::Runtime)), ["publish Terminating"]);
}

#[test]
fn the_latest_failure_counts_and_stays() {
    let shutdown = Event::Kill(KillRequest {
        by: KillRequester::Shutdown,
        grace: None,
        failure: Some(PodFailure::disrupted("Terminated", "node shuts down")),
    });
    let plain =
        Event::Kill(KillRequest { by: KillRequester::Preemption, grace: None, failure: None });
    let mut pod_under_test = PodUnderTest::running(web());
    pod_under_test.follows([
        (
            "evicted",
            evict(None),
            &[
                "publish Terminating Evicted",
                "stop liveness",
                "kill in 30 Asked(Eviction)",
                "wake at 45",
            ],
        ),
        ("shutdown", shutdown, &["publish Terminating Terminated", "wake at 45"]),
        ("nothing to say", plain, &["wake at 45"]),
        (
            "stopped",
            killed(),
            &["stop probes", "stopped", "publish Stopped Terminated", "release Volumes"],
        ),
        ("volumes gone", released(), &["release Cgroup"]),
        ("cgroup gone", released(), &["publish Released Terminated", "finished"]),
    ]);
}

#[test]
fn a_pod_that_terminates_never_syncs_again() {
    let mut pod_under_test = PodUnderTest::terminating(deleted(20));
    pod_under_test.follows([
        ("undeleted", wanted(web()), &[]),
        ("a stray answer", synced(SyncOutcome::Ok), &[]),
        ("a stray release", released(), &[]),
        ("a stray timer", Event::Wake, &[]),
    ]);
    assert_eq!(pod_under_test.state.stage(), Stage::Terminating);
}

fn asked(by: KillRequester, grace: Option<i64>) -> Event {
    Event::Kill(KillRequest { by, grace, failure: None })
}

#[test]
fn an_overdue_kill_is_one_event() {
    let late = "event ExceededGracePeriod";
    let table = [
        ("eviction", asked(KillRequester::Eviction, Some(1)), Some(10)),
        ("preemption", asked(KillRequester::Preemption, Some(20)), Some(30)),
        ("shutdown", asked(KillRequester::Shutdown, None), Some(45)),
        ("deletion", wanted(deleted(1)), None),
        ("removal", Event::Removed, None),
        ("an end of its own", wanted(in_phase(web(), "Failed")), None),
    ];
    for (name, event, due) in table {
        let mut pod_under_test = PodUnderTest::running(web());
        pod_under_test.tell(event);
        for now in 1..100 {
            let said = pod_under_test.at(now).tell(Event::Wake).iter().any(|effect| effect == late);
            assert_eq!(said, due == Some(now), "{name} at {now}");
        }
    }
}

#[test]
fn a_kill_that_ends_in_time_is_no_event_and_one_that_fails_is_overdue_all_the_same() {
    let mut pod_under_test = PodUnderTest::running(web());
    pod_under_test.tell(asked(KillRequester::Eviction, Some(20)));
    assert_eq!(pod_under_test.at(29).tell(killed())[0], "stop probes");
    assert_eq!(pod_under_test.at(30).tell(Event::Wake), [""; 0], "it was in time");

    let mut pod_under_test = PodUnderTest::running(web());
    pod_under_test.tell(asked(KillRequester::Eviction, Some(20)));
    let failed = || Event::KillDone(KillOutcome::StillRunning);
    assert_eq!(pod_under_test.at(25).tell(failed()), ["wake at 30"], "before the next try");
    assert_eq!(
        pod_under_test.at(30).tell(Event::Wake),
        ["event ExceededGracePeriod", "wake at 35"]
    );
    let again = ["publish Terminating", "stop liveness", "kill in 20 Asked(Eviction)"];
    assert_eq!(pod_under_test.at(35).tell(Event::Wake), again);
}

#[test]
fn a_kill_may_be_late_while_the_sync_before_it_has_not_ended_yet() {
    let (mut pod_under_test, _) = PodUnderTest::begin(admitted(web()));
    assert_eq!(
        pod_under_test.tell(asked(KillRequester::Eviction, Some(1))),
        ["cancel sync", "wake at 10"]
    );
    assert_eq!(pod_under_test.at(10).tell(Event::Wake), ["event ExceededGracePeriod"]);
    let kill = ["publish Terminating", "stop liveness", "kill in 1 Asked(Eviction)"];
    assert_eq!(pod_under_test.at(11).tell(synced(SyncOutcome::Cancelled)), kill);
    let more = pod_under_test.at(12).tell(asked(KillRequester::Shutdown, None));
    assert_eq!(more, ["wake at 22"], "the next one to ask has patience of its own");
}
