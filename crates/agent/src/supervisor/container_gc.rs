//! Removes dead containers that no change of their pod shows: those that have become old enough, and those beyond the limit of the node.
//!
//! They are chosen from the list that a relist has read anyway. No worker is asked: a container that has exited never runs again, and to
//! remove one that is gone succeeds.

use std::collections::BTreeSet;
use std::sync::Arc;

use oarsman_core::active_pods::PodStage;
use oarsman_core::gc::containers::{ContainerGcInput, DeadContainerOnNode, dead_on_node};
use oarsman_core::ids::PodUid;
use oarsman_core::lifecycle::Stage;
use oarsman_core::view::PodView;

use super::Supervisor;
use crate::node::AgentContext;

impl Supervisor {
    /// Starts to remove what the policy does not keep, unless the last such work is still under way.
    pub(super) fn collect_dead_containers(&mut self, views: &[PodView]) {
        while self.collections.try_join_next().is_some() {}
        if views.is_empty() || !self.collections.is_empty() {
            return;
        }
        let kept: BTreeSet<PodUid> = views.iter().map(|view| view.uid.clone()).collect();
        let now = self.node.seams.clock.wall();
        // Pods that are gone are cleaned up as orphans.
        let input = ContainerGcInput { views, kept: &kept, sources_ready: true, now };
        let dead = dead_on_node(&input, &self.node.config.container_gc, |uid| self.is_active(uid));
        if !dead.is_empty() {
            self.collections.spawn(remove(Arc::clone(&self.node), dead));
        }
    }

    /// Whether a container of the pod may be started again.
    fn is_active(&self, uid: &PodUid) -> bool {
        let stage = self.pods.reader().by_uid(uid).map(|pod| pod.stage);
        !matches!(stage, Some(PodStage::Worker(Stage::Terminated | Stage::Finished)))
    }
}

async fn remove(node: Arc<AgentContext>, dead: Vec<DeadContainerOnNode>) {
    for DeadContainerOnNode { pod: uid, pod_name: pod, container } in dead {
        if let Err(error) = node.seams.runtime.remove_container(container.id.as_str()).await {
            tracing::warn!(%pod, %uid, container = container.name, %error, "dead containers not removed, will retry");
            continue;
        }
        if let Err(error) = node.seams.pod_files.remove_log(&uid, &pod, &container).await {
            tracing::warn!(%pod, %uid, container = container.name, %error, "container log not removed, will be removed with the pod");
        }
    }
}
