//! The checkpoints in memory, and which of them the store does not have yet.

mod objects;
mod services;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use k8s_openapi::api::core::v1::{Pod, PodStatus, Service};
use oarsman_core::cri_spec::Lookup;
use oarsman_core::ids::PodUid;
use oarsman_core::pod::PodExt;
use oarsman_sync::Guarded;
use serde::Serialize;

use crate::ordered_watch;

use super::checkpoint::{FoundObjects, PodCheckpoint};

use objects::ObjectCheckpoints;

/// The name of the checkpoint of the services; it is no valid UID.
const SERVICES: &str = "services";

/// All checkpoints, shared between the cluster layer and the task that writes them.
#[derive(Debug)]
pub(super) struct CheckpointCache {
    cached: Guarded<CachedCheckpoints>,
    /// Whether the store has been read.
    loaded: ordered_watch::Sender<bool>,
}

#[derive(Debug, Default)]
struct CachedCheckpoints {
    by_pod: BTreeMap<PodUid, PodCheckpoint>,
    objects: ObjectCheckpoints,
    services: Option<Vec<Service>>,
    /// Whether the API server has sent its pods since the start.
    api_server_answered: bool,
    /// Names of checkpoints that differ from the store.
    unwritten: BTreeSet<String>,
}

/// A checkpoint to write, or to remove when there is no content.
#[derive(Debug)]
pub(super) struct CheckpointWrite {
    pub(super) name: String,
    /// Its bytes, and whether they must survive a crash of the machine.
    pub(super) checkpoint: Option<(Vec<u8>, bool)>,
}

impl Default for CheckpointCache {
    fn default() -> Self {
        Self { cached: Guarded::default(), loaded: ordered_watch::Sender::new(false) }
    }
}

impl CheckpointCache {
    /// Loads what the store holds.
    pub(super) fn load(&self, kept: BTreeMap<String, Vec<u8>>) {
        self.cached.update(|cached| {
            for (name, bytes) in kept {
                cached.load_checkpoint(name, &bytes);
            }
            cached.remove_unused_objects();
        });
        self.loaded.send_replace(true);
    }

    /// Whether the checkpoints have been read.
    pub(super) fn is_loaded(&self) -> bool {
        self.loaded.get()
    }

    /// Waits until the store has been read.
    pub(super) async fn wait_until_loaded(&self) {
        // The sender lives as long as this does.
        self.loaded.subscribe().wait_for(|loaded| *loaded).await.ok();
    }

    /// Updates the checkpoints to the full set of pods that the API server sent.
    pub(super) fn set_api_pods(&self, pods: &[Arc<Pod>]) {
        self.cached.update(|cached| cached.set_api_pods(pods));
    }

    /// Stores the objects that a pod refers to.
    pub(super) fn set_lookup(&self, uid: &PodUid, lookup: &Lookup) {
        self.cached.update(|cached| cached.set_lookup(uid, lookup));
    }

    /// Stores the status that is published for a pod, whether or not the API server accepts it.
    pub(super) fn set_status(&self, uid: &PodUid, status: &PodStatus) {
        self.cached.update(|cached| {
            let Some(checkpoint) = cached.by_pod.get_mut(uid) else { return };
            if checkpoint.update_status(status) {
                cached.unwritten.insert(uid.to_string());
            }
        });
    }

    /// All pods, unless the API server has sent its own.
    pub(super) fn pods_to_restore(&self) -> Option<Vec<Arc<Pod>>> {
        let cached = self.cached.lock();
        let pods: Vec<Arc<Pod>> =
            cached.by_pod.values().map(|checkpoint| Arc::clone(&checkpoint.pod)).collect();
        let away = !cached.api_server_answered && !pods.is_empty();
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
    pub(super) fn restored_lookup(&self, uid: &PodUid) -> Option<Lookup> {
        let cached = self.cached.lock();
        let checkpoint = cached.by_pod.get(uid).filter(|_| !cached.api_server_answered)?;
        let found = checkpoint.found.as_ref()?;
        let namespace = checkpoint.pod.full_name().namespace;
        let lookup = cached.objects.lookup(found.names(&namespace))?;
        Some(Lookup {
            claims: found.full_claims(&namespace),
            persistent_volumes: found.shared_volumes(),
            services: cached.services.clone().or_else(|| Some(Vec::new())),
            runtime_classes: found.runtime_classes.clone(),
            tokens_later: true,
            ..lookup
        })
    }

    /// Waits until a checkpoint differs from the store.
    pub(super) async fn wait_for_unwritten(&self) {
        let has_unwritten =
            |cached: &mut CachedCheckpoints| (!cached.unwritten.is_empty()).then_some(());
        self.cached.take_when(has_unwritten).await;
    }

    /// The next checkpoint to write.
    pub(super) fn next_write(&self) -> Option<CheckpointWrite> {
        let mut cached = self.cached.lock();
        let name = cached.unwritten.pop_first()?;
        let checkpoint = cached.checkpoint(&name);
        Some(CheckpointWrite { name, checkpoint })
    }

    /// Marks a checkpoint as not written, so that it is tried again.
    pub(super) fn mark_unwritten(&self, name: String) {
        self.cached.update(|cached| cached.unwritten.extend([name]));
    }
}

impl CachedCheckpoints {
    /// Loads one checkpoint. Newer data that is known already is kept; a checkpoint of a pod that is gone is removed.
    fn load_checkpoint(&mut self, name: String, bytes: &[u8]) {
        if name == SERVICES {
            self.services = self.services.take().or_else(|| serde_json::from_slice(bytes).ok());
            return;
        }
        if objects::is_object(&name) {
            if !self.objects.load(&name, bytes) {
                self.unwritten.insert(name);
            }
            return;
        }
        let uid = PodUid::from(name.as_str());
        // A checkpoint of an older version may hold what is not kept any more, such as tokens.
        let is_current = |kept: &PodCheckpoint| serialized(kept).is_some_and(|now| now == bytes);
        if serde_json::from_slice(bytes).is_ok_and(|kept| !is_current(&kept)) {
            self.unwritten.insert(name.clone());
        }
        match (serde_json::from_slice::<PodCheckpoint>(bytes), self.by_pod.get_mut(&uid)) {
            (Ok(kept), Some(known)) => known.found = known.found.take().or(kept.found),
            (Ok(kept), None) if !self.api_server_answered => self.by_pod.extend([(uid, kept)]),
            (Ok(_), None) => self.unwritten.extend([name]),
            (Err(error), _) => {
                tracing::warn!(object = name, %error, "checkpoint not decoded, will be replaced");
                self.unwritten.insert(name);
            }
        }
    }

    fn set_api_pods(&mut self, pods: &[Arc<Pod>]) {
        self.api_server_answered = true;
        let pods: BTreeMap<PodUid, &Arc<Pod>> =
            pods.iter().filter(|pod| !pod.is_mirror()).map(|pod| (pod.uid(), pod)).collect();
        let gone = self.by_pod.keys().filter(|uid| !pods.contains_key(*uid));
        let gone: Vec<String> = gone.map(ToString::to_string).collect();
        self.by_pod.retain(|uid, _| pods.contains_key(uid));
        if !gone.is_empty() {
            self.unwritten.extend(gone);
            self.remove_unused_objects();
        }
        let namespaces: BTreeSet<_> = pods.values().map(|pod| pod.full_name().namespace).collect();
        if let Some(known) = &self.services {
            let used = services::of_namespaces(known, &namespaces);
            self.replace_services(used);
        }
        for (uid, pod) in pods {
            let checkpoint = self.by_pod.entry(uid.clone()).or_default();
            let version = &pod.metadata.resource_version;
            if version.is_some() && checkpoint.version == *version {
                continue;
            }
            checkpoint.version.clone_from(version);
            if checkpoint.update_pod(pod) {
                self.unwritten.insert(uid.to_string());
            }
        }
    }

    fn set_lookup(&mut self, uid: &PodUid, lookup: &Lookup) {
        if let (Some(checkpoint), Some(found)) = (self.by_pod.get(uid), &lookup.services) {
            let namespace = checkpoint.pod.full_name().namespace;
            let merged = services::merged(self.services.as_deref(), &namespace, found);
            self.replace_services(merged);
        }
        let Some(checkpoint) = self.by_pod.get_mut(uid) else { return };
        let namespace = checkpoint.pod.full_name().namespace;
        let found = FoundObjects::of(&namespace, lookup);
        self.unwritten.extend(self.objects.set(found.names(&namespace), lookup));
        let found = Some(found);
        if checkpoint.found != found {
            checkpoint.found = found;
            self.unwritten.insert(uid.to_string());
            self.remove_unused_objects();
        }
    }

    fn remove_unused_objects(&mut self) {
        let names = |checkpoint: &PodCheckpoint| {
            let namespace = checkpoint.pod.full_name().namespace;
            let found = checkpoint.found.iter();
            found.flat_map(|found| found.names(&namespace)).collect::<Vec<_>>()
        };
        let used = self.by_pod.values().flat_map(names).collect();
        self.unwritten.extend(self.objects.retain(&used));
    }

    fn replace_services(&mut self, services: Vec<Service>) {
        if self.services.as_ref() != Some(&services) {
            self.services = Some(services);
            self.unwritten.insert(SERVICES.to_owned());
        }
    }

    fn checkpoint(&self, name: &str) -> Option<(Vec<u8>, bool)> {
        if name == SERVICES {
            return Some((serialized(&self.services)?, false));
        }
        if objects::is_object(name) {
            return Some((self.objects.bytes(name)?, false));
        }
        let checkpoint = self.by_pod.get(&PodUid::from(name))?;
        // A pod that has ended must not run again, whatever happens to the machine.
        Some((serialized(checkpoint)?, checkpoint.pod.has_terminal_phase()))
    }
}

fn serialized(what: &impl Serialize) -> Option<Vec<u8>> {
    let log = |error: &serde_json::Error| {
        tracing::error!(object = "checkpoint", %error, "checkpoint not encoded, not written");
    };
    serde_json::to_vec(what).inspect_err(log).ok()
}
