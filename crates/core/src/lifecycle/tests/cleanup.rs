//! A pod that has ended: what runs of it after all is killed, and what is left of it is removed once its source drops it.

use super::*;

fn failed() -> Event {
    Event::CleanupDone(Err("the runtime does not answer".to_owned()))
}

/// A completed pod whose source still holds it.
fn finished() -> PodUnderTest {
    let (mut pod_under_test, _) = PodUnderTest::begin(quiet(in_phase(web(), "Succeeded")));
    pod_under_test.tell(released());
    pod_under_test.tell(released());
    assert_eq!(pod_under_test.state.stage(), Stage::Finished);
    pod_under_test
}

#[test]
fn a_clean_up_that_fails_is_tried_again_and_its_wait_has_the_reason() {
    let mut pod_under_test = finished();
    pod_under_test.follows([
        ("dropped", Event::Removed, &["clean up"]),
        ("events come while it is under way", Event::Hint(Hint::Runtime), &[]),
        ("it is dropped only once", Event::Removed, &[]),
        ("it fails", failed(), &["wake at 10"]),
        ("too early", Event::Wake, &["wake at 10"]),
        (
            "a hint may mean that it succeeds now, after a while",
            Event::Hint(Hint::Relist),
            &["wake at 1"],
        ),
    ]);
    let waiting = pod_under_test.state.waiting().unwrap();
    assert_eq!(waiting.reason().to_string(), "the last try failed: the runtime does not answer");
    assert_eq!(waiting.next_try(), Some(second(1)));
    pod_under_test.at(1).follows([
        ("again", Event::Wake, &["clean up"]),
        ("it succeeds", Event::CleanupDone(Ok(())), &["forget"]),
        ("nothing comes after the end", Event::Hint(Hint::Runtime), &[]),
    ]);
}

#[test]
fn what_runs_of_a_finished_pod_is_killed_until_nothing_does() {
    let mut pod_under_test = finished();
    pod_under_test.follows([
        ("a start took effect late", Event::Hint(Hint::Runtime), &["leftovers"]),
        ("another one meanwhile", Event::Hint(Hint::Runtime), &[]),
        ("the first is killed, and looked for the other", killed(), &["leftovers"]),
        ("it does not stop", Event::KillDone(KillOutcome::StillRunning), &["wake at 10"]),
    ]);
    pod_under_test.at(10).follows([
        ("again", Event::Wake, &["leftovers"]),
        (
            "the runtime fails",
            Event::KillDone(KillOutcome::Failed("no".to_owned())),
            &["wake at 20"],
        ),
    ]);
    pod_under_test.at(20).follows([
        ("once more", Event::Wake, &["leftovers"]),
        ("nothing runs", killed(), &[]),
        ("nobody is asked without a hint", Event::Wake, &[]),
    ]);
}

#[test]
fn the_clean_up_waits_for_a_kill_of_leftovers_and_follows_it_however_that_ended() {
    for outcome in
        [KillOutcome::Ok, KillOutcome::StillRunning, KillOutcome::Failed("no".to_owned())]
    {
        let mut pod_under_test = finished();
        pod_under_test.follows([
            ("a start took effect late", Event::Hint(Hint::Runtime), &["leftovers"]),
            ("dropped meanwhile", Event::Removed, &[]),
            ("killed or not", Event::KillDone(outcome), &["clean up"]),
        ]);
    }
}

#[test]
fn a_pod_that_is_dropped_while_a_failed_kill_of_leftovers_waits_is_cleaned_up_at_once() {
    let mut pod_under_test = finished();
    pod_under_test.follows([
        ("a start took effect late", Event::Hint(Hint::Runtime), &["leftovers"]),
        ("it does not stop", Event::KillDone(KillOutcome::StillRunning), &["wake at 10"]),
        ("dropped", Event::Removed, &["clean up"]),
    ]);
}
