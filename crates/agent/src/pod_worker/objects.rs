//! The objects that a pod refers to: ConfigMaps, Secrets, services, runtime classes, tokens, claims of volumes.

use std::sync::Arc;

use k8s_openapi::api::core::v1::Pod;
use oarsman_core::admission::{AdmissionNode, NodeObjectState};
use oarsman_core::cri_spec::{self, Lookup, NameFiles, Payloads, VolumeFault};
use oarsman_core::persistent_volume::{ClaimContext, ClaimedVolumes, claimed_volumes};
use oarsman_core::references::claims;
use oarsman_sync::Guarded;

use super::context::PodContext;
use super::sync::SyncError;

/// The objects as they were when they could last be read.
#[derive(Debug, Default)]
pub(super) struct ReferencedObjects(Guarded<ObjectsState>);

#[derive(Debug, Default)]
struct ObjectsState {
    found: Option<Arc<Lookup>>,
    /// Whether the pod's volumes have been made of them.
    volumes_made: bool,
    /// What the pod's claims were bound to when it could last be told: a pod keeps what it has.
    claimed: ClaimedVolumes,
}

/// What the pod's volumes are made of.
#[derive(Debug)]
pub(super) struct VolumeSources {
    pub(super) payloads: Payloads,
    pub(super) claimed: ClaimedVolumes,
}

impl ReferencedObjects {
    /// What was found last.
    pub(super) fn known(&self) -> Arc<Lookup> {
        self.0.lock().found.clone().unwrap_or_default()
    }

    /// What the pod's claims are bound to.
    pub(super) fn claimed(&self) -> ClaimedVolumes {
        self.0.lock().claimed.clone()
    }

    /// The pod's volumes hold the files that objects have.
    pub(super) fn set_volumes_made(&self) {
        self.0.lock().volumes_made = true;
    }
}

impl PodContext {
    /// Reads what the pod refers to. While the API server does not answer, what was known before counts, so that a container which
    /// ends meanwhile may start again.
    async fn look_up(&self, pod: &Pod) -> Result<Arc<Lookup>, SyncError> {
        match self.node.seams.cluster.lookup(pod).await {
            Ok(found) => {
                cri_spec::check_object_bytes(pod, &found)?;
                let found = Arc::new(found);
                self.objects.0.lock().found = Some(Arc::clone(&found));
                Ok(found)
            }
            Err(error) => {
                let known = self.objects.0.lock().found.clone();
                let known = known.ok_or_else(|| SyncError::from(error.clone()))?;
                tracing::debug!(pod = %self.name, uid = %self.uid, %error, "referenced objects not read, known ones are used");
                Ok(known)
            }
        }
    }

    /// What volumes are made of that are made of what the pod refers to. A volume that cannot be made holds a new pod up; in one that
    /// runs, its files stay as they are, and its claims are bound to what they were.
    pub(super) async fn volume_sources(
        &self,
        pod: &Pod,
        pod_runs: bool,
    ) -> Result<VolumeSources, SyncError> {
        cri_spec::check_references(pod)?;
        let lookup = self.look_up(pod).await?;
        // Volumes are made of neither file of names.
        let (facts, name_files) = (self.node.facts(), NameFiles::default());
        let node = self.node.node_context(&facts, &name_files);
        let (payloads, mut faults) = cri_spec::payloads(pod, &lookup, &node);
        faults.extend(self.bind_claims(pod, &lookup, pod_runs));
        self.node.recorder.record(pod, faults.iter().map(VolumeFault::event));
        match faults.into_iter().next() {
            Some(fault) if !self.objects.0.lock().volumes_made => {
                Err(SyncError::Volume(Box::new(fault)))
            }
            Some(_) | None => Ok(VolumeSources { payloads, claimed: self.objects.claimed() }),
        }
    }

    /// Finds what the pod's claims are bound to, and the volumes that it cannot have.
    fn bind_claims(&self, pod: &Pod, lookup: &Lookup, pod_runs: bool) -> Vec<VolumeFault> {
        if claims(pod).is_empty() {
            return Vec::new();
        }
        let node = self.node.admission_node.get();
        let is_known = |node: &&AdmissionNode| node.object_state != NodeObjectState::Unread;
        let context = ClaimContext { node: Some(&node).filter(is_known), pod_runs };
        let (claimed, mut faults) = claimed_volumes(pod, lookup, context);
        let mut state = self.objects.0.lock();
        let keeps = state.volumes_made;
        faults.retain(|fault| !(keeps && state.claimed.contains_key(&fault.volume)));
        if !keeps {
            state.claimed.clear();
        }
        state.claimed.extend(claimed);
        faults
    }
}
