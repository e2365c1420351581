//! The seam to cgroups, on the fake disk.

use std::collections::BTreeSet;

use async_trait::async_trait;
use k8s_openapi::api::core::v1::Pod;
use oarsman_core::ids::PodUid;
use oarsman_core::pod::PodExt;
use oarsman_host::pod_cgroups::{Cgroups, PodCgroupError};

use super::{DiskChange, DiskViolation, FakeDisk, IN_USE};

#[async_trait]
impl Cgroups for FakeDisk {
    async fn ensure(&self, pod: &Pod) -> Result<(), PodCgroupError> {
        self.set_part(&pod.uid(), |pod| &mut pod.cgroup, DiskChange::CgroupMade);
        Ok(())
    }

    async fn update(&self, pod: &Pod) -> Result<bool, PodCgroupError> {
        Ok(self.has_cgroup(&pod.uid()))
    }

    async fn remove(&self, pod: &PodUid) -> Result<(), PodCgroupError> {
        if self.has_cgroup(pod) && self.runs(pod) {
            self.trace_change(pod, DiskChange::Violated(DiskViolation::CgroupInUse));
            let (doing, object) = ("remove the cgroup of", pod.to_string());
            return Err(PodCgroupError { doing, object, why: IN_USE.to_owned() });
        }
        self.clear_part(pod, |pod| &mut pod.cgroup, DiskChange::CgroupRemoved);
        Ok(())
    }

    async fn pods(&self) -> Result<BTreeSet<PodUid>, PodCgroupError> {
        let on_disk = self.lock_pods();
        let held = on_disk.iter().filter(|(_, pod)| pod.cgroup);
        Ok(held.map(|(uid, _)| uid.clone()).collect())
    }
}
