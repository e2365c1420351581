//! Bringing a pod down: containers in their order, then sandboxes, then a look whether nothing runs.

use k8s_openapi::api::core::v1::Pod;
use oarsman_core::lifecycle::{Grace, KillOutcome, KillReason};
use oarsman_cri::CriError;

use super::room::Room;
use super::stop::{self, Hurry};
use crate::latest;

pub(super) async fn kill(
    room: &Room,
    pod: Option<&Pod>,
    why: KillReason,
    grace: latest::Receiver<Grace>,
) -> KillOutcome {
    tracing::info!(pod = %room.name, %why, "bringing the pod down");
    match bring_down(room, pod, grace).await {
        Ok(true) => KillOutcome::Ok,
        Ok(false) => KillOutcome::StillRunning,
        Err(error) => KillOutcome::Failed(error.to_string()),
    }
}

/// Tells whether nothing runs any more.
async fn bring_down(
    room: &Room,
    pod: Option<&Pod>,
    grace: latest::Receiver<Grace>,
) -> Result<bool, CriError> {
    let view = room.look().await?;
    let first = grace.get();
    let teardown = room.node.decisions.teardown(pod, &view, Some(first.seconds()));
    let stopped = stop::all(room, pod, &teardown.stop, Some(Hurry::new(grace))).await;
    // A container that would not stop does not keep its sandbox: that kills it.
    let sandboxes = stop::sandboxes(room, &teardown.sandboxes).await;
    let view = room.look().await?;
    stopped.and(sandboxes)?;
    Ok(view.is_quiet())
}
