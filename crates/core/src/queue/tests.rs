//! Keys come, go, fail and come back.

use proptest::prelude::*;

use super::*;

fn at(millis: u64) -> Mono {
    Mono(Duration::from_millis(millis))
}

fn millis(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

fn queue() -> WorkQueue<&'static str> {
    WorkQueue::new(Backoff::new(millis(100), millis(1_000)))
}

/// All keys that may run at one time, in their order.
fn all<K: Ord + Clone>(queue: &mut WorkQueue<K>, now: Mono) -> Vec<K> {
    std::iter::from_fn(|| queue.next(now)).collect()
}

#[test]
fn keys_run_when_they_are_due_in_the_order_in_which_they_were_added_and_urgent_ones_first() {
    let mut queue = queue();
    queue.add(&"late", at(50), Priority::Normal);
    queue.add(&"second", AT_ONCE, Priority::Normal);
    queue.add(&"a third", AT_ONCE, Priority::Normal);
    queue.add(&"first", AT_ONCE, Priority::Urgent);
    assert_eq!(queue.next_due(at(0)), Some(at(0)));
    assert_eq!(all(&mut queue, at(0)), ["first", "second", "a third"]);
    assert_eq!(queue.next_due(at(0)), Some(at(50)));
    assert_eq!(all(&mut queue, at(49)), [""; 0]);
    assert_eq!(all(&mut queue, at(50)), ["late"]);
    assert_eq!(queue.next_due(at(50)), None);
}

#[test]
fn work_that_was_lost_runs_again_and_what_was_removed_meanwhile_does_not() {
    let mut queue = queue();
    queue.add(&"lost", AT_ONCE, Priority::Normal);
    queue.add(&"removed", AT_ONCE, Priority::Normal);
    queue.add(&"later", at(50), Priority::Normal);
    assert_eq!(all(&mut queue, at(0)), ["lost", "removed"]);
    queue.remove(&"removed");
    queue.recover();
    assert_eq!(all(&mut queue, at(0)), ["lost"]);
    queue.done(&"lost", Outcome::Done, at(0));
    assert_eq!(all(&mut queue, at(50)), ["later"]);
    queue.done(&"later", Outcome::Done, at(50));
    assert!(queue.is_empty());
}

#[test]
fn a_key_added_twice_runs_once_at_the_earlier_time_and_keeps_its_place() {
    let mut queue = queue();
    queue.add(&"a", at(100), Priority::Normal);
    queue.add(&"b", at(10), Priority::Normal);
    queue.add(&"a", at(10), Priority::Normal);
    queue.add(&"a", at(500), Priority::Normal);
    assert_eq!(all(&mut queue, at(10)), ["a", "b"]);
    queue.done(&"a", Outcome::Done, at(10));
    queue.done(&"b", Outcome::Done, at(10));
    assert!(queue.is_empty());
    queue.add(&"b", AT_ONCE, Priority::Normal);
    queue.add(&"a", AT_ONCE, Priority::Normal);
    assert_eq!(queue.next(at(10)), Some("b"));
    queue.add(&"c", AT_ONCE, Priority::Normal);
    queue.add(&"c", AT_ONCE, Priority::Urgent);
    assert_eq!(all(&mut queue, at(10)), ["c", "a"], "more urgent while it waits");
}

#[test]
fn a_key_added_while_it_is_in_flight_runs_again_afterwards() {
    let mut queue = queue();
    queue.add(&"a", AT_ONCE, Priority::Normal);
    assert_eq!(queue.next(at(0)), Some("a"));
    queue.add(&"a", AT_ONCE, Priority::Normal);
    assert_eq!((queue.next(at(0)), queue.next_due(at(0))), (None, None));
    assert!(queue.is_in_flight(&"a"));
    queue.done(&"a", Outcome::Done, at(5));
    assert_eq!(queue.next(at(5)), Some("a"));
    queue.done(&"a", Outcome::Done, at(6));
    assert_eq!(queue.next(at(6)), None);
    assert!(queue.is_empty());
}

#[test]
fn a_key_that_fails_runs_again_later_and_later_and_adding_it_does_not_help() {
    let mut queue = queue();
    queue.add(&"a", AT_ONCE, Priority::Normal);
    let mut now = at(0);
    for wait in [100, 200, 400, 800, 1_000, 1_000] {
        assert_eq!(queue.next(now), Some("a"));
        queue.done(&"a", Outcome::Failed, now);
        queue.add(&"a", AT_ONCE, Priority::Urgent);
        assert_eq!(queue.next_due(now), Some(now + millis(wait)));
        now = now + millis(wait - 1);
        assert_eq!(queue.next(now), None);
        now = now + millis(1);
    }
    assert_eq!(queue.next(now), Some("a"));
    queue.done(&"a", Outcome::Done, now);
    queue.add(&"a", AT_ONCE, Priority::Normal);
    assert_eq!(queue.next(now), Some("a"));
    queue.done(&"a", Outcome::Failed, now);
    assert_eq!(queue.next_due(now), Some(now + millis(100)), "a success is a new beginning");
}

#[test]
fn a_reset_lifts_the_back_off_and_the_wait_after_a_success() {
    for outcome in [Outcome::Failed, Outcome::Again(millis(500))] {
        let mut queue = queue();
        queue.add(&"a", AT_ONCE, Priority::Normal);
        assert_eq!(queue.next(at(0)), Some("a"));
        queue.done(&"a", outcome, at(0));
        assert_eq!(queue.next(at(1)), None, "{outcome:?}");
        queue.reset(&"a");
        assert_eq!(queue.next(at(1)), Some("a"), "{outcome:?}");
    }
}

#[test]
fn the_outcome_for_a_removed_key_is_ignored_and_its_successor_waits_for_it() {
    let mut queue = queue();
    queue.add(&"a", AT_ONCE, Priority::Normal);
    assert_eq!(queue.next(at(0)), Some("a"));
    queue.remove(&"a");
    assert!(!queue.is_empty(), "it is still in flight");
    queue.add(&"a", AT_ONCE, Priority::Normal);
    assert_eq!(queue.next(at(0)), None);
    queue.done(&"a", Outcome::Failed, at(0));
    assert_eq!(queue.next(at(0)), Some("a"), "the failure was not its own");
    queue.remove(&"a");
    queue.done(&"a", Outcome::Failed, at(0));
    assert!(queue.is_empty());
    queue.add(&"b", at(9), Priority::Normal);
    queue.remove(&"b");
    assert!(queue.is_empty() && queue.next_due(at(0)).is_none());
}

#[test]
fn a_pause_and_the_rate_limit_concern_all_keys() {
    let mut queue = queue().with_rate_limit(TokenBucket::new(2, millis(20)));
    for key in ["a", "b", "c"] {
        queue.add(&key, AT_ONCE, Priority::Normal);
    }
    assert_eq!(all(&mut queue, at(100)), ["a", "b"]);
    assert_eq!(queue.next_due(at(100)), Some(at(120)));
    queue.pause_until(at(300));
    queue.pause_until(at(200));
    assert_eq!(queue.next_due(at(120)), Some(at(300)));
    assert_eq!(all(&mut queue, at(299)), [""; 0]);
    assert_eq!(all(&mut queue, at(300)), ["c"]);
}

#[derive(Clone, Debug)]
enum QueueStep {
    Add(u8, u64, bool),
    Remove(u8),
    Reset(u8),
    Next,
    Done(u8, u8),
    Wait(u64),
}

fn step() -> impl Strategy<Value = QueueStep> {
    prop_oneof![
        3 => (0u8..4, 0u64..300, any::<bool>()).prop_map(|(key, wait, urgent)| QueueStep::Add(key, wait, urgent)),
        1 => (0u8..4).prop_map(QueueStep::Remove),
        1 => (0u8..4).prop_map(QueueStep::Reset),
        4 => Just(QueueStep::Next),
        3 => (0u8..4, 0u8..3).prop_map(|(key, outcome)| QueueStep::Done(key, outcome)),
        2 => (0u64..400).prop_map(QueueStep::Wait),
    ]
}

proptest! {
    /// Whatever happens: never two in flight for a key, nothing early, nothing lost, and `next_due` tells when `next` has something.
    #[test]
    fn nothing_runs_twice_at_once_or_early_or_is_lost(steps in prop::collection::vec(step(), 1..80)) {
        let mut queue: WorkQueue<u8> = WorkQueue::new(Backoff::new(millis(100), millis(1_000)));
        let mut now = at(0);
        // In flight, and whether removed since.
        let mut in_flight = BTreeMap::<u8, bool>::new();
        let mut due = BTreeMap::<u8, Mono>::new();
        for step in steps {
            match step {
                QueueStep::Add(key, wait, urgent) => {
                    let priority = if urgent { Priority::Urgent } else { Priority::Normal };
                    queue.add(&key, now + millis(wait), priority);
                    let first = due.entry(key).or_insert(now + millis(wait));
                    *first = (*first).min(now + millis(wait));
                }
                QueueStep::Remove(key) => {
                    queue.remove(&key);
                    due.remove(&key);
                    in_flight.entry(key).and_modify(|removed| *removed = true);
                }
                QueueStep::Reset(key) => queue.reset(&key),
                QueueStep::Next => {
                    let expected = queue.next_due(now).is_some_and(|time| time <= now);
                    let next = queue.next(now);
                    prop_assert_eq!(next.is_some(), expected);
                    if let Some(key) = next {
                        prop_assert_eq!(in_flight.insert(key, false), None, "two in flight");
                        let earliest = due.remove(&key);
                        prop_assert!(earliest.is_some_and(|time| time <= now), "{earliest:?}");
                    }
                }
                QueueStep::Done(key, outcome) => {
                    if let Some(removed) = in_flight.remove(&key) {
                        let outcome = match outcome {
                            0 => Outcome::Done,
                            1 => Outcome::Failed,
                            _ => Outcome::Again(millis(50)),
                        };
                        queue.done(&key, outcome, now);
                        if outcome != Outcome::Done && !removed {
                            due.entry(key).or_insert(now);
                        }
                    }
                }
                QueueStep::Wait(wait) => now = now + millis(wait),
            }
        }
        for key in in_flight.into_keys() {
            queue.done(&key, Outcome::Done, now);
        }
        let rest: BTreeSet<u8> = all(&mut queue, now + Duration::from_secs(3_600)).into_iter().collect();
        prop_assert!(due.keys().all(|key| rest.contains(key)), "{due:?} {rest:?}");
        for key in rest {
            queue.done(&key, Outcome::Done, now);
        }
        prop_assert!(queue.is_empty());
    }
}
