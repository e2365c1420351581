//! What the control groups of pods are called, under either driver, and whose group a name is.
//!
//! A path here is absolute within a hierarchy, and exactly what a runtime is given as the parent of
//! a pod's groups.

use k8s_openapi::api::core::v1::Pod;

use crate::ids::PodUid;
use crate::pod::PodExt;
use crate::qos::{self, QosClass};

const ALL_PODS: &str = "kubepods";
const POD_PREFIX: &str = "pod";
const SLICE: &str = ".slice";

/// What creates cgroups, which decides on their names. The runtime and the agent must agree.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CgroupDriver {
    /// Directories are made in the file system: a name for each.
    #[default]
    Cgroupfs,
    /// systemd makes them as slices: each has the names of all above it in its own.
    Systemd,
}

/// The names of all groups below one root.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CgroupNames {
    driver: CgroupDriver,
    /// The parts of the root's name, top first; none for the root of the hierarchy.
    root: Vec<String>,
}

impl CgroupNames {
    /// Names below `root`, an absolute path; for systemd it may be the path of a slice.
    pub fn new(driver: CgroupDriver, root: &str) -> Self {
        let mut parts = root.split('/').filter(|part| !part.is_empty());
        let root = match (driver, root.trim_end_matches('/').strip_suffix(SLICE)) {
            (CgroupDriver::Systemd, Some(_)) => {
                parts_of_slice(parts.next_back().unwrap_or_default())
            }
            _ => parts.map(str::to_owned).collect(),
        };
        Self { driver, root }
    }

    /// The group below which all of ours are.
    pub fn root(&self) -> String {
        self.path(&[])
    }

    /// The group of all pods; of guaranteed ones it is the parent.
    pub fn all_pods(&self) -> String {
        self.path(&[ALL_PODS])
    }

    /// The parent of the pods of a class.
    pub fn class(&self, class: QosClass) -> String {
        self.path(&Self::class_parts(class))
    }

    /// The group of the pod with that UID and class.
    pub fn pod(&self, class: QosClass, uid: &PodUid) -> String {
        let own = format!("{POD_PREFIX}{uid}");
        let mut parts = Self::class_parts(class);
        parts.push(&own);
        self.path(&parts)
    }

    /// The group of a pod.
    pub fn of_pod(&self, pod: &Pod) -> String {
        self.pod(qos::class(pod), &pod.uid())
    }

    /// The parents that pods' groups may be in.
    pub fn parents(&self) -> [String; 3] {
        [QosClass::Guaranteed, QosClass::Burstable, QosClass::BestEffort].map(|c| self.class(c))
    }

    /// The UID of the pod whose group is called so, without the path to it.
    pub fn pod_uid(&self, directory: &str) -> Option<PodUid> {
        let uid = match self.driver {
            CgroupDriver::Cgroupfs => directory.strip_prefix(POD_PREFIX)?.to_owned(),
            CgroupDriver::Systemd => {
                let last = parts_of_slice(directory.strip_suffix(SLICE)?).pop()?;
                last.strip_prefix(POD_PREFIX)?.to_owned()
            }
        };
        (!uid.is_empty()).then(|| PodUid::from(uid))
    }

    fn class_parts(class: QosClass) -> Vec<&'static str> {
        match class {
            QosClass::Guaranteed => vec![ALL_PODS],
            QosClass::Burstable => vec![ALL_PODS, "burstable"],
            QosClass::BestEffort => vec![ALL_PODS, "besteffort"],
        }
    }

    fn path(&self, below: &[&str]) -> String {
        let parts: Vec<&str> = self.root.iter().map(String::as_str).chain(below.to_vec()).collect();
        match self.driver {
            CgroupDriver::Cgroupfs => format!("/{}", parts.join("/")),
            CgroupDriver::Systemd => expanded(&parts),
        }
    }
}

/// The path of a slice: `a`, `b` are `/a.slice/a-b.slice`. A dash within a part would read as one
/// between parts, so it becomes an underscore.
fn expanded(parts: &[&str]) -> String {
    let escaped: Vec<String> = parts.iter().map(|part| part.replace('-', "_")).collect();
    let slice = |depth: usize| {
        let names: Vec<&str> = escaped.iter().take(depth).map(String::as_str).collect();
        format!("{}{SLICE}", names.join("-"))
    };
    let slices: Vec<String> = (1..=escaped.len()).map(slice).collect();
    format!("/{}", slices.join("/"))
}

/// The parts that a slice's name is made of.
fn parts_of_slice(name: &str) -> Vec<String> {
    let name = name.strip_suffix(SLICE).unwrap_or(name);
    name.split('-').filter(|part| !part.is_empty()).map(|part| part.replace('_', "-")).collect()
}
