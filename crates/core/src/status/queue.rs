//! The queue of the status manager: which pods' statuses the API server is to get, in which order, and which pods may be deleted there.
//!
//! Only the latest status of a pod counts. An API server that is away gets the latest status once it is back, not every step that led to
//! it. What others wait for, readiness and ends, goes before mere detail.

mod entry;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::time::Duration;

use k8s_openapi::api::core::v1::PodStatus;

use super::merge::is_reconciled;
use crate::backoff::Backoff;
use crate::ids::{FullName, PodUid};
use crate::queue::{JobQueue, Outcome, WorkQueue};
use crate::rate::TokenBucket;
use crate::time::Mono;

use entry::{Entry, UrgentState};

/// So many statuses are sent at once, and then one after each such time: what a node asks of an API server at most, unless it is
/// configured otherwise.
const BURST: u32 = 100;
const ONE_EACH: Duration = Duration::from_millis(20);
/// After a request that failed.
const BACKOFF: Backoff = Backoff::new(Duration::from_millis(500), Duration::from_secs(10));

/// What is known of each pod, and whose turn it is.
#[derive(Debug)]
pub struct StatusQueue {
    pods: BTreeMap<PodUid, Entry>,
    queue: WorkQueue<PodUid>,
    generation: u64,
    /// Whether nothing waits for more to come.
    is_flushing: bool,
}

/// Which pod a job is for: one that is forgotten and comes back is another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobKey {
    /// The UID of the pod whose status is sent, or which is deleted.
    pub uid: PodUid,
    /// Which attempt in a row it is, from 1.
    pub attempt: u32,
    generation: u64,
}

/// A request to the API server.
#[derive(Clone, Debug, PartialEq)]
pub enum StatusJob {
    /// Patch the status of this pod.
    Patch(JobKey, FullName, Box<PodStatus>),
    /// Delete the pod at the API server.
    Delete(JobKey, FullName),
}

impl StatusJob {
    /// Which pod it is for.
    pub fn key(&self) -> &JobKey {
        match self {
            Self::Patch(key, ..) | Self::Delete(key, _) => key,
        }
    }
}

/// What came of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JobResult {
    /// The API server has stored the status or taken the deletion.
    Accepted,
    /// The API server has no such pod, or not any more.
    Gone,
    /// It failed. How long the API server asked to be left alone, if it did.
    Failed(Option<Duration>),
}

impl Default for StatusQueue {
    fn default() -> Self {
        Self {
            pods: BTreeMap::new(),
            queue: WorkQueue::new(BACKOFF).with_rate_limit(TokenBucket::new(BURST, ONE_EACH)),
            generation: 0,
            is_flushing: false,
        }
    }
}

impl StatusQueue {
    /// The pod has this status now.
    pub fn publish(&mut self, uid: &PodUid, name: &FullName, status: PodStatus, now: Mono) {
        let entry = self.entry(uid, name);
        if entry.status.as_ref() != Some(&status) {
            entry.status = Some(status);
            entry.is_sent = false;
        }
        self.schedule(uid, now);
    }

    /// The API server shows this status of the pod. When it is not what it was sent, that is sent again: a request of ours that we had
    /// given up may have taken effect after a later one.
    pub fn reconcile(&mut self, uid: &PodUid, shown: &PodStatus, now: Mono) {
        let Some(entry) = self.pods.get_mut(uid) else { return };
        let is_same = entry.status.as_ref().is_none_or(|sent| is_reconciled(sent, shown));
        // An end that another client wrote is not undone; the pod's worker gets to know of it.
        let is_accepted = is_same || UrgentState::of(shown).ended;
        match entry.in_flight {
            Some(_) => {}
            None => {
                entry.is_sent &= is_accepted;
                entry.shown = UrgentState::of(shown);
            }
        }
        self.schedule(uid, now);
    }

    /// The pod's object may be deleted once its last status was accepted.
    pub fn allow_delete(&mut self, uid: &PodUid, name: &FullName, now: Mono) {
        self.entry(uid, name).delete = true;
        self.schedule(uid, now);
    }

    /// There is nothing to send about this pod any more; the result of a request in flight does not matter.
    pub fn forget(&mut self, uid: &PodUid) {
        self.pods.remove(uid);
        self.queue.remove(uid);
    }

    /// From now on nothing waits for more to come: the agent ends.
    pub fn flush(&mut self, now: Mono) {
        self.is_flushing = true;
        let uids: Vec<PodUid> = self.pods.keys().cloned().collect();
        uids.iter().for_each(|uid| self.schedule(uid, now));
    }

    /// Whether the API server is still to get the latest status of a pod.
    pub fn is_unsent(&self, uid: &PodUid) -> bool {
        self.pods.get(uid).is_some_and(|entry| entry.status.is_some() && !entry.is_sent)
    }

    /// Whether the API server has accepted everything.
    pub fn is_empty(&self) -> bool {
        !self.pods.values().any(|entry| entry.in_flight.is_some() || entry.has_work())
    }

    fn entry(&mut self, uid: &PodUid, name: &FullName) -> &mut Entry {
        self.generation += 1;
        let generation = self.generation;
        self.pods.entry(uid.clone()).or_insert_with(|| Entry::new(name.clone(), generation))
    }

    /// Has a pod wait for its turn if it has something to send and nothing in flight.
    fn schedule(&mut self, uid: &PodUid, now: Mono) {
        let Some(entry) = self.pods.get_mut(uid) else { return };
        if entry.in_flight.is_none() && entry.has_work() {
            let due = entry.due(self.is_flushing, now);
            self.queue.add(uid, due, entry.priority());
        }
    }

    /// The pod's own entry, unless it was forgotten since the job began.
    fn of_job(&mut self, key: &JobKey) -> Option<&mut Entry> {
        self.pods.get_mut(&key.uid).filter(|entry| entry.generation == key.generation)
    }
}

impl JobQueue for StatusQueue {
    type Job = StatusJob;
    type Outcome = (JobKey, JobResult);

    /// One pod never has two in flight, which keeps its statuses in order.
    fn next(&mut self, now: Mono) -> Option<StatusJob> {
        let uid = self.queue.next(now)?;
        let attempt = self.queue.attempt(&uid);
        let entry = self.pods.get_mut(&uid)?;
        let generation = entry.generation;
        let (key, name) = (JobKey { uid, attempt, generation }, entry.name.clone());
        entry.begin();
        Some(match &entry.status {
            Some(status) if !entry.is_sent => {
                // Until proved otherwise it is accepted; a newer status clears this again.
                entry.is_sent = true;
                StatusJob::Patch(key, name, Box::new(status.clone()))
            }
            _ => StatusJob::Delete(key, name),
        })
    }

    fn done(&mut self, (key, result): (JobKey, JobResult), now: Mono) {
        let outcome = match result {
            JobResult::Accepted | JobResult::Gone => Outcome::Done,
            JobResult::Failed(_) => Outcome::Failed,
        };
        self.queue.done(&key.uid, outcome, now);
        if let JobResult::Failed(Some(wait)) = result {
            // A busy API server is busy for all pods.
            self.queue.pause_until(now + wait);
        }
        match (self.of_job(&key), result) {
            (Some(_), JobResult::Gone) => self.forget(&key.uid),
            (Some(entry), JobResult::Accepted) => entry.accepted(),
            (Some(entry), JobResult::Failed(_)) => entry.failed(),
            (None, _) => {}
        }
        self.schedule(&key.uid, now);
    }

    fn next_due(&self, now: Mono) -> Option<Mono> {
        self.queue.next_due(now)
    }

    /// Whether the API server took what was in flight is not known: it is sent again.
    fn recover(&mut self) {
        let in_flight = self.pods.values_mut().filter(|entry| entry.in_flight.is_some());
        in_flight.for_each(Entry::failed);
        self.queue.recover();
    }
}
