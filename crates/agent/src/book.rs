//! The report store: the state of node and pods for people. Commands read it over the local socket, and `oarsman run` displays it.
//!
//! No decision depends on it. Writers never wait: the lock is held for a few assignments, and never over an await.

mod events;
mod pages;

use std::fmt;
use std::sync::Arc;

use k8s_openapi::api::core::v1::{Pod, PodStatus};
use oarsman_clock::Clock;
use oarsman_core::event::PodEvent;
use oarsman_core::ids::{FullName, PodUid};
use oarsman_core::pod::PodExt;
use oarsman_core::report::{Activity, BrokenManifest, Doing, NodeReport, StageReport, Trouble};
use oarsman_core::time::Mono;
use oarsman_cri::CriError;

use crate::latest;

use oarsman_sync::Guarded;
use pages::{Page, Pages};

#[cfg(test)]
pub(crate) mod tests;

/// What a source of pods found when it last looked.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Found {
    /// Manifests that cannot be parsed.
    pub broken: Vec<BrokenManifest>,
    /// Which pods come from which path or URL.
    pub places: Vec<(FullName, String)>,
}

/// The report store. Every task that has something to report holds a clone of its `Arc`.
#[derive(Debug)]
pub struct Book {
    clock: Arc<dyn Clock>,
    pages: Guarded<Pages>,
    /// Counts changes.
    changes: latest::Sender<u64>,
}

impl Book {
    /// An empty store for a node of which this much is known at the start.
    pub fn new(clock: Arc<dyn Clock>, about: NodeReport) -> Arc<Self> {
        let about = NodeReport { since: clock.wall(), ..about };
        let pages = Guarded::new(Pages::new(about));
        Arc::new(Self { clock, pages, changes: latest::Sender::new(0) })
    }

    /// The current report.
    pub fn report(&self) -> NodeReport {
        let now = self.clock.wall();
        NodeReport { now, ..self.pages.lock().report() }
    }

    /// Signals that [`Self::report`] has changed. A reader that displays it should limit its rate: there are dozens of changes while a
    /// pod starts.
    pub fn changes(&self) -> latest::Receiver<u64> {
        self.changes.subscribe()
    }

    /// Sets name and version of the runtime.
    pub fn met_runtime(&self, name: &str, version: &str) {
        self.write(|pages| {
            let runtime = &mut pages.about.runtime;
            (runtime.name, runtime.version) = (name.to_owned(), version.to_owned());
            true
        });
    }

    /// Replaces the report of a source; `source` is its name in this store.
    pub fn found(&self, source: &str, found: Found) {
        self.write(|pages| pages.found(source, found));
    }

    /// Records whether the runtime answered. A refusal is an answer.
    pub fn heard_runtime<T>(&self, answer: &Result<T, CriError>) {
        match answer {
            Err(error) if error.is_unavailable() || error.is_timeout() => {
                self.runtime_trouble(&error.to_string());
            }
            Ok(_) | Err(_) => self.write(|pages| pages.about.runtime.trouble.take().is_some()),
        }
    }

    /// The runtime does not answer.
    pub fn runtime_trouble(&self, why: &str) {
        let now = self.clock.wall();
        self.write(|pages| {
            let trouble = &mut pages.about.runtime.trouble;
            let since = trouble.as_ref().map_or(now, |trouble| trouble.since);
            let new = Trouble { since, why: why.to_owned() };
            trouble.replace(new.clone()) != Some(new)
        });
    }

    /// Records an event of a pod.
    pub(crate) fn happened(&self, pod: &Pod, event: &PodEvent) {
        let now = self.clock.wall();
        self.write(|pages| {
            pages.events.happened(pod, event, now);
            true
        });
    }

    /// Adds or updates a pod: it waits for its name to be free, or has a worker.
    pub(crate) fn wanted(&self, pod: &Arc<Pod>, waits: bool) {
        self.write(|pages| {
            let stage = if waits { StageReport::Waiting } else { StageReport::Syncing };
            let new = || Page::new(Arc::clone(pod), stage);
            let page = pages.pods.entry(pod.uid()).or_insert_with(new);
            page.pod = Arc::clone(pod);
            if page.stage == StageReport::Waiting {
                page.stage = stage;
            }
            true
        });
    }

    /// Adds a pod that is known to the runtime only and is being terminated.
    pub(crate) fn orphan(&self, uid: &PodUid, name: &FullName) {
        self.write(|pages| {
            let pod = Arc::new(nobodys(uid, name));
            let page = || Page::new(pod, StageReport::Terminating);
            pages.pods.entry(uid.clone()).or_insert_with(page).leaving = true;
            true
        });
    }

    /// Nothing is left of a pod.
    pub(crate) fn forget(&self, uid: &PodUid) {
        self.write(|pages| pages.pods.remove(uid).is_some());
    }

    /// Sets the stage of a pod.
    pub(crate) fn stage(&self, uid: &PodUid, stage: StageReport) {
        self.turn(uid, |page| page.set_stage(stage));
    }

    /// Marks a pod as being removed, as opposed to one that ended by itself.
    pub(crate) fn leaving(&self, uid: &PodUid) {
        self.turn(uid, |page| !std::mem::replace(&mut page.leaving, true));
    }

    /// Sets the status of a pod.
    pub(crate) fn status(&self, uid: &PodUid, status: &PodStatus) {
        self.turn(uid, |page| page.set_status(status));
    }

    /// Sets when a failed step of a pod is retried, and why it waits.
    pub(crate) fn wait(&self, uid: &PodUid, next_try: Option<Mono>, because: &impl fmt::Display) {
        let (now, at) = (self.clock.now(), next_try);
        let waits_for = at.map(|_| because.to_string());
        let at = at.and_then(|at| now.wall.checked_add(at.since(now.mono)).ok());
        self.turn(uid, |page| page.set_wait(at, waits_for));
    }

    /// Reports an activity of a pod until the returned guard is dropped.
    pub(crate) fn begin(
        self: &Arc<Self>,
        uid: &PodUid,
        what: Activity,
        container: Option<&str>,
    ) -> Busy {
        let doing =
            Doing { what, container: container.map(str::to_owned), since: self.clock.wall() };
        let mut number = 0;
        self.turn(uid, |page| {
            number = page.begin(doing);
            true
        });
        Busy { book: Arc::clone(self), uid: uid.clone(), number }
    }

    fn turn(&self, uid: &PodUid, write: impl FnOnce(&mut Page) -> bool) {
        self.write(|pages| pages.pods.get_mut(uid).is_some_and(write));
    }

    /// Applies a change, and signals it if `write` says that something changed.
    fn write(&self, write: impl FnOnce(&mut Pages) -> bool) {
        let changed = write(&mut self.pages.lock());
        if changed {
            self.changes.send_modify(|count| *count += 1);
        }
    }
}

/// Ends an activity when dropped.
#[derive(Debug)]
pub(crate) struct Busy {
    book: Arc<Book>,
    uid: PodUid,
    number: u64,
}

impl Drop for Busy {
    fn drop(&mut self) {
        self.book.turn(&self.uid, |page| page.end(self.number));
    }
}

/// A pod of which only name and UID are known.
pub(crate) fn nobodys(uid: &PodUid, name: &FullName) -> Pod {
    let mut pod = Pod::default();
    pod.metadata.name = Some(name.name.clone());
    pod.metadata.namespace = Some(name.namespace.clone());
    pod.metadata.uid = Some(uid.to_string());
    pod
}
