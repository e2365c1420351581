//! A call that failed may have taken effect all the same. Before it is repeated we look for what it made, under the
//! name it was to have; and when a name stays taken with nothing under it, the next one is used.

use k8s_openapi::api::core::v1::Pod;
use oarsman_core::ids::{ContainerId, SandboxId};
use oarsman_core::pod::PodExt;
use oarsman_cri::{Code, CriError};

use super::room::Room;
use super::sync::SyncError;

/// The ready sandbox of that attempt, if there is one after all.
pub(super) async fn sandbox(room: &Room, attempt: u32) -> Result<Option<SandboxId>, SyncError> {
    let view = room.look().await?;
    Ok(room.node.decisions.adopted_sandbox(&view, attempt))
}

/// The created container of that name and attempt, if there is one after all.
pub(super) async fn container(
    room: &Room,
    sandbox: &SandboxId,
    name: &str,
    attempt: u32,
) -> Option<ContainerId> {
    let view = room.look().await.ok()?;
    room.node.decisions.adopted_container(&view, sandbox, name, attempt)
}

impl Room {
    /// The first attempt from this one on whose name is not known to be taken.
    pub(super) fn free_attempt(&self, name: &str, attempt: u32) -> u32 {
        self.memory().taken.get(name).map_or(attempt, |taken| attempt.max(taken.saturating_add(1)))
    }

    /// Remembers that this attempt's name is taken with nothing under it.
    pub(super) fn skip_attempt_if_reserved(&self, name: &str, attempt: u32, error: &CriError) {
        if is_reserved(error) {
            self.memory().taken.insert(name.to_owned(), attempt);
        }
    }

    /// Whether a sandbox could not be made for want of a network, which is worth asking sooner.
    pub(super) async fn blame_network(&self, pod: &Pod, error: CriError) -> SyncError {
        let status = self.node.seams.runtime.status().await;
        let conditions =
            status.ok().and_then(|answer| answer.status).unwrap_or_default().conditions;
        let down = conditions.iter().any(|c| c.r#type == "NetworkReady" && !c.status);
        if down && !pod.host_network() {
            SyncError::Network(error)
        } else {
            SyncError::Runtime(error)
        }
    }
}

/// containerd has no code of its own for a name that is taken; its words tell.
fn is_reserved(error: &CriError) -> bool {
    error.code() == Code::AlreadyExists || error.message().contains("is reserved for")
}
