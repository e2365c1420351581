//! Giving back what a pod held besides its containers.

use oarsman_core::lifecycle::{Part, ReleaseOutcome};

use oarsman_core::report::Activity;

use super::room::Room;

pub(super) async fn release(room: &Room, part: Part) -> ReleaseOutcome {
    let _giving_back = room.busy(Activity::GivingBack);
    let released = match part {
        Part::Volumes => {
            let unmounted = room.node.volume_manager.wait_for_unmount(&room.uid).await;
            unmounted.map_err(|error| error.to_string())
        }
        Part::Cgroup => {
            let removed = room.node.seams.cgroups.remove(&room.uid).await;
            removed.map_err(|error| error.to_string())
        }
    };
    match released {
        Ok(()) => {
            // The last work on the pod while its source holds it: what is kept now is kept for long.
            if part == Part::Cgroup {
                room.sweep().await;
            }
            ReleaseOutcome::Ok
        }
        Err(error) => ReleaseOutcome::Failed(error),
    }
}
