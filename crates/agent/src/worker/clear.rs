//! Clearing away what is left of a pod that nobody wants: dead containers, sandboxes, its directory.

use std::time::Duration;

use oarsman_core::report::Activity;

use super::room::Room;
use super::sync::SyncError;

/// After a failure.
const TRY_AGAIN: Duration = Duration::from_secs(10);

impl Room {
    /// Clears away, however often it takes: the pod's name and UID are not free before.
    pub(super) async fn clear_away(&self) {
        let _giving_back = self.busy(Activity::GivingBack);
        while let Err(error) = self.try_to_clear_away().await {
            tracing::warn!(pod = %self.name, %error, "not all of it could be cleared away yet");
            tokio::time::sleep(TRY_AGAIN).await;
        }
    }

    async fn try_to_clear_away(&self) -> Result<(), SyncError> {
        let runtime = &self.node.seams.runtime;
        let view = self.look().await?;
        let left = self.node.decisions.leftovers(&view);
        for container in &left.containers {
            runtime.remove_container(container.as_str()).await?;
        }
        for sandbox in &left.sandboxes {
            runtime.stop_pod_sandbox(sandbox.as_str()).await?;
            runtime.remove_pod_sandbox(sandbox.as_str()).await?;
        }
        // The record goes last: what is left of a pod is found by it.
        self.node.volume_manager.wait_for_unmount(&self.uid).await?;
        self.node.seams.cgroups.remove(&self.uid).await?;
        self.node.seams.pod_files.remove(&self.uid).await?;
        Ok(self.node.seams.records.remove(&self.uid).await?)
    }
}
