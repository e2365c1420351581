//! The desk itself: which pods have something to be told, which wait for another try, which may be deleted.

use std::collections::BTreeMap;
use std::time::Duration;

use k8s_openapi::api::core::v1::PodStatus;
use oarsman_core::ids::{FullName, PodUid};
use oarsman_core::time::Mono;

/// After a failed try; doubled each time.
const FIRST_WAIT: Duration = Duration::from_millis(500);
const LONGEST_WAIT: Duration = Duration::from_secs(10);

/// One entry a pod.
#[derive(Debug, Default)]
pub(super) struct Desk {
    entries: BTreeMap<PodUid, Entry>,
    sequence: u64,
}

/// A pod with something to be told, or that had.
#[derive(Debug)]
struct Entry {
    name: FullName,
    /// Tells it from an earlier entry of the same pod.
    born: u64,
    /// The latest status, and whether the cluster has taken it.
    status: Option<PodStatus>,
    taken: bool,
    delete: bool,
    /// Its place in the queue: the first to have something to tell goes first.
    place: u64,
    under_way: bool,
    failures: u32,
    not_before: Mono,
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
    NotPublished,
    NotDeleted,
}

impl Job {
    pub(super) fn failed(&self) -> Outcome {
        match self {
            Self::Publish { .. } => Outcome::NotPublished,
            Self::Delete { .. } => Outcome::NotDeleted,
        }
    }

    pub(super) fn into_key(self) -> Key {
        match self {
            Self::Publish { key, .. } | Self::Delete { key, .. } => key,
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

    pub(super) fn heard(&mut self, uid: &PodUid, has: &PodStatus) {
        let Some(entry) = self.entries.get_mut(uid) else { return };
        let same = entry.status.as_ref().is_none_or(|told| says_the_same(told, has));
        // An end that somebody else wrote is not undone; the worker hears of it.
        let told = same || matches!(has.phase.as_deref(), Some("Succeeded" | "Failed"));
        entry.taken = entry.taken && (told || entry.under_way);
    }

    pub(super) fn allow_delete(&mut self, uid: &PodUid, name: &FullName) {
        self.entry(uid, name).delete = true;
    }

    /// A job under way is let go: its answer finds no entry.
    pub(super) fn forget(&mut self, uid: &PodUid) {
        self.entries.remove(uid);
    }

    /// The next job that is due. One pod never has two under way, which keeps its statuses in order.
    pub(super) fn take(&mut self, now: Mono) -> Option<Job> {
        let due = |entry: &&mut Entry| entry.has_work() && entry.not_before <= now;
        let entries = self.entries.iter_mut();
        let (uid, entry) =
            entries.filter(|(_, entry)| due(entry)).min_by_key(|(_, entry)| entry.place)?;
        entry.under_way = true;
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
    pub(super) fn next_due(&self) -> Option<Mono> {
        self.entries.values().filter(|entry| entry.has_work()).map(|entry| entry.not_before).min()
    }

    pub(super) fn done(&mut self, key: &Key, outcome: Outcome, now: Mono) {
        let entry = self.entries.get_mut(&key.uid).filter(|entry| entry.born == key.born);
        let Some(entry) = entry else { return };
        entry.under_way = false;
        match outcome {
            Outcome::Gone => {
                self.entries.remove(&key.uid);
            }
            Outcome::Published => entry.failures = 0,
            Outcome::NotPublished => {
                entry.taken = false;
                entry.fail(now);
            }
            Outcome::NotDeleted => entry.fail(now),
        }
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

impl Entry {
    fn new(name: FullName, born: u64) -> Self {
        Self {
            name,
            born,
            status: None,
            taken: true,
            delete: false,
            place: 0,
            under_way: false,
            failures: 0,
            not_before: Mono::default(),
        }
    }

    fn fail(&mut self, now: Mono) {
        self.not_before = now + wait_after(self.failures);
        self.failures = self.failures.saturating_add(1);
    }

    fn has_work(&self) -> bool {
        !self.under_way && (!self.taken || self.delete)
    }
}

/// Whether two statuses agree in what only we write.
fn says_the_same(one: &PodStatus, other: &PodStatus) -> bool {
    one.phase == other.phase
        && one.container_statuses == other.container_statuses
        && one.init_container_statuses == other.init_container_statuses
}

fn wait_after(failures: u32) -> Duration {
    FIRST_WAIT.saturating_mul(2_u32.saturating_pow(failures)).min(LONGEST_WAIT)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name() -> FullName {
        FullName { name: "web".to_owned(), namespace: "default".to_owned() }
    }

    fn status(phase: &str) -> PodStatus {
        PodStatus { phase: Some(phase.to_owned()), ..PodStatus::default() }
    }

    fn at(millis: u64) -> Mono {
        Mono(Duration::from_millis(millis))
    }

    /// The first entry of a desk is born first.
    fn first(uid: &PodUid) -> Key {
        Key { uid: uid.clone(), born: 1 }
    }

    fn phase(job: Option<Job>) -> Option<String> {
        match job {
            Some(Job::Publish { status, .. }) => status.phase,
            Some(Job::Delete { .. }) => Some("delete".to_owned()),
            None => None,
        }
    }

    #[test]
    fn only_the_latest_status_is_told_and_only_once() {
        let (mut desk, uid) = (Desk::default(), PodUid::from("1"));
        desk.publish(&uid, &name(), status("Pending"));
        desk.publish(&uid, &name(), status("Running"));
        assert_eq!(phase(desk.take(at(0))).as_deref(), Some("Running"));
        desk.done(&first(&uid), Outcome::Published, at(0));
        desk.publish(&uid, &name(), status("Running"));
        assert_eq!(phase(desk.take(at(0))), None);
        assert_eq!(desk.next_due(), None);
    }

    #[test]
    fn everything_has_been_taken_once_the_cluster_says_so() {
        let (mut desk, uid) = (Desk::default(), PodUid::from("a"));
        assert!(desk.is_done());
        desk.publish(&uid, &name(), status("Running"));
        assert!(!desk.is_done(), "it waits");
        let job = desk.take(at(0)).unwrap();
        assert!(!desk.is_done(), "it is under way");
        desk.done(&job.into_key(), Outcome::NotPublished, at(0));
        assert!(!desk.is_done(), "it waits again");
        let job = desk.take(at(60_000)).unwrap();
        desk.done(&job.into_key(), Outcome::Published, at(60_000));
        assert!(desk.is_done());
    }

    #[test]
    fn a_status_that_comes_while_another_is_under_way_waits_for_it() {
        let (mut desk, uid) = (Desk::default(), PodUid::from("1"));
        desk.publish(&uid, &name(), status("Pending"));
        assert!(desk.take(at(0)).is_some());
        desk.publish(&uid, &name(), status("Running"));
        assert_eq!(phase(desk.take(at(0))), None);
        desk.done(&first(&uid), Outcome::Published, at(0));
        assert_eq!(phase(desk.take(at(0))).as_deref(), Some("Running"));
    }

    #[test]
    fn a_failure_is_tried_again_later_and_later() {
        let (mut desk, uid) = (Desk::default(), PodUid::from("1"));
        desk.publish(&uid, &name(), status("Running"));
        let mut now = at(0);
        for wait in [500, 1_000, 2_000, 4_000, 8_000, 10_000, 10_000] {
            assert!(desk.take(now).is_some());
            desk.done(&first(&uid), Outcome::NotPublished, now);
            assert_eq!(phase(desk.take(now)), None);
            now = now + Duration::from_millis(wait);
            assert_eq!(desk.next_due(), Some(now));
        }
    }

    #[test]
    fn a_pod_is_deleted_after_its_last_status_was_taken() {
        let (mut desk, uid) = (Desk::default(), PodUid::from("1"));
        desk.publish(&uid, &name(), status("Succeeded"));
        desk.allow_delete(&uid, &name());
        assert_eq!(phase(desk.take(at(0))).as_deref(), Some("Succeeded"));
        assert_eq!(phase(desk.take(at(0))), None);
        desk.done(&first(&uid), Outcome::Published, at(0));
        assert_eq!(phase(desk.take(at(0))).as_deref(), Some("delete"));
        desk.done(&first(&uid), Outcome::NotDeleted, at(0));
        assert_eq!(phase(desk.take(at(500))).as_deref(), Some("delete"));
        desk.done(&first(&uid), Outcome::Gone, at(500));
        assert_eq!(phase(desk.take(at(10_000))), None);
    }

    #[test]
    fn a_cluster_that_has_something_else_is_told_again() {
        let (mut desk, uid) = (Desk::default(), PodUid::from("1"));
        desk.publish(&uid, &name(), status("Failed"));
        assert!(desk.take(at(0)).is_some());
        desk.heard(&uid, &status("Pending"));
        desk.done(&first(&uid), Outcome::Published, at(0));
        assert_eq!(phase(desk.take(at(0))), None, "what was under way is no surprise");
        desk.heard(&uid, &status("Failed"));
        assert_eq!(phase(desk.take(at(0))), None);
        desk.heard(&uid, &status("Pending"));
        assert_eq!(phase(desk.take(at(0))).as_deref(), Some("Failed"));
    }

    #[test]
    fn the_answer_about_a_forgotten_pod_is_not_taken_for_its_successors() {
        let (mut desk, uid) = (Desk::default(), PodUid::from("1"));
        desk.publish(&uid, &name(), status("Running"));
        assert!(desk.take(at(0)).is_some());
        desk.forget(&uid);
        desk.publish(&uid, &name(), status("Pending"));
        desk.done(&first(&uid), Outcome::Gone, at(0));
        assert_eq!(phase(desk.take(at(0))).as_deref(), Some("Pending"));
    }

    #[test]
    fn an_end_that_somebody_else_wrote_is_not_undone() {
        let (mut desk, uid) = (Desk::default(), PodUid::from("1"));
        desk.publish(&uid, &name(), status("Running"));
        assert!(desk.take(at(0)).is_some());
        desk.done(&first(&uid), Outcome::Published, at(0));
        desk.heard(&uid, &status("Failed"));
        assert_eq!(phase(desk.take(at(0))), None);
    }

    #[test]
    fn pods_take_turns() {
        let (mut desk, one, two) = (Desk::default(), PodUid::from("1"), PodUid::from("2"));
        desk.publish(&two, &name(), status("two"));
        desk.publish(&one, &name(), status("one"));
        assert_eq!(phase(desk.take(at(0))).as_deref(), Some("two"));
        desk.done(&first(&two), Outcome::Published, at(0));
        desk.publish(&two, &name(), status("two again"));
        assert_eq!(phase(desk.take(at(0))).as_deref(), Some("one"));
        assert_eq!(phase(desk.take(at(0))).as_deref(), Some("two again"));
    }
}
