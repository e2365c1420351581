//! The seam to recorded statuses, on the fake disk: as a reader sees them, and as they are after a crash of the machine.

use std::collections::BTreeSet;

use async_trait::async_trait;
use k8s_openapi::api::core::v1::PodStatus;
use oarsman_core::ids::PodUid;
use oarsman_state::{FileError, StatusRecords};

use super::{FakeDisk, PodOnDisk};

#[async_trait]
impl StatusRecords for FakeDisk {
    async fn write_status(
        &self,
        pod: &PodUid,
        status: &PodStatus,
        lasting: bool,
    ) -> Result<(), FileError> {
        let mut on_disk = self.lock_pods();
        let pod = on_disk.entry(pod.clone()).or_default();
        pod.written = Some(status.clone());
        if lasting {
            pod.synced = pod.written.clone();
        }
        Ok(())
    }

    async fn read_status(&self, pod: &PodUid) -> Result<Option<PodStatus>, FileError> {
        Ok(self.recorded(pod))
    }

    async fn remove(&self, pod: &PodUid) -> Result<(), FileError> {
        let mut on_disk = self.lock_pods();
        on_disk.entry(pod.clone()).and_modify(|pod| (pod.written, pod.synced) = (None, None));
        on_disk.retain(|_, pod| *pod != PodOnDisk::default());
        Ok(())
    }

    async fn pods(&self) -> Result<BTreeSet<PodUid>, FileError> {
        let on_disk = self.lock_pods();
        let recorded = on_disk.iter().filter(|(_, pod)| pod.written.is_some());
        Ok(recorded.map(|(uid, _)| uid.clone()).collect())
    }
}
