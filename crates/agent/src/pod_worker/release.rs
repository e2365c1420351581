//! Releases what a pod held besides its containers.

use oarsman_core::lifecycle::HeldResource;
use oarsman_core::report::Activity;

use super::context::PodContext;

pub(super) async fn release(context: &PodContext, part: HeldResource) -> Result<(), String> {
    let _releasing = context.begin_activity(Activity::GivingBack);
    match part {
        HeldResource::Volumes => {
            let unmounted = context.node.volume_manager.wait_for_unmount(&context.uid).await;
            unmounted.map_err(|error| error.to_string())
        }
        HeldResource::Cgroup => {
            let removed = context.node.seams.cgroups.remove(&context.uid).await;
            removed.map_err(|error| error.to_string())?;
            let released = context.node.user_namespaces.release(&context.uid).await;
            released.map_err(|error| error.to_string())?;
            // The last work on the pod while its source holds it: what is kept now is kept for long.
            context.remove_garbage().await;
            Ok(())
        }
    }
}
