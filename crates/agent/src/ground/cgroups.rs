//! The cgroups of pods and of their classes.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use k8s_openapi::api::core::v1::Pod;
use oarsman_core::ids::PodUid;
use oarsman_core::pod::PodExt;
use oarsman_core::qos::QosClass;
use oarsman_core::resources::names::CgroupNames;
use oarsman_core::resources::{CgroupValues, Claim, NodeResources, pod_cgroup, qos_cgroup};
use oarsman_host::cgroups::{CgroupError, Cgroups};

use super::Settings;
use crate::files::failed;
use crate::seams::DiskError;

/// All groups of this agent.
pub(super) struct Groups {
    cgroups: Cgroups,
    names: CgroupNames,
    resources: NodeResources,
    /// Whether the group around all is the agent's own, and goes when there is nothing in it.
    is_guest: bool,
    /// The pods that have a group: the weight of a class is that of its pods together. Never held over a wait, but over the
    /// writing of a few values, so that the last to count is the last to write.
    members: Mutex<BTreeMap<PodUid, Claim>>,
}

impl fmt::Debug for Groups {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Groups").field("names", &self.names).finish_non_exhaustive()
    }
}

impl Groups {
    pub(super) fn open(settings: &Settings) -> Result<Self, DiskError> {
        let (names, resources) = (settings.cgroups.clone(), settings.resources.clone());
        let root = PathBuf::from(names.root());
        let open = || {
            let cgroups = Cgroups::discover(&root)?;
            // A guest's own is made for its first pod, and goes with its last.
            if !settings.is_guest {
                cgroups.make_root()?;
            }
            Ok::<_, CgroupError>(cgroups)
        };
        let cgroups = open().map_err(failed("use the cgroups below", &root))?;
        let is_guest = settings.is_guest;
        Ok(Self { cgroups, names, resources, is_guest, members: Mutex::default() })
    }

    /// Makes a pod's group and those above it.
    pub(super) fn make(&self, pod: &Pod) -> Result<(), DiskError> {
        let mut members = self.members.lock().unwrap_or_else(PoisonError::into_inner);
        let claim = Claim::of(pod);
        if members.get(&pod.uid()) != Some(&claim) {
            let root = self.cgroups.root();
            self.cgroups.make_root().map_err(failed("make the cgroup", root))?;
            members.insert(pod.uid(), claim);
            if let Err(error) = self.weigh(&members) {
                // Whoever tries again weighs again.
                members.remove(&pod.uid());
                return Err(error);
            }
        }
        let group = PathBuf::from(self.names.of_pod(pod));
        self.set(&group, &pod_cgroup(pod, &self.resources))
    }

    pub(super) fn has(&self, uid: &PodUid) -> bool {
        self.may_be(uid).iter().any(|group| self.cgroups.exists(group))
    }

    /// Ends what still runs in a pod's group, and removes it.
    pub(super) fn destroy(&self, uid: &PodUid) -> Result<(), DiskError> {
        for group in self.may_be(uid) {
            self.cgroups.destroy(&group).map_err(failed("remove the cgroup", &group))?;
        }
        let mut members = self.members.lock().unwrap_or_else(PoisonError::into_inner);
        match members.remove(uid) {
            _ if members.is_empty() => self.vacate(),
            Some(_) => self.weigh(&members),
            None => Ok(()),
        }
    }

    /// Removes the groups around those of pods, unless there are pods after all that nobody has told of yet.
    fn vacate(&self) -> Result<(), DiskError> {
        let classes =
            [QosClass::Burstable, QosClass::BestEffort].map(|class| self.names.class(class));
        let root = self.is_guest.then(|| self.names.root());
        for group in classes.into_iter().chain([self.names.all_pods()]).chain(root) {
            let group = PathBuf::from(group);
            self.cgroups.remove_if_empty(&group).map_err(failed("remove the cgroup", &group))?;
        }
        Ok(())
    }

    /// Pods that have a group.
    pub(super) fn pods(&self) -> Result<BTreeSet<PodUid>, DiskError> {
        let found = self.cgroups.pods_below(&self.names);
        let failed = failed("list the cgroups below", self.cgroups.root());
        Ok(found.map_err(failed)?.into_keys().collect())
    }

    /// Where a pod's group may be: of a pod that is gone, nobody remembers the class.
    fn may_be(&self, uid: &PodUid) -> [PathBuf; 3] {
        let classes = [QosClass::Guaranteed, QosClass::Burstable, QosClass::BestEffort];
        classes.map(|class| PathBuf::from(self.names.pod(class, uid)))
    }

    /// Gives the groups of the classes the weight of their pods.
    fn weigh(&self, members: &BTreeMap<PodUid, Claim>) -> Result<(), DiskError> {
        for class in [QosClass::Burstable, QosClass::BestEffort] {
            let group = PathBuf::from(self.names.class(class));
            self.set(&group, &qos_cgroup(class, members.values(), &self.resources))?;
        }
        Ok(())
    }

    fn set(&self, group: &Path, values: &CgroupValues) -> Result<(), DiskError> {
        self.cgroups.make(group, values).map_err(failed("make the cgroup", group))
    }
}
