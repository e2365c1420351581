//! A work queue by key: due times, priorities, back-off after failures, a rate limit, and one piece of work in flight per key.
//!
//! It is plain data. The runner that carries the work out (`oarsman-agent`, `work_queue`) asks a [`JobQueue`] for its next job, performs
//! it and reports the outcome; what a job is, its owner decides when the key's turn has come.

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use crate::backoff::{Backoff, Failures};
use crate::rate::TokenBucket;
use crate::time::Mono;

/// A due time in the past: as soon as the back-off of the key and the rate limit allow.
pub const AT_ONCE: Mono = Mono(Duration::ZERO);

/// Jobs that a runner performs, several at a time.
pub trait JobQueue {
    /// What is done for a key.
    type Job;
    /// What came of a job, and of which.
    type Outcome;

    /// The next job that is due; it is in flight from now on.
    fn next(&mut self, now: Mono) -> Option<Self::Job>;

    /// A job is not in flight any more.
    fn done(&mut self, outcome: Self::Outcome, now: Mono);

    /// When to ask for the next job, if one waits and is not in flight.
    fn next_due(&self, now: Mono) -> Option<Mono>;

    /// Jobs in flight have no runner any more: they are to be performed again.
    fn recover(&mut self);
}

/// Which of the keys that are due goes first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Priority {
    /// Runs before all keys of normal priority.
    Urgent,
    /// Runs in the order in which keys were added.
    #[default]
    Normal,
}

/// What came of the work on a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It succeeded, and failures before it are forgotten. The key runs again only if it was added meanwhile.
    Done,
    /// It succeeded, and the key runs again, but not within this time.
    Again(Duration),
    /// It failed; the key runs again after its back-off.
    Failed,
}

/// Keys that wait, and those in flight.
#[derive(Clone, Debug)]
pub struct WorkQueue<K> {
    backoff: Backoff,
    bucket: Option<TokenBucket>,
    /// No key runs before this time.
    paused_until: Mono,
    items: BTreeMap<K, Item>,
    /// Keys that wait and are not in flight, by when they may run; and those of them whose time has come, by their turn.
    delayed: BTreeSet<(Mono, u64, K)>,
    ready: BTreeSet<(Priority, u64, K)>,
    sequence: u64,
}

/// What is known of one key.
#[derive(Clone, Debug)]
struct Item {
    waiting: Option<QueuedKey>,
    flight: FlightState,
    failures: Failures,
    /// The end of its back-off.
    not_before: Mono,
}

/// Something is to be done for a key.
#[derive(Clone, Copy, Debug)]
struct QueuedKey {
    due: Mono,
    priority: Priority,
    /// The first to be added is the first to run.
    place: u64,
}

/// Whether there is work in flight for a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FlightState {
    None,
    Current,
    /// The key was removed; the outcome does not matter any more.
    Removed,
}

impl<K: Ord + Clone> WorkQueue<K> {
    /// An empty queue. Keys whose work fails wait that long.
    pub fn new(backoff: Backoff) -> Self {
        Self {
            backoff,
            bucket: None,
            paused_until: Mono::default(),
            items: BTreeMap::new(),
            delayed: BTreeSet::new(),
            ready: BTreeSet::new(),
            sequence: 0,
        }
    }

    /// Limits how often work begins, over all keys.
    #[must_use]
    pub fn with_rate_limit(self, bucket: TokenBucket) -> Self {
        Self { bucket: Some(bucket), ..self }
    }

    /// Adds a key that is to run at that time, or later if it backs off. If it waits already, the earlier time and the higher priority
    /// count, and it keeps its place. If it is in flight, it runs again afterwards.
    pub fn add(&mut self, key: &K, due: Mono, priority: Priority) {
        self.sequence += 1;
        let place = self.sequence;
        self.change(key, |item| {
            let waiting = item.waiting.get_or_insert(QueuedKey { due, priority, place });
            waiting.due = waiting.due.min(due);
            waiting.priority = waiting.priority.min(priority);
        });
    }

    /// Forgets the failures of a key and lifts its back-off, because something changed that may well end them: a key that waits for
    /// nothing else runs at once.
    pub fn reset(&mut self, key: &K) {
        if self.items.contains_key(key) {
            self.change(key, |item| {
                item.failures.reset();
                item.not_before = Mono::default();
            });
        }
    }

    /// There is nothing to do for a key any more. If it is in flight, its outcome will be ignored; and if it is added again before
    /// that, it waits for it, so that there are never two in flight.
    pub fn remove(&mut self, key: &K) {
        let new = self.new_item();
        if self.items.contains_key(key) {
            self.change(key, |item| {
                let flight = if item.flight == FlightState::None {
                    FlightState::None
                } else {
                    FlightState::Removed
                };
                *item = Item { flight, ..new };
            });
        }
    }

    /// Lets nothing begin before that time: the server asked to be left alone.
    pub fn pause_until(&mut self, time: Mono) {
        self.paused_until = self.paused_until.max(time);
    }

    /// The next key whose time has come; it is in flight from now on.
    pub fn next(&mut self, now: Mono) -> Option<K> {
        self.promote_due(now);
        let (_, _, key) = self.ready.first()?.clone();
        if self.paused_until > now || !self.may_begin(now) {
            return None;
        }
        self.change(&key, |item| (item.waiting, item.flight) = (None, FlightState::Current));
        Some(key)
    }

    /// The work on a key has ended.
    pub fn done(&mut self, key: &K, outcome: Outcome, now: Mono) {
        self.sequence += 1;
        let place = self.sequence;
        self.change(key, |item| {
            if std::mem::replace(&mut item.flight, FlightState::None) != FlightState::Current {
                return;
            }
            let wait = match outcome {
                Outcome::Failed => item.failures.next_wait(),
                Outcome::Done => return item.failures.reset(),
                Outcome::Again(wait) => {
                    item.failures.reset();
                    wait
                }
            };
            item.not_before = now + wait;
            let again = QueuedKey { due: AT_ONCE, priority: Priority::Normal, place };
            item.waiting.get_or_insert(again);
        });
    }

    /// Work in flight was lost: its keys run again at once.
    pub fn recover(&mut self) {
        let lost: Vec<K> = self
            .items
            .iter()
            .filter(|(_, item)| item.flight != FlightState::None)
            .map(|(key, _)| key.clone())
            .collect();
        for key in lost {
            let is_wanted =
                self.items.get(&key).is_some_and(|item| item.flight == FlightState::Current);
            self.change(&key, |item| item.flight = FlightState::None);
            if is_wanted {
                self.add(&key, AT_ONCE, Priority::Normal);
            }
        }
    }

    /// When the first key that waits and is not in flight may run.
    pub fn next_due(&self, now: Mono) -> Option<Mono> {
        let ready = self.ready.first().map(|_| now);
        let first = ready.or_else(|| self.delayed.first().map(|(due, ..)| *due))?;
        let allowed = self.bucket.map_or(Duration::ZERO, |bucket| bucket.wait(now));
        Some(first.max(self.paused_until).max(now + allowed))
    }

    /// Which attempt the next work on this key is, from 1: one more than it has failed in a row.
    pub fn attempt(&self, key: &K) -> u32 {
        self.items.get(key).map_or(1, |item| item.failures.count().saturating_add(1))
    }

    /// Whether work on this key is in flight.
    pub fn is_in_flight(&self, key: &K) -> bool {
        self.items.get(key).is_some_and(|item| item.flight != FlightState::None)
    }

    /// Whether nothing waits and nothing is in flight.
    pub fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    fn may_begin(&mut self, now: Mono) -> bool {
        self.bucket.as_mut().is_none_or(|bucket| bucket.take(now).is_ok())
    }

    /// Keys whose time has come take turns by priority and place.
    fn promote_due(&mut self, now: Mono) {
        while self.delayed.first().is_some_and(|(due, ..)| *due <= now) {
            let Some((_, place, key)) = self.delayed.pop_first() else { return };
            let waiting = self.items.get(&key).and_then(|item| item.waiting);
            let priority = waiting.map_or(Priority::Normal, |waiting| waiting.priority);
            self.ready.insert((priority, place, key));
        }
    }

    /// Changes what is known of a key, and puts the key where it belongs then.
    fn change(&mut self, key: &K, change: impl FnOnce(&mut Item)) {
        let mut item = self.items.remove(key).unwrap_or_else(|| self.new_item());
        if let Some(entry) = item.entry() {
            self.ready.remove(&(entry.priority, entry.place, key.clone()));
            self.delayed.remove(&(entry.due, entry.place, key.clone()));
        }
        change(&mut item);
        if let Some(entry) = item.entry() {
            self.delayed.insert((entry.due, entry.place, key.clone()));
        }
        if item.is_busy() {
            self.items.insert(key.clone(), item);
        }
    }

    fn new_item(&self) -> Item {
        Item {
            waiting: None,
            flight: FlightState::None,
            failures: Failures::new(self.backoff),
            not_before: Mono::default(),
        }
    }
}

impl Item {
    /// How it stands among those that wait, if it does: not before the end of its back-off.
    fn entry(&self) -> Option<QueuedKey> {
        let waiting = self.waiting.filter(|_| self.flight == FlightState::None)?;
        Some(QueuedKey { due: waiting.due.max(self.not_before), ..waiting })
    }

    /// Whether the key waits or is in flight; a key that backs off waits.
    fn is_busy(&self) -> bool {
        self.waiting.is_some() || self.flight != FlightState::None
    }
}
