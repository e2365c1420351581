//! Removing what is left of a pod's earlier containers and sandboxes, beyond what is kept for their logs and exit codes.

use std::collections::BTreeSet;

use oarsman_core::gc::containers::{self, Limits, Scene};
use oarsman_core::ids::ContainerId;
use oarsman_core::view::PodView;
use oarsman_cri::CriError;

use super::room::Room;

impl Room {
    /// Sweeps up after a sync. What cannot be removed now is tried again after the next one.
    pub(super) async fn sweep(&self) {
        if let Err(error) = self.try_to_sweep().await {
            tracing::warn!(pod = %self.name, %error, "dead containers could not be removed yet");
        }
    }

    async fn try_to_sweep(&self) -> Result<(), CriError> {
        let runtime = &self.node.seams.runtime;
        let dead = self
            .choose(&self.memory().view, |scene| containers::containers(scene, &Limits::default()));
        for container in &dead {
            if container.stop_first {
                runtime.stop_container(container.id.as_str(), std::time::Duration::ZERO).await?;
            }
            runtime.remove_container(container.id.as_str()).await?;
            self.discard_log(&container.id).await;
        }
        // A sandbox is garbage only once its containers are really gone.
        let view = if dead.is_empty() { self.memory().view.clone() } else { self.look().await? };
        for sandbox in self.choose(&view, containers::sandboxes) {
            runtime.remove_pod_sandbox(sandbox.as_str()).await?;
        }
        Ok(())
    }

    /// Removes the log of a container that was removed. One that stays goes with the pod.
    pub(super) async fn discard_log(&self, id: &ContainerId) {
        let removed = self.memory().view.containers.iter().find(|c| c.id == *id).cloned();
        let Some(container) = removed else { return };
        let files = &self.node.seams.pod_files;
        let discarded = files.remove_log(&self.uid, &self.name, &container).await;
        if let Err(error) = discarded {
            tracing::warn!(pod = %self.name, %error, "the log of a removed container stays");
        }
    }

    fn choose<T>(&self, view: &PodView, choose: impl FnOnce(&Scene<'_>) -> T) -> T {
        choose(&Scene {
            views: std::slice::from_ref(view),
            kept: &BTreeSet::from([self.uid.clone()]),
            sources_ready: true,
            now: self.node.seams.clock.wall(),
        })
    }
}
