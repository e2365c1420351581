//! A pod whose state could not be read yet.

use super::*;

fn unreadable() -> Event {
    Event::ReadDone(Err("the runtime does not answer".to_owned()))
}

fn loading(pod: Pod) -> PodUnderTest {
    let (state, effects) = begin(WorkerStart::Wanted(Arc::new(pod)));
    assert_eq!(effects.iter().map(brief).collect::<Vec<_>>(), ["read"]);
    PodUnderTest { state, now: second(0) }
}

#[test]
fn a_read_that_fails_is_repeated_every_second_with_one_event() {
    let mut pod_under_test = loading(web());
    pod_under_test.follows([
        ("it fails", unreadable(), &["event FailedSync", "wake at 1"]),
        ("too early", Event::Wake, &["wake at 1"]),
        ("a hint too early", Event::Hint(Hint::Runtime), &["wake at 1"]),
    ]);
    let reason = pod_under_test.state.waiting().map(|waiting| waiting.reason().to_string());
    assert_eq!(reason.as_deref(), Some("the last try failed: the runtime does not answer"));
    pod_under_test.at(1).follows([
        ("again", Event::Wake, &["read"]),
        ("it fails again", unreadable(), &["wake at 2"]),
    ]);
    pod_under_test.at(2).follows([
        ("a hint when it is time", Event::Hint(Hint::Runtime), &["read"]),
        ("it succeeds", Event::ReadDone(Ok(false)), &["sync First"]),
    ]);
}

#[test]
fn what_comes_during_the_first_read_is_answered_after_it() {
    let kill: &[&str] = &["publish Terminating", "stop liveness", "kill in 30 Removed"];
    let table: [(&str, Event, &[&str]); 5] = [
        ("an update", wanted(labelled(web(), "2")), &["sync First"]),
        (
            "a deletion",
            wanted(deleted(5)),
            &["publish Terminating", "stop liveness", "kill in 5 Deleted"],
        ),
        ("a removal", Event::Removed, kill),
        (
            "a kill",
            evict(Some(3)),
            &[
                "publish Terminating Evicted",
                "stop liveness",
                "kill in 3 Asked(Eviction)",
                "wake at 10",
            ],
        ),
        ("a hint", Event::Hint(Hint::Runtime), &["sync First"]),
    ];
    for (name, event, want) in table {
        let mut pod_under_test = loading(web());
        assert_eq!(pod_under_test.tell(event), [""; 0], "{name}");
        assert_eq!(pod_under_test.tell(Event::ReadDone(Ok(false))), want, "{name}");
    }
}

#[test]
fn a_pod_that_has_to_go_does_not_wait_for_a_read_that_keeps_failing() {
    let kill: &[&str] = &["publish Terminating", "stop liveness", "kill in 30 Removed"];
    let mut pod_under_test = loading(web());
    pod_under_test.tell(unreadable());
    assert_eq!(pod_under_test.tell(Event::Removed), kill, "between two reads");
    let mut pod_under_test = loading(web());
    assert_eq!(pod_under_test.tell(Event::Removed), [""; 0], "during a read");
    assert_eq!(pod_under_test.tell(unreadable()), kill);
}

#[test]
fn a_pod_that_was_dropped_and_brought_back_during_the_first_read_ends_first() {
    let mut pod_under_test = loading(web());
    pod_under_test.tell(Event::Removed);
    pod_under_test.tell(wanted(labelled(web(), "2")));
    let next = pod_under_test.tell(Event::ReadDone(Ok(true)));
    assert_eq!(next, ["publish Terminating", "stop liveness", "kill in 30 Removed"]);
    assert_eq!(
        pod_under_test.state.pod(),
        Some(&Arc::new(web())),
        "the pod that leaves is the one that was known"
    );
}
