//! What is sent, in which order, and what is dropped.

use super::*;
use crate::fixture;

fn at(millis: u64) -> Mono {
    Mono(Duration::from_millis(millis))
}

fn now(millis: u64) -> Now {
    Now { mono: at(millis), ..fixture::now(0) }
}

fn pod(uid: &str) -> Pod {
    let mut pod = Pod::default();
    (pod.metadata.uid, pod.metadata.name) = (Some(uid.to_owned()), Some(format!("web-{uid}")));
    pod.metadata.resource_version = Some("5".to_owned());
    pod
}

fn happened(message: &str) -> PodEvent {
    PodEvent::warning("BackOff", message)
}

/// A queue of these events, each of a pod and with a message.
fn queue(events: &[(&str, &str)]) -> EventQueue {
    let mut queue = EventQueue::default();
    for (uid, message) in events {
        queue.add(&pod(uid), happened(message), now(0));
    }
    queue
}

fn message(job: &EventJob) -> &str {
    &job.event.event.message
}

/// Takes the job that is due, which must have this message.
fn take(queue: &mut EventQueue, want: &str, now: Mono) -> EventKey {
    let job = queue.next(now).unwrap_or_else(|| panic!("{want} is not due"));
    assert_eq!(message(&job), want);
    job.key
}

/// The messages of everything that is sent and accepted at that time.
fn sent(queue: &mut EventQueue, now: Mono) -> Vec<String> {
    let mut messages = Vec::new();
    while let Some(job) = queue.next(now) {
        messages.push(message(&job).to_owned());
        queue.done((job.key, EventResult::Accepted), now);
    }
    messages
}

#[test]
fn pods_take_turns_and_the_events_of_one_pod_keep_their_order() {
    let rows = [
        (vec![], vec![]),
        (vec![("2", "a"), ("1", "b"), ("3", "c")], vec!["a", "b", "c"]),
        (vec![("2", "a"), ("2", "b"), ("1", "c"), ("2", "d")], vec!["a", "c", "b", "d"]),
    ];
    for (events, want) in rows {
        let mut queue = queue(&events);
        assert_eq!(sent(&mut queue, at(0)), want);
        assert_eq!(queue.next_due(at(0)), None);
        assert!(queue.waiting.is_empty() && queue.order.is_empty() && queue.queue.is_empty());
    }
}

#[test]
fn a_pod_has_one_event_in_flight() {
    let mut queue = queue(&[("1", "first"), ("1", "second")]);
    let first = take(&mut queue, "first", at(0));
    assert_eq!((queue.next(at(0)), queue.next_due(at(0))), (None, None));
    queue.done((first, EventResult::Accepted), at(0));
    take(&mut queue, "second", at(0));
}

#[test]
fn an_event_has_what_the_api_server_is_to_know_of_the_pod() {
    let mut queue = queue(&[("1", "first")]);
    let job = queue.next(at(0)).unwrap();
    let CountedEvent { pod, uid, resource_version, record, .. } = &*job.event;
    assert_eq!((pod.to_string(), uid.to_string()), ("web-1_default".into(), "1".into()));
    assert_eq!((resource_version.as_deref(), record.count), (Some("5"), 1));
}

#[test]
fn an_event_that_failed_is_sent_again_later_and_later_and_before_the_pods_other_events() {
    let mut queue = queue(&[("1", "first")]);
    let mut time = at(0);
    for wait in [500, 1_000, 2_000, 4_000, 8_000, 10_000, 10_000] {
        let key = take(&mut queue, "first", time);
        queue.done((key, EventResult::Failed(None)), time);
        queue.add(&pod("1"), happened("second"), Now { mono: time, ..now(0) });
        assert_eq!(queue.next(time), None, "another event does not shorten the wait");
        time = time + Duration::from_millis(wait);
        assert_eq!(queue.next_due(at(0)), Some(time));
    }
    let key = take(&mut queue, "first", time);
    queue.done((key, EventResult::Accepted), time);
    take(&mut queue, "second", time);
}

#[test]
fn what_fails_holds_up_other_pods_for_as_long_as_the_api_server_asks_and_else_for_a_moment() {
    let rows = [
        (EventResult::Accepted, 0),
        (EventResult::Refused, 0),
        (EventResult::Failed(None), 500),
        (EventResult::Failed(Some(Duration::from_secs(60))), 60_000),
    ];
    for (result, wait) in rows {
        let mut queue = queue(&[("1", "first"), ("1", "second"), ("2", "other")]);
        let key = take(&mut queue, "first", at(0));
        queue.done((key, result), at(0));
        assert_eq!(queue.next_due(at(0)), Some(at(wait)), "{result:?}");
        take(&mut queue, "other", at(wait));
    }
}

#[test]
fn an_event_is_dropped_when_it_is_refused_or_has_failed_for_an_hour() {
    let hour = u64::try_from(LONGEST_WAIT.as_millis()).unwrap();
    let rows = [
        (EventResult::Refused, 0, "second"),
        (EventResult::Failed(None), hour - 1, "first"),
        (EventResult::Failed(None), hour, "second"),
    ];
    for (result, failed_at, next) in rows {
        let mut queue = queue(&[("1", "first")]);
        let key = take(&mut queue, "first", at(0));
        queue.add(&pod("1"), happened("second"), now(1));
        queue.done((key, result), at(failed_at));
        take(&mut queue, next, at(failed_at + 500));
    }
}

#[test]
fn repeated_events_are_counted_under_one_name_and_too_many_are_dropped() {
    let mut queue = queue(&[("1", "again"); 40]);
    let mut records = Vec::new();
    while let Some(job) = queue.next(at(0)) {
        records.push(job.event.record.clone());
        queue.done((job.key, EventResult::Accepted), at(0));
    }
    assert!(records.iter().all(|record| record.name == records[0].name));
    let counts: Vec<_> = records.iter().map(|record| record.count).collect();
    assert_eq!(counts, (1..=25).collect::<Vec<_>>());
}

#[test]
fn the_oldest_events_are_dropped_when_too_many_wait_also_one_in_flight() {
    for result in [EventResult::Accepted, EventResult::Failed(None)] {
        let mut queue = queue(&[("0", "in flight")]);
        let in_flight = take(&mut queue, "in flight", at(0));
        let add = |number: &usize| {
            queue.add(&pod(&number.to_string()), happened(&number.to_string()), now(0))
        };
        assert_eq!((1..=LIMIT).filter(add).count(), 1);
        queue.done((in_flight, result), at(0));
        let first = take(&mut queue, "1", at(500));
        queue.done((first, EventResult::Accepted), at(500));
        assert!(!sent(&mut queue, at(60_000)).contains(&"in flight".to_owned()), "{result:?}");
    }
}

#[test]
fn a_pod_whose_events_were_all_dropped_is_not_in_the_queue() {
    let mut queue = queue(&[("0", "dropped")]);
    for number in 1..=LIMIT {
        queue.add(&pod(&number.to_string()), happened("x"), now(0));
    }
    let uids: Vec<_> = std::iter::from_fn(|| queue.next(at(0))).map(|job| job.key.uid).collect();
    assert_eq!(uids.len(), usize::try_from(BURST).unwrap());
    assert!(!uids.contains(&PodUid::from("0")));
}

#[test]
fn no_more_is_sent_than_a_node_may() {
    let mut queue = EventQueue::default();
    for number in 0..150 {
        queue.add(&pod(&number.to_string()), happened("x"), now(0));
    }
    assert_eq!(sent(&mut queue, at(1_000)).len(), 100);
    assert_eq!(queue.next_due(at(1_000)), Some(at(1_020)));
}

#[test]
fn what_was_in_flight_when_its_runner_was_lost_is_sent_again() {
    let mut queue = queue(&[("1", "first"), ("1", "second")]);
    take(&mut queue, "first", at(0));
    queue.recover();
    assert_eq!(sent(&mut queue, at(0)), ["first", "second"]);
}
