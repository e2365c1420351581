//! Removes a pod's earlier containers and sandboxes, beyond those that are kept for their logs and exit codes.

use std::collections::BTreeSet;

use oarsman_core::gc::containers::{self, ContainerGcInput};
use oarsman_core::ids::ContainerId;
use oarsman_core::view::PodView;
use oarsman_cri::CriError;

use super::context::PodContext;

impl PodContext {
    /// Removes garbage after a sync. What cannot be removed now is tried again after the next one.
    pub(super) async fn remove_garbage(&self) {
        if let Err(error) = self.try_to_remove_garbage().await {
            tracing::warn!(pod = %self.name, uid = %self.uid, %error, "dead containers not removed, will retry");
        }
    }

    async fn try_to_remove_garbage(&self) -> Result<(), CriError> {
        let runtime = &self.node.seams.runtime;
        let dead = self.reader.with(|view, _| {
            let policy = self.node.config.container_gc.of_pod();
            self.choose(view, |scene| containers::containers_to_remove(scene, &policy))
        });
        for container in &dead {
            if container.stop_first {
                runtime.stop_container(container.id.as_str(), std::time::Duration::ZERO).await?;
            }
            runtime.remove_container(container.id.as_str()).await?;
            self.remove_log(&container.id).await;
        }
        // A sandbox is garbage only once its containers are really gone.
        if !dead.is_empty() {
            self.read().await?;
        }
        let sandboxes =
            self.reader.with(|view, _| self.choose(view, containers::sandboxes_to_remove));
        for sandbox in sandboxes {
            runtime.remove_pod_sandbox(sandbox.as_str()).await?;
        }
        Ok(())
    }

    /// Removes the log of a container that was removed. One that stays goes with the pod.
    pub(super) async fn remove_log(&self, id: &ContainerId) {
        let removed =
            self.reader.with(|view, _| view.containers.iter().find(|seen| seen.id == *id).cloned());
        let Some(container) = removed else { return };
        let files = &self.node.seams.pod_files;
        if let Err(error) = files.remove_log(&self.uid, &self.name, &container).await {
            let (pod, uid, container) = (&self.name, &self.uid, container.name);
            tracing::warn!(%pod, %uid, container, %error, "container log not removed, will be removed with the pod");
        }
    }

    fn choose<T>(&self, view: &PodView, choose: impl FnOnce(&ContainerGcInput<'_>) -> T) -> T {
        choose(&ContainerGcInput {
            views: std::slice::from_ref(view),
            kept: &BTreeSet::from([self.uid.clone()]),
            sources_ready: true,
            now: self.node.seams.clock.wall(),
        })
    }
}
