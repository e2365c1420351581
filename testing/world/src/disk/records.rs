//! Records of pods: what a reader sees, and what a crash of the machine leaves of it.

use std::collections::BTreeSet;

use async_trait::async_trait;
use k8s_openapi::api::core::v1::PodStatus;
use oarsman_core::ids::PodUid;
use oarsman_state::{FileError, Records};

use super::{FakeDisk, Ground};

#[async_trait]
impl Records for FakeDisk {
    async fn remember(
        &self,
        pod: &PodUid,
        status: &PodStatus,
        lasting: bool,
    ) -> Result<(), FileError> {
        let mut ground = self.ground();
        let pod = ground.entry(pod.clone()).or_default();
        pod.written = Some(status.clone());
        if lasting {
            pod.synced = pod.written.clone();
        }
        Ok(())
    }

    async fn recall(&self, pod: &PodUid) -> Result<Option<PodStatus>, FileError> {
        Ok(self.recorded(pod))
    }

    async fn remove(&self, pod: &PodUid) -> Result<(), FileError> {
        let mut ground = self.ground();
        ground.entry(pod.clone()).and_modify(|pod| (pod.written, pod.synced) = (None, None));
        ground.retain(|_, pod| *pod != Ground::default());
        Ok(())
    }

    async fn pods(&self) -> Result<BTreeSet<PodUid>, FileError> {
        let ground = self.ground();
        let recorded = ground.iter().filter(|(_, pod)| pod.written.is_some());
        Ok(recorded.map(|(uid, _)| uid.clone()).collect())
    }
}
