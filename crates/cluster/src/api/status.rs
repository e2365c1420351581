//! Writing statuses down: one patch for each change, against what the API server is known to have.

use k8s_openapi::api::core::v1::{Pod, PodStatus};
use kube::Api;
use kube::api::{Patch, PatchParams};
use oarsman_core::ids::{FullName, PodUid};
use oarsman_core::pod::PodExt;
use oarsman_core::status::merge::merge;
use oarsman_core::status::patch::patch;
use serde_json::json;

use super::{ApiServer, FIELD_MANAGER, error};
use crate::{ClusterError, Result};

#[cfg(test)]
mod tests;

const CALL: &str = "the status";

impl ApiServer {
    /// Writes a pod's status down. What the API server has is asked for only when that is in doubt.
    pub(super) async fn write_status(
        &self,
        name: &FullName,
        uid: &PodUid,
        status: &PodStatus,
    ) -> Result<()> {
        let known = match self.store.status_to_change(uid) {
            Some(known) => known,
            None => self.read_status(name, uid).await?.unwrap_or_default(),
        };
        match self.patch_status(name, uid, &known, status).await {
            Ok(()) => Ok(()),
            // Another pod has its name, or another write came between: the current object tells which.
            Err(error) if matches!(error::code(&error), Some(409 | 422)) => {
                let gone = || ClusterError::Gone { object: ClusterError::pod(name) };
                let known = self.read_status(name, uid).await?.ok_or_else(gone)?;
                let again = self.patch_status(name, uid, &known, status).await;
                again.map_err(|error| error::failed(CALL, &ClusterError::pod(name), &error))
            }
            Err(error) => Err(error::failed(CALL, &ClusterError::pod(name), &error)),
        }
    }

    /// The status that the API server has, provided the pod is the one that is meant. None when we may not know: a node is refused
    /// all pods that are not its own, also those that are not there, and may not be known yet to own the newest. The answer to a
    /// write tells these apart.
    async fn read_status(&self, name: &FullName, uid: &PodUid) -> Result<Option<PodStatus>> {
        let object = ClusterError::pod(name);
        let pod = match self.of::<Pod>(&name.namespace).get(&name.name).await {
            Ok(pod) => pod,
            Err(error) if error::code(&error) == Some(403) => return Ok(None),
            Err(error) => return Err(error::failed("the reading", &object, &error)),
        };
        if pod.uid() != *uid {
            return Err(ClusterError::Gone { object });
        }
        let status = pod.status.clone().unwrap_or_default();
        self.store.set_read_pod(pod);
        Ok(Some(status))
    }

    async fn patch_status(
        &self,
        name: &FullName,
        uid: &PodUid,
        known: &PodStatus,
        status: &PodStatus,
    ) -> kube::Result<()> {
        // The worker merged with the copy that it had seen, to decide what may be said. This merges with the newest copy: what
        // others wrote between the two stays.
        let wanted = merge(known, status, true, self.clock.wall());
        let Some(change) = patch(known, &wanted).map_err(kube::Error::SerdeError)? else {
            self.store.keep_status(uid);
            return Ok(());
        };
        let pods: Api<Pod> = self.of(&name.namespace);
        let how =
            PatchParams { field_manager: Some(FIELD_MANAGER.to_owned()), ..PatchParams::default() };
        let body =
            Patch::Strategic(json!({ "metadata": { "uid": uid.as_str() }, "status": change }));
        let answer = pods.patch_status(&name.name, &how, &body).await;
        match answer {
            Ok(pod) => {
                self.store.set_written_pod(pod, &wanted);
                Ok(())
            }
            Err(error) => {
                if error::is_answer(&error) {
                    self.store.keep_status(uid);
                }
                Err(error)
            }
        }
    }
}
