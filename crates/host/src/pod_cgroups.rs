//! The seam to the cgroups of pods and of their QoS classes, and its implementation on this machine.

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Display;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use async_trait::async_trait;
use k8s_openapi::api::core::v1::Pod;
use oarsman_core::ids::PodUid;
use oarsman_core::pod::PodExt;
use oarsman_core::qos::QosClass;
use oarsman_core::resources::names::CgroupNames;
use oarsman_core::resources::{CgroupValues, NodeResources, QosCpuClaim, pod_cgroup, qos_cgroup};
use oarsman_seam::{Call, CallFault, SeamError, seam};
use oarsman_sync::Guarded;

use crate::blocking::{BlockingKind, BlockingPool};
use crate::cgroups::{CgroupError, CgroupManager};

/// The cgroups of pods. Every call may be repeated: making what is there and removing what is gone succeed.
#[seam]
pub trait Cgroups: Send + Sync + 'static {
    /// Makes the pod's cgroup and those of the node above it, with the values that the pods' resources give them.
    #[seam(call = "make the cgroup of", object = pod.uid())]
    async fn ensure(&self, pod: &Pod) -> Result<(), PodCgroupError>;

    /// Gives the cgroup of a pod that runs the same values, and returns whether it is there. A cgroup that is gone is not made again: the
    /// containers would not be in it, and the next call would not notice.
    #[seam(call = "update the cgroup of", object = pod.uid())]
    async fn update(&self, pod: &Pod) -> Result<bool, PodCgroupError>;

    /// Kills what still runs in the pod's cgroup, and removes it.
    #[seam(call = "remove the cgroup of", object = pod)]
    async fn remove(&self, pod: &PodUid) -> Result<(), PodCgroupError>;

    /// Every pod that has a cgroup.
    #[seam(call = "list the cgroups of pods")]
    async fn pods(&self) -> Result<BTreeSet<PodUid>, PodCgroupError>;
}

/// A cgroup of a pod or of the node is not as it should be.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("cannot {doing} {object}: {why}")]
pub struct PodCgroupError {
    /// The call that failed.
    pub doing: &'static str,
    /// The cgroup, or the pod.
    pub object: String,
    /// The error of the system.
    pub why: String,
}

impl SeamError for PodCgroupError {
    fn of_fault(call: &Call, fault: CallFault) -> Self {
        Self { doing: call.name, object: call.object.clone(), why: fault.to_string() }
    }
}

fn failed<E: Display>(doing: &'static str, group: &Path) -> impl FnOnce(E) -> PodCgroupError {
    move |why| {
        let (object, why) = (group.display().to_string(), why.to_string());
        PodCgroupError { doing, object, why }
    }
}

/// The settings of pods' cgroups.
#[derive(Clone, Debug)]
pub struct CgroupSettings {
    /// The naming scheme of pods' cgroups.
    pub names: CgroupNames,
    /// What the values of cgroups are computed from.
    pub resources: NodeResources,
    /// Whether the root cgroup belongs to the agent alone: then it is made for the first pod, and removed with the last.
    pub is_run_mode: bool,
}

/// The cgroups of this machine.
#[derive(Clone, Debug)]
pub struct HostCgroups(Arc<PodCgroupManager>);

impl HostCgroups {
    /// Finds the cgroup hierarchies, and makes the root cgroup unless that is made for the first pod.
    ///
    /// # Errors
    /// When they cannot be read, or the cgroup cannot be made.
    pub fn open(settings: CgroupSettings) -> Result<Self, PodCgroupError> {
        let root = PathBuf::from(settings.names.root());
        let open = || {
            let tree = CgroupManager::discover(&root)?;
            if !settings.is_run_mode {
                tree.create_root()?;
            }
            Ok::<_, CgroupError>(tree)
        };
        let tree = open().map_err(failed("use the cgroups below", &root))?;
        Ok(Self(Arc::new(PodCgroupManager {
            tree,
            settings,
            members: Guarded::default(),
            pool: BlockingPool::new(BlockingKind::Cgroups),
        })))
    }

    async fn blocking<T: Send + 'static>(
        &self,
        object: &str,
        work: impl FnOnce(&PodCgroupManager) -> Result<T, PodCgroupError> + Send + 'static,
    ) -> Result<T, PodCgroupError> {
        let groups = Arc::clone(&self.0);
        let panicked = failed("work in", self.0.tree.root());
        self.0.pool.run(object, move || work(&groups), panicked).await
    }
}

#[async_trait]
impl Cgroups for HostCgroups {
    async fn ensure(&self, pod: &Pod) -> Result<(), PodCgroupError> {
        let pod = pod.clone();
        let object = pod.uid();
        self.blocking(object.as_str(), move |groups| groups.ensure(&pod)).await
    }

    async fn update(&self, pod: &Pod) -> Result<bool, PodCgroupError> {
        let pod = pod.clone();
        let object = pod.uid();
        self.blocking(object.as_str(), move |groups| groups.update(&pod)).await
    }

    async fn remove(&self, pod: &PodUid) -> Result<(), PodCgroupError> {
        let uid = pod.clone();
        self.blocking(pod.as_str(), move |groups| groups.remove(&uid)).await
    }

    async fn pods(&self) -> Result<BTreeSet<PodUid>, PodCgroupError> {
        self.blocking("", PodCgroupManager::pods).await
    }
}

#[derive(Debug)]
struct PodCgroupManager {
    tree: CgroupManager,
    settings: CgroupSettings,
    /// The pods that have a cgroup: the weight of a QoS class is the sum over its pods. Locked while the few values are written, so that the
    /// last sum that is computed is the last that is written; never across an await.
    members: Guarded<BTreeMap<PodUid, QosCpuClaim>>,
    pool: BlockingPool,
}

impl PodCgroupManager {
    /// Makes a pod's group and those above it.
    fn ensure(&self, pod: &Pod) -> Result<(), PodCgroupError> {
        self.add_member(pod)?;
        let group = PathBuf::from(self.settings.names.of_pod(pod));
        self.set(&group, &pod_cgroup(pod, &self.settings.resources))
    }

    /// Sets the values of a pod's group, if it is there.
    fn update(&self, pod: &Pod) -> Result<bool, PodCgroupError> {
        let group = PathBuf::from(self.settings.names.of_pod(pod));
        if !self.tree.exists(&group) {
            return Ok(false);
        }
        self.add_member(pod)?;
        let values = pod_cgroup(pod, &self.settings.resources);
        self.tree.apply(&group, &values).map_err(failed("update the cgroup", &group))?;
        Ok(true)
    }

    /// Counts a pod for the weights of the QoS classes, whose groups and those above them this makes.
    fn add_member(&self, pod: &Pod) -> Result<(), PodCgroupError> {
        let mut members = self.members.lock();
        let claim = QosCpuClaim::of(pod);
        if members.get(&pod.uid()) != Some(&claim) {
            let root = self.tree.root();
            self.tree.create_root().map_err(failed("make the cgroup", root))?;
            members.insert(pod.uid(), claim);
            if let Err(error) = self.set_class_weights(&members) {
                // The next try computes the weights again.
                members.remove(&pod.uid());
                return Err(error);
            }
        }
        Ok(())
    }

    /// Kills what still runs in a pod's group, and removes it.
    fn remove(&self, uid: &PodUid) -> Result<(), PodCgroupError> {
        for group in self.candidate_paths(uid) {
            self.tree.destroy(&group).map_err(failed("remove the cgroup", &group))?;
        }
        let mut members = self.members.lock();
        match members.remove(uid) {
            _ if members.is_empty() => self.remove_parents(),
            Some(_) => self.set_class_weights(&members),
            None => Ok(()),
        }
    }

    /// Removes the groups around those of pods if they are empty: there may be pods that are not in `members` yet.
    fn remove_parents(&self) -> Result<(), PodCgroupError> {
        let classes = [QosClass::Burstable, QosClass::BestEffort]
            .map(|class| self.settings.names.class(class));
        let root = self.settings.is_run_mode.then(|| self.settings.names.root());
        for group in classes.into_iter().chain([self.settings.names.all_pods()]).chain(root) {
            let group = PathBuf::from(group);
            self.tree.remove_if_empty(&group).map_err(failed("remove the cgroup", &group))?;
        }
        Ok(())
    }

    /// Pods that have a group.
    fn pods(&self) -> Result<BTreeSet<PodUid>, PodCgroupError> {
        let found = self.tree.pods_below(&self.settings.names);
        let failed = failed("list the cgroups below", self.tree.root());
        Ok(found.map_err(failed)?.into_keys().collect())
    }

    /// The possible paths of a pod's group: the QoS class of a pod that is gone is not known.
    fn candidate_paths(&self, uid: &PodUid) -> [PathBuf; 3] {
        let classes = [QosClass::Guaranteed, QosClass::Burstable, QosClass::BestEffort];
        classes.map(|class| PathBuf::from(self.settings.names.pod(class, uid)))
    }

    /// Sets the weights of the QoS classes' groups to those of their pods.
    fn set_class_weights(
        &self,
        members: &BTreeMap<PodUid, QosCpuClaim>,
    ) -> Result<(), PodCgroupError> {
        for class in [QosClass::Burstable, QosClass::BestEffort] {
            let group = PathBuf::from(self.settings.names.class(class));
            self.set(&group, &qos_cgroup(class, members.values(), &self.settings.resources))?;
        }
        Ok(())
    }

    fn set(&self, group: &Path, values: &CgroupValues) -> Result<(), PodCgroupError> {
        self.tree.create(group, values).map_err(failed("make the cgroup", group))
    }
}
