//! Measures the volumes of claims: one call of the kernel for each mount, when a request asks.

use async_trait::async_trait;
use futures::future::join_all;
use oarsman_core::ids::PodUid;
use oarsman_core::persistent_volume::ClaimMount;
use oarsman_core::stats::{MeasuredClaim, MeasuredPod};

use super::NodeStats;

/// Tells the sizes of volumes of claims.
#[async_trait]
pub(crate) trait ClaimSizes: Send + Sync + 'static {
    /// Those of all pods. A mount that does not answer is left out.
    async fn claim_sizes(&self) -> Vec<MeasuredClaim>;
}

#[async_trait]
impl ClaimSizes for NodeStats {
    async fn claim_sizes(&self) -> Vec<MeasuredClaim> {
        self.measured_claims().await.into_iter().map(|(_, claim)| claim).collect()
    }
}

impl NodeStats {
    /// All at once: a server that is gone delays the answer by one time-out and not by one for each of its mounts.
    async fn measured_claims(&self) -> Vec<(PodUid, MeasuredClaim)> {
        let measure = |(uid, mount): (PodUid, ClaimMount)| async move {
            let ClaimMount { volume, claim, path } = mount;
            let fs = self.file_system(path).await?;
            Some((uid, MeasuredClaim { volume, claim, fs }))
        };
        let measured = join_all(self.metrics.claims.all().into_iter().map(measure)).await;
        measured.into_iter().flatten().collect()
    }

    pub(super) async fn add_claims(&self, pods: &mut [MeasuredPod]) {
        for (uid, claim) in self.measured_claims().await {
            if let Some(pod) = pods.iter_mut().find(|pod| pod.uid == uid) {
                pod.claims.push(claim);
            }
        }
    }
}
