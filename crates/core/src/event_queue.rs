//! The queue of the event recorder: events of pods wait, counted and in order, until the API server has accepted them.
//!
//! The key is the pod: its events are sent one after the other in the order in which they happened, and one that keeps failing holds up
//! no other pod. What is counted, combined and refused is decided by the [`Correlator`] when an event happens.

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;

use crate::backoff::Backoff;
use crate::event::{Correlator, EventRecord, PodEvent};
use crate::ids::{FullName, PodUid};
use crate::pod::PodExt;
use crate::queue::{AT_ONCE, JobQueue, Outcome, Priority, WorkQueue};
use crate::rate::TokenBucket;
use crate::time::{Mono, Now};

/// So many events are sent at once, over all pods, and then one after each such time.
const BURST: u32 = 100;
const ONE_EACH: Duration = Duration::from_millis(20);
/// After a request that failed.
const BACKOFF: Backoff = Backoff::new(Duration::from_millis(500), Duration::from_secs(10));
/// An API server that failed one request is likely to fail the next: nothing is sent within this time, of any pod.
const PAUSE: Duration = Duration::from_millis(500);
/// So many events wait at most; the oldest are dropped first.
const LIMIT: usize = 1024;
/// An event that fails is dropped when it is this old. An API server does not keep events for longer either.
const LONGEST_WAIT: Duration = Duration::from_secs(60 * 60);

/// Something that happened to a pod, as the API server is to have it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CountedEvent {
    /// The pod it happened to.
    pub pod: FullName,
    /// The UID of the pod; pods take turns by it.
    pub uid: PodUid,
    /// The pod's version when it happened.
    pub resource_version: Option<String>,
    /// Reason, type and message.
    pub event: PodEvent,
    /// The name of its object, and how often it happened.
    pub record: EventRecord,
}

/// Which event a job is for: the pod, and its place among all events.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct EventKey {
    uid: PodUid,
    number: u64,
}

/// An event to be sent.
#[derive(Clone, Debug, PartialEq)]
#[expect(missing_docs, reason = "the fields' names say what they are")]
pub struct EventJob {
    pub key: EventKey,
    pub event: Arc<CountedEvent>,
}

/// What came of sending one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventResult {
    /// The API server has stored the event.
    Accepted,
    /// It will never be accepted.
    Refused,
    /// It failed. How long the API server asked to be left alone, if it did.
    Failed(Option<Duration>),
}

/// Events that wait, and what is known of those that happened before.
#[derive(Debug)]
pub struct EventQueue {
    correlator: Correlator,
    queue: WorkQueue<PodUid>,
    waiting: BTreeMap<EventKey, QueuedEvent>,
    /// Those that wait, oldest first.
    order: BTreeMap<u64, PodUid>,
    number: u64,
}

#[derive(Debug)]
struct QueuedEvent {
    event: Arc<CountedEvent>,
    since: Mono,
}

impl Default for EventQueue {
    fn default() -> Self {
        Self {
            correlator: Correlator::default(),
            queue: WorkQueue::new(BACKOFF).with_rate_limit(TokenBucket::new(BURST, ONE_EACH)),
            waiting: BTreeMap::new(),
            order: BTreeMap::new(),
            number: 0,
        }
    }
}

impl EventQueue {
    /// Something happened to a pod. It is not sent if too much has happened to the pod recently. Returns whether an older event was
    /// dropped because too many wait.
    pub fn add(&mut self, pod: &Pod, event: PodEvent, now: Now) -> bool {
        let (name, uid) = (pod.full_name(), pod.uid());
        let Some(record) = self.correlator.correlate((&name.name, &uid), &event, now) else {
            return false;
        };
        let resource_version = pod.metadata.resource_version.clone();
        let event = CountedEvent { pod: name, uid: uid.clone(), resource_version, event, record };
        self.number += 1;
        self.order.insert(self.number, uid.clone());
        let key = EventKey { uid: uid.clone(), number: self.number };
        self.waiting.insert(key, QueuedEvent { event: Arc::new(event), since: now.mono });
        self.queue.add(&uid, AT_ONCE, Priority::Normal);
        let is_full = self.waiting.len() > LIMIT;
        if is_full {
            self.drop_oldest();
        }
        is_full
    }

    /// The oldest event may be in flight; what comes of it does not matter any more then.
    fn drop_oldest(&mut self) {
        let Some((number, uid)) = self.order.pop_first() else { return };
        self.waiting.remove(&EventKey { uid: uid.clone(), number });
        if self.first_of(&uid).is_none() {
            self.queue.remove(&uid);
        }
    }

    fn remove(&mut self, key: &EventKey) {
        self.waiting.remove(key);
        self.order.remove(&key.number);
    }

    /// The pod's event that has waited for longest.
    fn first_of(&self, uid: &PodUid) -> Option<EventJob> {
        let from = EventKey { uid: uid.clone(), number: 0 };
        let (key, waiting) = self.waiting.range(from..).next()?;
        let job = || EventJob { key: key.clone(), event: Arc::clone(&waiting.event) };
        (key.uid == *uid).then(job)
    }

    fn is_too_old(&self, key: &EventKey, now: Mono) -> bool {
        self.waiting.get(key).is_some_and(|waiting| now.since(waiting.since) >= LONGEST_WAIT)
    }
}

impl JobQueue for EventQueue {
    type Job = EventJob;
    type Outcome = (EventKey, EventResult);

    fn next(&mut self, now: Mono) -> Option<EventJob> {
        let uid = self.queue.next(now)?;
        self.first_of(&uid)
    }

    fn done(&mut self, (key, result): (EventKey, EventResult), now: Mono) {
        let outcome = match result {
            EventResult::Accepted | EventResult::Refused => Outcome::Done,
            EventResult::Failed(wait) => {
                self.queue.pause_until(now + wait.unwrap_or(PAUSE));
                Outcome::Failed
            }
        };
        if outcome == Outcome::Done || self.is_too_old(&key, now) {
            self.remove(&key);
        }
        self.queue.done(&key.uid, outcome, now);
        if self.first_of(&key.uid).is_some() {
            self.queue.add(&key.uid, AT_ONCE, Priority::Normal);
        } else {
            self.queue.remove(&key.uid);
        }
    }

    fn next_due(&self, now: Mono) -> Option<Mono> {
        self.queue.next_due(now)
    }

    /// Whether the API server took what was in flight is not known: it is sent again.
    fn recover(&mut self) {
        self.queue.recover();
    }
}
