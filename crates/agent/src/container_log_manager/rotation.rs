//! One rotation: the log is renamed, the runtime opens a new one, and earlier ones are compressed.

use std::error::Error;
use std::sync::Arc;

use oarsman_core::ids::ContainerId;
use oarsman_core::log_rotation::{ContainerLogFile, LogAction, LogRotationPolicy, running_logs};
use tokio::sync::{Semaphore, SemaphorePermit};

use crate::active_pods::ActivePodsReader;
use crate::node::AgentContext;

/// What rotations need.
#[derive(Clone)]
pub(super) struct LogRotator {
    pub(super) node: Arc<AgentContext>,
    pub(super) pods: ActivePodsReader,
    pub(super) policy: LogRotationPolicy,
    pub(super) workers: Arc<Semaphore>,
}

impl LogRotator {
    /// Has the runtime open a log that is missing: between the two steps of a rotation the agent ended, or the log could not get its
    /// name back. The lines are in the rotated file.
    pub(super) async fn reopen(
        self,
        id: ContainerId,
        file: ContainerLogFile,
    ) -> (ContainerId, LogAction) {
        let reopened = self.node.seams.runtime.reopen_container_log(id.as_str()).await;
        let Err(error) = reopened else { return (id, LogAction::Reopen) };
        if self.is_running(&id) {
            let (pod, uid, container) = (&file.pod_name, &file.pod, &file.container);
            tracing::warn!(%pod, %uid, container, %error, "log of a running container is missing, will retry to reopen it");
        }
        (id, LogAction::Nothing)
    }

    /// Rotates a log. Wherever it fails, every line stays in a file, and the next check goes on from there.
    pub(super) async fn rotate(
        self,
        id: ContainerId,
        file: ContainerLogFile,
    ) -> (ContainerId, LogAction) {
        let done = match self.rename_and_reopen(&id, &file).await {
            true => LogAction::Rotate,
            false => LogAction::Nothing,
        };
        if done == LogAction::Rotate {
            self.compress(&file).await;
        }
        (id, done)
    }

    /// Whether the runtime writes to a new log.
    async fn rename_and_reopen(&self, id: &ContainerId, file: &ContainerLogFile) -> bool {
        let seams = &self.node.seams;
        let worker = self.worker().await;
        let (max_files, now) = (self.policy.max_files, seams.clock.wall());
        let rotated = match seams.pod_files.rotate_log(file, max_files, now).await {
            Ok(rotated) => rotated,
            Err(error) => {
                self.warn_not_rotated(id, file, &error);
                return false;
            }
        };
        // A runtime that does not answer keeps no worker from other logs.
        drop(worker);
        let Err(error) = seams.runtime.reopen_container_log(id.as_str()).await else { return true };
        self.warn_not_rotated(id, file, &error);
        // A runtime that has opened a new log, and could not say so, writes to that one: then both stay.
        if let Err(error) = seams.pod_files.restore_log(file, &rotated).await {
            let (pod, uid, container) = (&file.pod_name, &file.pod, &file.container);
            tracing::warn!(%pod, %uid, container, %error, "rotated container log not renamed back");
        }
        false
    }

    /// A container that has ended meanwhile has no log to rotate, and nothing is wrong with that.
    fn warn_not_rotated(&self, id: &ContainerId, file: &ContainerLogFile, error: &dyn Error) {
        if self.is_running(id) {
            let (pod, uid, container) = (&file.pod_name, &file.pod, &file.container);
            tracing::warn!(%pod, %uid, container, %error, "container log not rotated, will retry");
        }
    }

    async fn compress(&self, file: &ContainerLogFile) {
        let _worker = self.worker().await;
        if let Err(error) = self.node.seams.pod_files.compress_logs(file).await {
            let (pod, uid, container) = (&file.pod_name, &file.pod, &file.container);
            tracing::warn!(%pod, %uid, container, %error, "rotated container logs not compressed, will retry");
        }
    }

    /// Never closed, so there is always one.
    async fn worker(&self) -> Option<SemaphorePermit<'_>> {
        self.workers.acquire().await.ok()
    }

    fn is_running(&self, id: &ContainerId) -> bool {
        let pod = self.pods.by_container(id);
        pod.is_some_and(|pod| running_logs(&pod).iter().any(|(running, _)| running == id))
    }
}
