//! The pods that were admitted, and the order in which pods are admitted.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Pod;

use crate::ids::{FullName, PodUid};
use crate::pod::PodExt;

use super::{AdmitHandler, Rejection};

/// The pods whose resources are counted.
#[derive(Clone, Debug, Default)]
pub(super) struct AdmittedPods {
    present: BTreeMap<PodUid, Arc<Pod>>,
}

impl AdmittedPods {
    /// Admits the pod if the handler does. A pod that is being deleted is not checked: it has to be terminated in any case.
    /// Until then its resources are counted, unless it has ended already.
    pub(super) fn admit(
        &mut self,
        pod: &Arc<Pod>,
        handler: &dyn AdmitHandler,
    ) -> Result<(), Rejection> {
        if pod.has_terminal_phase() {
            return Ok(());
        }
        if !pod.is_deleting() {
            handler.check(pod, &self.pods_except(&pod.uid()))?;
        }
        self.present.insert(pod.uid(), pod.clone());
        Ok(())
    }

    fn pods_except(&self, uid: &PodUid) -> Vec<&Pod> {
        let others = self.present.iter().filter(|(other, _)| *other != uid);
        others.map(|(_, pod)| pod.as_ref()).collect()
    }

    pub(super) fn update(&mut self, pod: &Arc<Pod>) {
        if let Some(known) = self.present.get_mut(&pod.uid()) {
            *known = pod.clone();
        }
    }

    pub(super) fn remove(&mut self, uid: &PodUid) {
        self.present.remove(uid);
    }

    pub(super) fn is_empty(&self) -> bool {
        self.present.is_empty()
    }
}

/// The oldest first. Static pods have no date and come before all others.
pub(super) fn admission_order(pod: &Pod) -> (Option<Timestamp>, FullName, PodUid) {
    let created = pod.metadata.creation_timestamp.as_ref().map(|time| time.0);
    (created, pod.full_name(), pod.uid())
}
