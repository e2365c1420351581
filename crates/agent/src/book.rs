//! What the agent knows, written down for people: the commands read it over the local socket, and `oarsman run` draws from it.
//!
//! Nothing is decided by what stands here. Whoever does something writes it down in passing, and nobody waits: the lock is held for
//! a few assignments, and never over an await.

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
    /// Manifests that nobody understands.
    pub broken: Vec<BrokenManifest>,
    /// Which pods come from which path or URL.
    pub places: Vec<(FullName, String)>,
}

/// The book. Clones of its `Arc` are handed to everybody who knows something.
#[derive(Debug)]
pub struct Book {
    clock: Arc<dyn Clock>,
    pages: Guarded<Pages>,
    /// How often something changed.
    changes: latest::Sender<u64>,
}

impl Book {
    /// An empty book, of a node of which that much is known at the beginning.
    pub fn new(clock: Arc<dyn Clock>, about: NodeReport) -> Arc<Self> {
        let about = NodeReport { since: clock.wall(), ..about };
        let pages = Guarded::new(Pages::new(about));
        Arc::new(Self { clock, pages, changes: latest::Sender::new(0) })
    }

    /// All that is known now.
    pub fn report(&self) -> NodeReport {
        let now = self.clock.wall();
        NodeReport { now, ..self.pages.lock().report() }
    }

    /// Tells whenever [`Self::report`] would say something else. Whoever draws should do so at a pace of its own: changes come by the
    /// dozen while a pod starts.
    pub fn changes(&self) -> latest::Receiver<u64> {
        self.changes.subscribe()
    }

    /// What the runtime calls itself.
    pub fn met_runtime(&self, name: &str, version: &str) {
        self.write(|pages| {
            let runtime = &mut pages.about.runtime;
            (runtime.name, runtime.version) = (name.to_owned(), version.to_owned());
            true
        });
    }

    /// What a source found, all of it; `source` is what it goes by here.
    pub fn found(&self, source: &str, found: Found) {
        self.write(|pages| pages.found(source, found));
    }

    /// Whether the runtime answered. What it refuses is an answer.
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

    /// Something happened to a pod.
    pub(crate) fn happened(&self, pod: &Pod, event: &PodEvent) {
        let now = self.clock.wall();
        self.write(|pages| {
            pages.events.happened(pod, event, now);
            true
        });
    }

    /// A pod is to be looked after: it waits for its turn, or somebody works on it.
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

    /// A pod that only the runtime knows is brought down.
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

    /// Where a pod stands in its life.
    pub(crate) fn stage(&self, uid: &PodUid, stage: StageReport) {
        self.turn(uid, |page| page.set_stage(stage));
    }

    /// A pod is taken away, and does not just end.
    pub(crate) fn leaving(&self, uid: &PodUid) {
        self.turn(uid, |page| !std::mem::replace(&mut page.leaving, true));
    }

    /// How a pod is.
    pub(crate) fn status(&self, uid: &PodUid, status: &PodStatus) {
        self.turn(uid, |page| page.set_status(status));
    }

    /// When what did not succeed with a pod is tried again, and why it waits.
    pub(crate) fn wait(&self, uid: &PodUid, next_try: Option<Mono>, because: &impl fmt::Display) {
        let (now, at) = (self.clock.now(), next_try);
        let waits_for = at.map(|_| because.to_string());
        let at = at.and_then(|at| now.wall.checked_add(at.since(now.mono)).ok());
        self.turn(uid, |page| page.set_wait(at, waits_for));
    }

    /// Something that takes its time is begun; it is over when what this returns is dropped.
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

    /// Writes, and tells those who listen if that changed something.
    fn write(&self, write: impl FnOnce(&mut Pages) -> bool) {
        let changed = write(&mut self.pages.lock());
        if changed {
            self.changes.send_modify(|count| *count += 1);
        }
    }
}

/// Something that takes its time, until this is dropped.
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

/// A pod of which no source knows more than its name.
pub(crate) fn nobodys(uid: &PodUid, name: &FullName) -> Pod {
    let mut pod = Pod::default();
    pod.metadata.name = Some(name.name.clone());
    pod.metadata.namespace = Some(name.namespace.clone());
    pod.metadata.uid = Some(uid.to_string());
    pod
}
