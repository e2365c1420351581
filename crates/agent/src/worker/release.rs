//! Giving back what a pod held besides its containers.

use oarsman_core::lifecycle::{Part, ReleaseOutcome};

use oarsman_core::report::Activity;

use super::room::Room;

pub(super) async fn release(room: &Room, part: Part) -> ReleaseOutcome {
    let _giving_back = room.busy(Activity::GivingBack);
    let disk = &room.node.seams.disk;
    let released = match part {
        Part::Volumes => disk.release_volumes(&room.uid).await,
        Part::Cgroup => disk.release_cgroup(&room.uid).await,
    };
    match released {
        Ok(()) => {
            // The last work on the pod while its source holds it: what is kept now is kept for long.
            if part == Part::Cgroup {
                room.sweep().await;
            }
            ReleaseOutcome::Ok
        }
        Err(error) => ReleaseOutcome::Failed(error.to_string()),
    }
}
