//! The desk itself: which pods have something to be told, which wait for another try, which may be deleted.

mod entry;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::time::Duration;

use k8s_openapi::api::core::v1::PodStatus;
use oarsman_core::ids::{FullName, PodUid};
use oarsman_core::rate::Allowance;
use oarsman_core::status::merge::says_the_same;
use oarsman_core::time::Mono;

use entry::{Entry, Weight};

/// So many statuses may be told at once, and then one after each such time: what every node asks of an API server at most, unless
/// somebody allows it more.
const BURST: u32 = 100;
const ONE_EACH: Duration = Duration::from_millis(20);

/// One entry a pod.
#[derive(Debug)]
pub(super) struct Desk {
    entries: BTreeMap<PodUid, Entry>,
    sequence: u64,
    allowance: Allowance,
    /// The cluster asked to be left alone until then.
    quiet_until: Mono,
    /// Whether nothing waits for more to be said.
    hurries: bool,
}

/// Whose job it is: a pod that is forgotten and comes back is another.
#[derive(Clone, Debug)]
pub(super) struct Key {
    pub(super) uid: PodUid,
    born: u64,
}

/// Something for the cluster.
#[derive(Debug)]
pub(super) enum Job {
    Publish { key: Key, name: FullName, status: Box<PodStatus> },
    Delete { key: Key, name: FullName },
}

/// What came of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    Published,
    /// The cluster has no such pod: there is nobody to tell.
    Gone,
    /// It was not taken. How long the cluster asked to be left alone, if it did.
    NotPublished(Option<Duration>),
    NotDeleted(Option<Duration>),
}

impl Job {
    pub(super) fn failed(&self, asked: Option<Duration>) -> Outcome {
        match self {
            Self::Publish { .. } => Outcome::NotPublished(asked),
            Self::Delete { .. } => Outcome::NotDeleted(asked),
        }
    }

    pub(super) fn into_key(self) -> Key {
        match self {
            Self::Publish { key, .. } | Self::Delete { key, .. } => key,
        }
    }
}

impl Default for Desk {
    fn default() -> Self {
        Self {
            entries: BTreeMap::new(),
            sequence: 0,
            allowance: Allowance::new(BURST, ONE_EACH),
            quiet_until: Mono::default(),
            hurries: false,
        }
    }
}

impl Desk {
    pub(super) fn publish(&mut self, uid: &PodUid, name: &FullName, status: PodStatus) {
        let entry = self.entry(uid, name);
        if entry.status.as_ref() != Some(&status) {
            entry.status = Some(status);
            entry.taken = false;
        }
    }

    /// From now on nothing waits for more to be said: who leaves does not hear it.
    pub(super) fn hurry(&mut self) {
        self.hurries = true;
    }

    pub(super) fn heard(&mut self, uid: &PodUid, has: &PodStatus) {
        let Some(entry) = self.entries.get_mut(uid) else { return };
        let same = entry.status.as_ref().is_none_or(|told| says_the_same(told, has));
        // An end that somebody else wrote is not undone; the worker hears of it.
        let told = same || Weight::of(has).ended;
        entry.taken = entry.taken && (told || entry.under_way);
        if !entry.under_way {
            entry.shown = Weight::of(has);
        }
    }

    pub(super) fn allow_delete(&mut self, uid: &PodUid, name: &FullName) {
        self.entry(uid, name).delete = true;
    }

    /// A job under way is let go: its answer finds no entry.
    pub(super) fn forget(&mut self, uid: &PodUid) {
        self.entries.remove(uid);
    }

    /// The next job that is due: what others wait for comes before mere detail. One pod never has two under way, which keeps its
    /// statuses in order.
    pub(super) fn take(&mut self, now: Mono) -> Option<Job> {
        let hurries = self.hurries;
        self.entries.values_mut().for_each(|entry| entry.look(now));
        let due = |entry: &&mut Entry| entry.has_work() && entry.due(hurries) <= now;
        let entries = self.entries.iter_mut().filter(|(_, entry)| due(entry));
        let (uid, entry) = entries.min_by_key(|(_, entry)| (!entry.is_urgent(), entry.place))?;
        if self.quiet_until > now || self.allowance.take(now).is_err() {
            return None;
        }
        entry.go();
        let key = Key { uid: uid.clone(), born: entry.born };
        let name = entry.name.clone();
        match &entry.status {
            Some(status) if !entry.taken => {
                // Until proved otherwise it is taken; a newer status clears this again.
                entry.taken = true;
                Some(Job::Publish { key, name, status: Box::new(status.clone()) })
            }
            _ => Some(Job::Delete { key, name }),
        }
    }

    /// Whether everything has been taken.
    pub(super) fn is_done(&self) -> bool {
        !self.entries.values().any(|entry| entry.under_way || entry.has_work())
    }

    /// When the first entry that waits is due.
    pub(super) fn next_due(&self, now: Mono) -> Option<Mono> {
        let waiting = self.entries.values().filter(|entry| entry.has_work());
        let first = waiting.map(|entry| entry.due(self.hurries)).min()?;
        let allowed = now + self.allowance.wait(now);
        Some(first.max(self.quiet_until).max(allowed))
    }

    pub(super) fn done(&mut self, key: &Key, outcome: Outcome, now: Mono) {
        let entry = self.entries.get_mut(&key.uid).filter(|entry| entry.born == key.born);
        let Some(entry) = entry else { return };
        entry.under_way = false;
        match outcome {
            Outcome::Gone => {
                self.entries.remove(&key.uid);
            }
            Outcome::Published => {
                entry.failures = 0;
                entry.shown = entry.on_its_way;
            }
            Outcome::NotPublished(asked) => {
                entry.taken = false;
                entry.fail(now);
                self.be_quiet(asked, now);
            }
            Outcome::NotDeleted(asked) => {
                entry.fail(now);
                self.be_quiet(asked, now);
            }
        }
    }

    /// A busy cluster is busy for all pods.
    fn be_quiet(&mut self, asked: Option<Duration>, now: Mono) {
        self.quiet_until = self.quiet_until.max(now + asked.unwrap_or_default());
    }

    /// The pod's entry; one that has nothing to tell yet goes to the end of the queue.
    fn entry(&mut self, uid: &PodUid, name: &FullName) -> &mut Entry {
        self.sequence += 1;
        let born = self.sequence;
        let new = || Entry::new(name.clone(), born);
        let entry = self.entries.entry(uid.clone()).or_insert_with(new);
        if !entry.has_work() {
            entry.place = self.sequence;
        }
        entry
    }
}
