//! Events of the node wait in order, are tried again, and do not wait for ever.

use super::*;
use crate::event::EventKind;

fn event(reason: &'static str) -> NodeEvent {
    NodeEvent { kind: EventKind::Normal, reason, message: String::new() }
}

fn at(seconds: u64) -> Mono {
    Mono(Duration::from_secs(seconds))
}

fn next(queue: &mut NodeEventQueue, seconds: u64) -> Option<&'static str> {
    queue.next(at(seconds)).map(|event| event.reason)
}

#[test]
fn events_are_sent_one_after_the_other_in_order() {
    let mut queue = NodeEventQueue::default();
    for reason in ["Starting", "NodeReady"] {
        assert!(!queue.add(event(reason), at(0)));
    }
    assert_eq!((next(&mut queue, 0), next(&mut queue, 0)), (Some("Starting"), None));
    queue.done(NodeEventResult::Done, at(0));
    assert_eq!(next(&mut queue, 0), Some("NodeReady"));
    queue.done(NodeEventResult::Done, at(0));
    assert_eq!((next(&mut queue, 0), queue.next_due(at(0))), (None, None));
}

#[test]
fn an_event_that_fails_is_tried_again_for_two_minutes_and_then_the_next_one() {
    let mut queue = NodeEventQueue::default();
    queue.add(event("Starting"), at(0));
    queue.add(event("NodeReady"), at(119));
    let mut tries = Vec::new();
    let mut now = at(0);
    while let Some(due) = queue.next_due(now).filter(|due| *due < at(300)) {
        now = now.max(due);
        let Some(event) = queue.next(now) else { continue };
        tries.push((now.0.as_secs(), event.reason));
        queue.done(NodeEventResult::Failed, now);
    }
    let of = |reason: &str| -> Vec<u64> {
        tries.iter().filter(|(_, tried)| *tried == reason).map(|(at, _)| *at).collect()
    };
    let (starting, ready) = (of("Starting"), of("NodeReady"));
    assert_eq!(starting[..5], [0, 1, 3, 7, 15]);
    assert!(starting.last().is_some_and(|last| (120..131).contains(last)), "{tries:?}");
    assert!(ready.last().is_some_and(|last| (239..250).contains(last)), "{tries:?}");
}

#[test]
fn what_was_in_flight_when_the_sender_panicked_is_sent_again() {
    let mut queue = NodeEventQueue::default();
    queue.add(event("Starting"), at(0));
    assert_eq!(next(&mut queue, 0), Some("Starting"));
    queue.recover();
    assert_eq!(next(&mut queue, 0), Some("Starting"));
}

#[test]
fn more_than_the_limit_are_dropped() {
    let mut queue = NodeEventQueue::default();
    let dropped = (0..LIMIT + 2).filter(|_| queue.add(event("NodeReady"), at(0))).count();
    assert_eq!(dropped, 2);
}
