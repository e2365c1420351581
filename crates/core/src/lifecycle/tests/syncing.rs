//! A pod that is kept running.

use super::*;

const KILL: &[&str] = &["publish Terminating", "stop liveness", "kill in 30 Terminal"];

#[test]
fn a_sync_that_ends_leaves_the_right_wait() {
    let back_off = |seconds| SyncOutcome::BackOff { until: second(seconds) };
    let table: [(SyncOutcome, &[&str]); 7] = [
        (SyncOutcome::Ok, &["wake at 3600"]),
        (SyncOutcome::NetworkNotReady, &["wake at 1"]),
        (back_off(20), &["wake at 20"]),
        (back_off(300), &["wake at 60"]),
        (SyncOutcome::Failed("no".to_owned()), &["wake at 10"]),
        (SyncOutcome::Cancelled, &["wake at 10"]),
        (SyncOutcome::Terminal, KILL),
    ];
    for (outcome, want) in table {
        let (mut pod_under_test, _) = PodUnderTest::begin(admitted(web()));
        assert_eq!(pod_under_test.tell(synced(outcome.clone())), want, "{outcome:?}");
    }
}

#[test]
fn every_wait_has_a_reason() {
    let table = [
        (SyncOutcome::Ok, "all is well"),
        (SyncOutcome::NetworkNotReady, "the runtime's network is not ready"),
        (SyncOutcome::BackOff { until: second(20) }, "a container or an image is backed off"),
        (SyncOutcome::Failed("disk full".to_owned()), "the last try failed: disk full"),
        (SyncOutcome::Cancelled, "the last try was interrupted"),
    ];
    for (outcome, want) in table {
        let (mut pod_under_test, _) = PodUnderTest::begin(admitted(web()));
        assert!(pod_under_test.state.waiting().is_none(), "at work");
        pod_under_test.tell(synced(outcome));
        let why = pod_under_test.state.waiting().map(|waiting| waiting.reason().to_string());
        assert_eq!(why.as_deref(), Some(want));
    }
}

#[test]
fn a_pod_at_rest_is_looked_at_when_its_time_comes_or_something_happens() {
    let table: [(&str, Event, &[&str]); 4] = [
        ("its time", Event::Wake, &["sync Due"]),
        ("an update", wanted(web()), &["sync Updated"]),
        ("a hint", Event::Hint(Hint::Runtime), &["sync Hinted(Runtime)"]),
        ("a probe", Event::Hint(Hint::Probe), &["sync Hinted(Probe)"]),
    ];
    for (name, event, want) in table {
        assert_eq!(PodUnderTest::running(web()).at(3600).tell(event), want, "{name}");
    }
}

#[test]
fn what_comes_during_a_sync_is_answered_by_one_more() {
    let (mut pod_under_test, _) = PodUnderTest::begin(admitted(web()));
    pod_under_test.at(3).tell(Event::Hint(Hint::Runtime));
    pod_under_test.at(4).tell(wanted(labelled(web(), "2")));
    pod_under_test.at(5).tell(wanted(labelled(web(), "3")));
    pod_under_test.at(6).tell(Event::Hint(Hint::Relist));
    let (state, effects) = step(pod_under_test.state, synced(SyncOutcome::Ok), &context(second(7)));
    let newest = Arc::new(labelled(web(), "3"));
    let one = Effect::StartSync { pod: newest, why: SyncReason::Updated };
    assert_eq!(effects, [one], "the latest pod, the most urgent reason");
    let (_, effects) = step(state, synced(SyncOutcome::Ok), &context(second(8)));
    assert_eq!(brief(&effects[0]), "wake at 3608", "and no more than one");
}

#[test]
fn after_a_failure_hints_are_gathered_but_updates_are_not_held_up() {
    let failed = || synced(SyncOutcome::Failed("no".to_owned()));
    let (mut pod_under_test, _) = PodUnderTest::begin(admitted(web()));
    pod_under_test.follows([
        ("a hint during the sync", Event::Hint(Hint::Runtime), &[]),
        ("does not start the next at once", failed(), &["wake at 1"]),
        ("nor does another", Event::Hint(Hint::Runtime), &["wake at 1"]),
        ("an update does", wanted(web()), &["sync Updated"]),
        ("an update during the sync", wanted(web()), &[]),
        ("does too", failed(), &["sync Updated"]),
        ("without either", failed(), &["wake at 10"]),
    ]);
    let hinted = pod_under_test.at(2).tell(Event::Hint(Hint::Runtime));
    assert_eq!(hinted, ["sync Hinted(Runtime)"], "calm again");
}

#[test]
fn a_timer_set_for_an_earlier_wait_does_nothing() {
    let mut pod_under_test = PodUnderTest::running(web());
    assert_eq!(pod_under_test.at(3599).tell(Event::Wake), ["wake at 3600"], "not yet");
    pod_under_test.at(3600).tell(Event::Wake);
    assert_eq!(pod_under_test.at(3601).tell(Event::Wake), [""; 0], "a sync is under way");
}

#[test]
fn the_active_deadline_is_not_missed() {
    let ended_with_deadline = |outcome, deadline| {
        let (mut pod_under_test, _) = PodUnderTest::begin(admitted(web()));
        pod_under_test.tell(Event::SyncDone { outcome, look_again: Some(second(deadline)) })
    };
    assert_eq!(ended_with_deadline(SyncOutcome::Ok, 15), ["wake at 15"]);
    assert_eq!(ended_with_deadline(SyncOutcome::Ok, 7200), ["wake at 3600"]);
    assert_eq!(ended_with_deadline(SyncOutcome::Failed(String::new()), 4), ["wake at 4"]);
    assert_eq!(ended_with_deadline(SyncOutcome::Ok, 0), ["wake at 1"], "no spinning");
}

#[test]
fn a_kill_request_cancels_the_sync_and_waits_for_its_end() {
    let gone: &[&str] = &["publish Terminating", "stop liveness", "kill in 30 Removed"];
    let evicted: &[&str] = &[
        "publish Terminating Evicted",
        "stop liveness",
        "kill in 7 Asked(Eviction)",
        "wake at 10",
    ];
    let ended = in_phase(web(), "Failed");
    let table: [(&str, Event, &[&str]); 4] = [
        (
            "deletion",
            wanted(deleted(10)),
            &["publish Terminating", "stop liveness", "kill in 10 Deleted"],
        ),
        ("terminal phase in the API", wanted(ended), KILL),
        ("removal", Event::Removed, gone),
        ("eviction", evict(Some(7)), evicted),
    ];
    for (name, event, want) in table {
        let (mut pod_under_test, _) = PodUnderTest::begin(admitted(web()));
        assert_eq!(pod_under_test.tell(event.clone())[0], "cancel sync", "{name}, during a sync");
        let woken = pod_under_test.tell(Event::Wake);
        assert!(woken.iter().all(|effect| effect == "wake at 10"), "{name}: waits");
        let outcome = SyncOutcome::Failed("whatever".to_owned());
        assert_eq!(pod_under_test.tell(synced(outcome)), want, "{name}, after the sync");
        assert_eq!(PodUnderTest::running(web()).tell(event), want, "{name}, at rest");
    }
}

#[test]
fn a_vanished_cgroup_means_kill_and_build_up_again() {
    let (mut pod_under_test, _) = PodUnderTest::begin(admitted(web()));
    pod_under_test.follows([
        ("found gone", synced(SyncOutcome::CgroupGone), &["kill in 30 CgroupGone"]),
        ("hints wait", Event::Hint(Hint::Runtime), &[]),
        ("killed", killed(), &["sync Reset"]),
        ("all is well", synced(SyncOutcome::Ok), &["wake at 3600"]),
    ]);
}

#[test]
fn a_failed_reset_is_tried_again_by_way_of_a_sync() {
    for outcome in [KillOutcome::StillRunning, KillOutcome::Failed("no".to_owned())] {
        let (mut pod_under_test, _) = PodUnderTest::begin(admitted(web()));
        pod_under_test.follows([
            ("gone", synced(SyncOutcome::CgroupGone), &["kill in 30 CgroupGone"]),
            ("failed", Event::KillDone(outcome), &["wake at 10"]),
        ]);
        assert_eq!(pod_under_test.at(10).tell(Event::Wake), ["sync Due"]);
    }
}

#[test]
fn a_reset_under_way_becomes_the_kill_of_a_pod_that_must_go() {
    let announced = ["publish Terminating", "stop liveness"];
    let table: [(&str, Event, &[&str]); 3] = [
        ("no hurry", wanted(deleted(30)), &announced),
        ("hurry", wanted(deleted(5)), &["publish Terminating", "stop liveness", "shorten to 5"]),
        ("grace does not grow", wanted(deleted(90)), &announced),
    ];
    for (name, event, want) in table {
        let (mut pod_under_test, _) = PodUnderTest::begin(admitted(web()));
        pod_under_test.tell(synced(SyncOutcome::CgroupGone));
        assert_eq!(pod_under_test.tell(event), want, "{name}");
        let after = pod_under_test.tell(killed());
        assert_eq!(
            after,
            ["stop probes", "stopped", "publish Stopped", "release Volumes"],
            "{name}"
        );
    }
}
