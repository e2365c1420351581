//! Keeps the mirror pods of static pods in the API server, and hands their statuses to the status manager under the mirrors' UIDs.
//!
//! What is to be done is decided in `oarsman_core::mirror`. Nothing waits for it: a static pod runs whether it has a mirror or not.

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::{Pod, PodStatus};
use oarsman_cluster::ClusterError;
use oarsman_core::ids::{FullName, PodUid};
use oarsman_core::mirror::{MirrorAction, MirrorPods, MirrorStatus};
use oarsman_sync::Guarded;
use tokio::time::timeout;

use crate::node::NodeIdentity;
use crate::ordered_watch;
use crate::seams::Seams;
use crate::status_manager::StatusManager;
use crate::work_queue;

/// How many mirrors are created or deleted at once.
const IN_FLIGHT: usize = 4;
/// How long a pod that another agent may have run waits for the first list of the API server's pods.
const LIST_TIMEOUT: Duration = Duration::from_secs(1);

/// Static pods and their mirrors; clones are the same.
#[derive(Clone)]
pub(crate) struct MirrorManager {
    mirrors: Arc<Guarded<MirrorPods>>,
    statuses: StatusManager,
    /// Whether the API server's pods were listed.
    is_listed: Arc<ordered_watch::Sender<bool>>,
}

impl MirrorManager {
    /// Without pods yet; statuses of mirrors go to that status manager.
    pub(crate) fn new(statuses: StatusManager) -> Self {
        let is_listed = Arc::new(ordered_watch::Sender::new(false));
        Self { mirrors: Arc::default(), statuses, is_listed }
    }

    /// A static pod has a worker from now on.
    pub(crate) fn add_static_pod(&self, pod: &Arc<Pod>) {
        self.mirrors.update(|mirrors| mirrors.add_static_pod(pod));
    }

    /// What is left of a pod that no source has any more is being terminated.
    pub(crate) fn add_terminating(&self, uid: &PodUid, name: &FullName) {
        self.mirrors.update(|mirrors| mirrors.add_terminating(uid, name));
    }

    /// Nothing is left of a pod.
    pub(crate) fn remove_pod(&self, uid: &PodUid) {
        self.mirrors.update(|mirrors| mirrors.remove_pod(uid));
    }

    /// A static pod has this status now.
    pub(crate) fn set_status(&self, uid: &PodUid, name: &FullName, status: &PodStatus) {
        let status = self.mirrors.update(|mirrors| mirrors.set_status(uid, name, status));
        self.pass_on(status);
    }

    /// The API server has these mirrors.
    pub(crate) fn observe(&self, mirrors: Vec<Pod>) {
        let statuses = self.mirrors.update(|known| known.observe(mirrors));
        self.pass_on(statuses);
        self.is_listed.send_replace(true);
    }

    /// The status that the API server shows of a static pod; none when its pods are not listed soon.
    pub(crate) async fn shown_status(&self, uid: &PodUid, name: &FullName) -> Option<PodStatus> {
        let mut is_listed = self.is_listed.subscribe();
        timeout(LIST_TIMEOUT, is_listed.wait_for(|listed| *listed)).await.ok()?.ok()?;
        self.mirrors.lock().shown_status(uid, name)
    }

    /// Every source has sent its pods.
    pub(crate) fn set_sources_ready(&self) {
        self.mirrors.update(MirrorPods::set_sources_ready);
    }

    fn pass_on(&self, statuses: impl IntoIterator<Item = MirrorStatus>) {
        for status in statuses {
            match status {
                MirrorStatus::Publish(name, uid, status) => {
                    self.statuses.publish(&uid, &name, *status);
                }
                MirrorStatus::Shown(uid, status) => self.statuses.reconcile(&uid, &status),
                MirrorStatus::Gone(uid) => self.statuses.forget(&uid),
            }
        }
    }
}

/// Creates and deletes mirrors until it is dropped, once the node is known to the API server.
pub(crate) async fn run(
    manager: MirrorManager,
    seams: Seams,
    mut node: ordered_watch::Receiver<Option<NodeIdentity>>,
) {
    let Ok(Some(first)) = node.wait_for(Option::is_some).await else { return };
    let set = |node: &NodeIdentity| {
        manager.mirrors.update(|mirrors| mirrors.set_node(&node.uid, node.is_deleting));
    };
    set(&first);
    let follow = async {
        while let Ok(known) = node.changed().await {
            known.iter().for_each(set);
        }
        std::future::pending::<()>().await;
    };
    let perform = |action| perform(action, &seams);
    let work = work_queue::run(&manager.mirrors, seams.clock.as_ref(), IN_FLIGHT, perform);
    futures::join!(work, follow);
}

/// Whose mirror it was, and whether the request was served. A mirror that is gone already need not be deleted.
async fn perform(action: MirrorAction, seams: &Seams) -> (FullName, bool) {
    let name = action.name();
    let (call, result) = match &action {
        MirrorAction::Create(mirror) => ("create", seams.cluster.create_mirror_pod(mirror).await),
        MirrorAction::Delete(name, uid) => ("delete", seams.cluster.delete(name, uid).await),
    };
    let served = match result {
        Ok(()) | Err(ClusterError::Gone { .. }) => true,
        Err(error) => {
            tracing::warn!(pod = %name, call, %error, "mirror pod request failed, will retry");
            false
        }
    };
    (name, served)
}
