//! Removes what is left of a pod that no source holds any more: dead containers, sandboxes, files and its record.

use oarsman_core::report::Activity;

use super::context::PodContext;
use super::sync::SyncError;

pub(super) async fn cleanup(context: &PodContext) -> Result<(), String> {
    let _removing = context.begin_activity(Activity::GivingBack);
    let removed = remove_everything(context).await;
    removed.map_err(|error| {
        tracing::warn!(pod = %context.name, uid = %context.uid, %error, "pod cleanup failed, will retry");
        error.to_string()
    })
}

async fn remove_everything(context: &PodContext) -> Result<(), SyncError> {
    let node = &context.node;
    let view = context.read().await?;
    let left = node.decisions.leftovers(&view);
    for container in &left.containers {
        node.seams.runtime.remove_container(container.as_str()).await?;
    }
    for sandbox in &left.sandboxes {
        node.seams.runtime.stop_pod_sandbox(sandbox.as_str()).await?;
        node.seams.runtime.remove_pod_sandbox(sandbox.as_str()).await?;
    }
    node.volume_manager.wait_for_unmount(&context.uid).await?;
    node.seams.cgroups.remove(&context.uid).await?;
    node.seams.pod_files.remove(&context.uid).await?;
    node.user_namespaces.forget(&context.uid).await;
    // The record goes last: what is left of a pod is found by it.
    Ok(node.seams.records.remove(&context.uid).await?)
}
