//! Facts about this machine that matter to the embedded runtime only.

use std::path::Path;

use oarsman_host::cgroups::hierarchies;
use oarsman_host::{device_control, mounts};
use oarsman_pod_network::{NetworkFinding, find_obstacles};

use crate::runtime_endpoint::embedded_directory;

/// What the embedded runtime would find here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct EmbeddedRuntimeFacts {
    /// What stands in the way of pods' packets, or why the kernel does not tell.
    pub(crate) obstacles: Result<Vec<NetworkFinding>, String>,
    /// Why it could not be controlled which devices containers use.
    pub(crate) uncontrolled_devices: Option<String>,
}

impl EmbeddedRuntimeFacts {
    /// Of an agent with that root directory.
    pub(super) fn read(root: &Path) -> Self {
        // Before the first start there is no directory, and names follow from the path without links.
        let directory = embedded_directory(root);
        let directory = directory.canonicalize().unwrap_or(directory);
        Self {
            obstacles: find_obstacles(&directory).map_err(|error| error.to_string()),
            uncontrolled_devices: find_uncontrolled_devices(),
        }
    }
}

/// Without a tree of version 1 for devices it takes a program in the kernel. One is tried, and attached to nothing.
fn find_uncontrolled_devices() -> Option<String> {
    let all = hierarchies(&mounts::current().unwrap_or_default());
    let is_controlled = !device_control::takes_programs(&all);
    if is_controlled { None } else { device_control::probe().err().map(|error| error.to_string()) }
}
