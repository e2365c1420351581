//! The report store: the state of node and pods for people. Commands read it over the local socket, and `oarsman run` displays it.
//!
//! No decision depends on it. Writers never wait: the lock is held for a few assignments, and never over an await.

mod entries;
mod events;

use std::sync::Arc;

use k8s_openapi::api::core::v1::{Pod, PodStatus};
use oarsman_clock::Clock;
use oarsman_core::event::PodEvent;
use oarsman_core::ids::{FullName, PodUid};
use oarsman_core::lifecycle::WaitReason;
use oarsman_core::pod::PodExt;
use oarsman_core::report::{
    Activity, BrokenManifest, NodeReport, OngoingError, PodActivity, ProbeReport, StageReport,
    TrafficObstacle,
};
use oarsman_core::time::Mono;
use oarsman_cri::CriError;

use crate::ordered_watch;

use entries::{PodEntry, ReportEntries};
use oarsman_sync::Guarded;

#[cfg(test)]
pub(crate) mod tests;

/// What a source of pods found when it last looked.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SourceReport {
    /// Manifests that cannot be parsed.
    pub broken: Vec<BrokenManifest>,
    /// Which pods come from which path or URL.
    pub places: Vec<(FullName, String)>,
}

/// The report store. Every task that has something to report holds a clone of its `Arc`.
#[derive(Debug)]
pub struct ReportStore {
    clock: Arc<dyn Clock>,
    entries: Guarded<ReportEntries>,
    /// Counts changes.
    changes: ordered_watch::Sender<u64>,
}

impl ReportStore {
    /// An empty store for a node of which this much is known at the start.
    pub fn new(clock: Arc<dyn Clock>, about: NodeReport) -> Arc<Self> {
        let about = NodeReport { since: clock.wall(), ..about };
        let entries = Guarded::new(ReportEntries::new(about));
        Arc::new(Self { clock, entries, changes: ordered_watch::Sender::new(0) })
    }

    /// The current report.
    pub fn report(&self) -> NodeReport {
        let now = self.clock.wall();
        // Pods may be large: they are copied when the lock is free again, which every worker's report needs.
        let entries = self.entries.lock().clone();
        NodeReport { now, ..entries.report() }
    }

    /// Signals that [`Self::report`] has changed. A reader that displays it should limit its rate: there are dozens of changes while a
    /// pod starts.
    pub fn changes(&self) -> ordered_watch::Receiver<u64> {
        self.changes.subscribe()
    }

    /// Sets name and version of the runtime.
    pub fn set_runtime_version(&self, name: &str, version: &str) {
        self.update(|entries| {
            let runtime = &mut entries.about.runtime;
            (runtime.name, runtime.version) = (name.to_owned(), version.to_owned());
            true
        });
    }

    /// Replaces the report of a source; `source` is its name in this store.
    pub fn set_source_report(&self, source: &str, found: SourceReport) {
        self.update(|entries| entries.set_source_report(source, found));
    }

    /// Records whether the runtime answered. A refusal is an answer.
    pub fn record_runtime_response<T>(&self, answer: &Result<T, CriError>) {
        match answer {
            Err(error) if error.is_unavailable() || error.is_timeout() => {
                self.set_runtime_unreachable(&error.to_string());
            }
            Ok(_) | Err(_) => self.update(|entries| entries.about.runtime.trouble.take().is_some()),
        }
    }

    /// Sets what stands in the way of pods' packets, as the runtime says.
    pub fn set_traffic_obstacle(&self, found: Option<TrafficObstacle>) {
        self.update(|entries| {
            let known = &mut entries.about.runtime.traffic_obstacle;
            let is_news = *known != found;
            *known = found;
            is_news
        });
    }

    /// The runtime does not answer.
    pub fn set_runtime_unreachable(&self, why: &str) {
        let now = self.clock.wall();
        self.update(|entries| {
            let trouble = &mut entries.about.runtime.trouble;
            let since = trouble.as_ref().map_or(now, |trouble| trouble.since);
            let new = OngoingError { since, why: why.to_owned() };
            trouble.replace(new.clone()) != Some(new)
        });
    }

    /// Records an event of a pod.
    pub(crate) fn record_event(&self, pod: &Pod, event: &PodEvent) {
        let now = self.clock.wall();
        self.update(|entries| {
            entries.events.record_event(pod, event, now);
            true
        });
    }

    /// Adds or updates a pod: it waits for its name to be free, or has a worker.
    pub(crate) fn set_pod(&self, pod: &Arc<Pod>, waits: bool) {
        self.update(|entries| {
            let stage = if waits { StageReport::Waiting } else { StageReport::Syncing };
            let new = || PodEntry::new(Arc::clone(pod), stage);
            let entry = entries.pods.entry(pod.uid()).or_insert_with(new);
            entry.pod = Arc::clone(pod);
            if entry.stage == StageReport::Waiting {
                entry.stage = stage;
            }
            true
        });
    }

    /// Adds a pod that is known to the runtime only and is being terminated.
    pub(crate) fn add_orphan(&self, uid: &PodUid, name: &FullName) {
        self.update(|entries| {
            let pod = Arc::new(placeholder_pod(uid, name));
            let entry = || PodEntry::new(pod, StageReport::Terminating);
            entries.pods.entry(uid.clone()).or_insert_with(entry).leaving = true;
            true
        });
    }

    /// Nothing is left of a pod.
    pub(crate) fn remove_pod(&self, uid: &PodUid) {
        self.update(|entries| entries.pods.remove(uid).is_some());
    }

    /// Sets the stage of a pod.
    pub(crate) fn set_stage(&self, uid: &PodUid, stage: StageReport) {
        self.update_pod(uid, |entry| entry.set_stage(stage));
    }

    /// Marks a pod as being removed, as opposed to one that ended by itself.
    pub(crate) fn set_leaving(&self, uid: &PodUid) {
        self.update_pod(uid, |entry| !std::mem::replace(&mut entry.leaving, true));
    }

    /// Sets the status of a pod.
    pub(crate) fn set_status(&self, uid: &PodUid, status: &PodStatus) {
        self.update_pod(uid, |entry| entry.set_status(status));
    }

    /// Sets the last answer of a probe.
    pub(crate) fn set_probe(&self, uid: &PodUid, answer: ProbeReport) {
        self.update_pod(uid, |entry| entry.set_probe(answer));
    }

    /// Sets when a failed step of a pod is retried, and why it waits.
    pub(crate) fn set_wait(&self, uid: &PodUid, next_try: Option<Mono>, because: &WaitReason) {
        let (now, at) = (self.clock.now(), next_try);
        let because = at.map(|_| because);
        let at = at.and_then(|at| now.wall.checked_add(at.since(now.mono)).ok());
        self.update_pod(uid, |entry| entry.set_wait(at, because));
    }

    /// Reports an activity of a pod until the returned guard is dropped.
    pub(crate) fn begin_activity(
        self: &Arc<Self>,
        uid: &PodUid,
        what: Activity,
        container: Option<&str>,
    ) -> ActivityGuard {
        let doing =
            PodActivity { what, container: container.map(str::to_owned), since: self.clock.wall() };
        let mut number = 0;
        self.update_pod(uid, |entry| {
            number = entry.begin_activity(doing);
            true
        });
        ActivityGuard { report_store: Arc::clone(self), uid: uid.clone(), number }
    }

    fn update_pod(&self, uid: &PodUid, write: impl FnOnce(&mut PodEntry) -> bool) {
        self.update(|entries| entries.pods.get_mut(uid).is_some_and(write));
    }

    /// Applies a change, and signals it if `update` says that something changed.
    fn update(&self, write: impl FnOnce(&mut ReportEntries) -> bool) {
        let changed = write(&mut self.entries.lock());
        if changed {
            self.changes.send_modify(|count| *count += 1);
        }
    }
}

/// Ends an activity when dropped.
#[derive(Debug)]
pub(crate) struct ActivityGuard {
    report_store: Arc<ReportStore>,
    uid: PodUid,
    number: u64,
}

impl Drop for ActivityGuard {
    fn drop(&mut self) {
        self.report_store.update_pod(&self.uid, |entry| entry.end_activity(self.number));
    }
}

/// A pod of which only name and UID are known.
pub(crate) fn placeholder_pod(uid: &PodUid, name: &FullName) -> Pod {
    let mut pod = Pod::default();
    pod.metadata.name = Some(name.name.clone());
    pod.metadata.namespace = Some(name.namespace.clone());
    pod.metadata.uid = Some(uid.to_string());
    pod
}
