//! The checkpoints in memory, and which of them the store does not have yet.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use k8s_openapi::api::core::v1::{Pod, PodStatus, Service};
use oarsman_core::config::Lookup;
use oarsman_core::ids::PodUid;
use oarsman_core::pod::PodExt;
use oarsman_sync::Guarded;
use serde::Serialize;

use crate::latest;

use super::page::{Objects, Page};

/// The name of the checkpoint of the services; it is no valid UID.
const SERVICES: &str = "services";

/// All checkpoints, shared between the cluster layer and the task that writes them.
#[derive(Debug)]
pub(super) struct Notebook {
    book: Guarded<Book>,
    /// Whether the store has been read.
    open: latest::Sender<bool>,
}

#[derive(Debug, Default)]
struct Book {
    pages: BTreeMap<PodUid, Page>,
    services: Option<Vec<Service>>,
    /// Whether the API server has sent its pods since the start.
    told: bool,
    /// Names of checkpoints that differ from the store.
    unwritten: BTreeSet<String>,
}

/// A checkpoint to write, or to remove when there is no content.
#[derive(Debug)]
pub(super) struct Change {
    pub(super) name: String,
    /// Its bytes, and whether they must survive a crash of the machine.
    pub(super) page: Option<(Vec<u8>, bool)>,
}

impl Default for Notebook {
    fn default() -> Self {
        Self { book: Guarded::default(), open: latest::Sender::new(false) }
    }
}

impl Notebook {
    /// Loads what the store holds.
    pub(super) fn open(&self, kept: BTreeMap<String, Vec<u8>>) {
        self.book.update(|book| {
            for (name, bytes) in kept {
                book.take_in(name, &bytes);
            }
        });
        self.open.send_replace(true);
    }

    /// Whether the checkpoints have been read.
    pub(super) fn is_open(&self) -> bool {
        self.open.get()
    }

    /// Waits until the store has been read.
    pub(super) async fn opened(&self) {
        // The sender lives as long as this does.
        self.open.subscribe().wait_for(|open| *open).await.ok();
    }

    /// Updates the checkpoints to the full set of pods that the API server sent.
    pub(super) fn told(&self, pods: &[Arc<Pod>]) {
        self.book.update(|book| book.told(pods));
    }

    /// Stores the objects that a pod refers to.
    pub(super) fn found(&self, uid: &PodUid, lookup: &Lookup) {
        self.book.update(|book| book.found(uid, lookup));
    }

    /// Stores the status that is published for a pod, whether or not the API server accepts it.
    pub(super) fn said(&self, uid: &PodUid, status: &PodStatus) {
        self.book.update(|book| {
            let Some(page) = book.pages.get_mut(uid) else { return };
            if page.say(status) {
                book.unwritten.insert(uid.to_string());
            }
        });
    }

    /// All pods, unless the API server has sent its own.
    pub(super) fn recall(&self) -> Option<Vec<Arc<Pod>>> {
        let book = self.book.lock();
        let pods: Vec<Arc<Pod>> = book.pages.values().map(|page| Arc::clone(&page.pod)).collect();
        let away = !book.told && !pods.is_empty();
        if away {
            tracing::warn!(
                source = "checkpoints",
                count = pods.len(),
                "API server does not answer, pods are started from checkpoints"
            );
        }
        away.then_some(pods)
    }

    /// The checkpointed objects of a pod, until the API server has sent its pods.
    pub(super) fn remembered(&self, uid: &PodUid) -> Option<Lookup> {
        let book = self.book.lock();
        let page = book.pages.get(uid).filter(|_| !book.told)?;
        Some(page.objects.as_ref()?.lookup(book.services.clone()))
    }

    /// Waits until a checkpoint differs from the store.
    pub(super) async fn changed(&self) {
        let has_unwritten = |book: &mut Book| (!book.unwritten.is_empty()).then_some(());
        self.book.take_when(has_unwritten).await;
    }

    /// The next checkpoint to write.
    pub(super) fn take(&self) -> Option<Change> {
        let mut book = self.book.lock();
        let name = book.unwritten.pop_first()?;
        let page = book.page(&name);
        Some(Change { name, page })
    }

    /// Marks a checkpoint as not written, so that it is tried again.
    pub(super) fn failed(&self, name: String) {
        self.book.update(|book| book.unwritten.extend([name]));
    }
}

impl Book {
    /// Loads one checkpoint. Newer data that is known already is kept; a checkpoint of a pod that is gone is removed.
    fn take_in(&mut self, name: String, bytes: &[u8]) {
        if name == SERVICES {
            self.services = self.services.take().or_else(|| serde_json::from_slice(bytes).ok());
            return;
        }
        let uid = PodUid::from(name.as_str());
        match (serde_json::from_slice::<Page>(bytes), self.pages.get_mut(&uid)) {
            (Ok(kept), Some(known)) => known.objects = known.objects.take().or(kept.objects),
            (Ok(kept), None) if !self.told => self.pages.extend([(uid, kept)]),
            (Ok(_), None) => self.unwritten.extend([name]),
            (Err(error), _) => {
                tracing::warn!(object = name, %error, "checkpoint not decoded, will be replaced");
                self.unwritten.insert(name);
            }
        }
    }

    fn told(&mut self, pods: &[Arc<Pod>]) {
        self.told = true;
        let pods: BTreeMap<PodUid, &Arc<Pod>> =
            pods.iter().filter(|pod| !pod.is_mirror()).map(|pod| (pod.uid(), pod)).collect();
        let gone = self.pages.keys().filter(|uid| !pods.contains_key(*uid));
        self.unwritten.extend(gone.map(ToString::to_string));
        self.pages.retain(|uid, _| pods.contains_key(uid));
        for (uid, pod) in pods {
            let page = self.pages.entry(uid.clone()).or_default();
            let version = &pod.metadata.resource_version;
            if version.is_some() && page.version == *version {
                continue;
            }
            page.version.clone_from(version);
            if page.see(pod) {
                self.unwritten.insert(uid.to_string());
            }
        }
    }

    fn found(&mut self, uid: &PodUid, lookup: &Lookup) {
        if self.services != lookup.services {
            self.services.clone_from(&lookup.services);
            self.unwritten.insert(SERVICES.to_owned());
        }
        let Some(page) = self.pages.get_mut(uid) else { return };
        let objects = Some(Objects::of(&page.pod, lookup));
        if page.objects != objects {
            page.objects = objects;
            self.unwritten.insert(uid.to_string());
        }
    }

    fn page(&self, name: &str) -> Option<(Vec<u8>, bool)> {
        if name == SERVICES {
            return Some((written(&self.services)?, false));
        }
        let page = self.pages.get(&PodUid::from(name))?;
        // A pod that has ended must not run again, whatever happens to the machine.
        Some((written(page)?, page.pod.has_terminal_phase()))
    }
}

fn written(what: &impl Serialize) -> Option<Vec<u8>> {
    let told = |error: &serde_json::Error| {
        tracing::error!(object = "checkpoint", %error, "checkpoint not encoded, not written");
    };
    serde_json::to_vec(what).inspect_err(told).ok()
}
