//! What of the node goes into CRI messages.

use std::collections::BTreeMap;
use std::path::Path;

use super::dns::NodeDns;
use crate::node::NodeFacts;
use crate::quantity::Quantity;
use crate::resources::NodeResources;
use crate::resources::names::{CgroupDriver, CgroupNames};

/// The node that sandbox and container configs are made for.
#[derive(Clone, Copy, Debug)]
pub struct NodeContext<'a> {
    /// The root directory of the agent: its mark on what it makes, and where its pods' directories lie.
    pub root: &'a str,
    /// Where pods' log directories lie.
    pub pod_logs: &'a Path,
    /// What of the node goes into every status, too.
    pub facts: &'a NodeFacts,
    /// What else of the node goes into every pod.
    pub settings: &'a NodeSettings,
    /// The files by which the node resolves names, as they are now.
    pub name_files: &'a NameFiles,
}

/// The files by which the node resolves names. They change while the agent runs, so they are read for each pod.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NameFiles {
    /// The text of the node's resolv.conf; none when pods do not get it (`resolvConf` is empty).
    pub resolv_conf: Option<String>,
    /// The text of the node's `/etc/hosts`, which pods of its network read.
    pub hosts: String,
}

/// What of a node goes into every pod that runs on it.
#[derive(Clone, Debug, PartialEq)]
pub struct NodeSettings {
    /// What numbers depend on.
    pub resources: NodeResources,
    /// What pods' control groups are called.
    pub cgroups: CgroupNames,
    /// How names are resolved.
    pub dns: NodeDns,
    /// Confines every container that does not say otherwise by the runtime's own seccomp profile.
    pub seccomp_default: bool,
    /// Files of this machine that containers should not see besides those that no machine shows: those of
    /// `/sys/devices/system/cpu/cpuN/thermal_throttle` that exist.
    pub masked_paths: Vec<String>,
    /// Whether SELinux guards this machine.
    pub selinux: bool,
    /// What the node has for pods, by resource.
    pub allocatable: BTreeMap<String, Quantity>,
}

impl NodeSettings {
    /// A node with that much memory in bytes, and every setting as it is by default.
    pub fn of_memory(bytes: u64) -> Self {
        Self {
            resources: NodeResources::of_memory(bytes),
            cgroups: CgroupNames::new(CgroupDriver::default(), "/"),
            dns: NodeDns::default(),
            seccomp_default: false,
            masked_paths: Vec::new(),
            selinux: false,
            allocatable: BTreeMap::new(),
        }
    }
}
