//! The objects that a pod refers to: ConfigMaps, Secrets, services, runtime classes, tokens.

use std::sync::Arc;

use k8s_openapi::api::core::v1::Pod;
use oarsman_core::cri_spec::{self, Lookup, NameFiles, Payloads, VolumeFault};
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
}

impl ReferencedObjects {
    /// What was found last.
    pub(super) fn known(&self) -> Arc<Lookup> {
        self.0.lock().found.clone().unwrap_or_default()
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

    /// The files of volumes that are made of what the pod refers to. A volume that cannot be made holds a new pod up; in one that
    /// runs, its files stay as they are.
    pub(super) async fn payloads(&self, pod: &Pod) -> Result<Payloads, SyncError> {
        cri_spec::check_references(pod)?;
        let lookup = self.look_up(pod).await?;
        // Volumes are made of neither file of names.
        let (facts, name_files) = (self.node.facts(), NameFiles::default());
        let node = self.node.node_context(&facts, &name_files);
        let (payloads, faults) = cri_spec::payloads(pod, &lookup, &node);
        self.node.recorder.record(pod, faults.iter().map(VolumeFault::event));
        match faults.into_iter().next() {
            Some(fault) if !self.objects.0.lock().volumes_made => {
                Err(SyncError::Volume(Box::new(fault)))
            }
            Some(_) | None => Ok(payloads),
        }
    }
}
