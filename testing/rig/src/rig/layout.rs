//! The paths, addresses and names of a rig.

use std::ffi::OsString;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};

use anyhow::Result;
use oarsman_host::{cgroups, mounts};

use super::cni::NETWORK;
use super::flavour::ContainerdFlavour;
use crate::run::{RigRun, make_directory};

/// The first port of containerds' metrics; a rig's is above it by its number.
const METRICS: u16 = 1338;

/// The paths and names of one rig.
#[derive(Debug, Clone)]
pub(crate) struct RigLayout {
    directory: PathBuf,
    number: u8,
    group_prefix: String,
    flavour: ContainerdFlavour,
}

impl RigLayout {
    /// Makes the directories and the cgroup parent of the run's rig of that number.
    pub(super) fn create(run: &RigRun, number: u8, flavour: ContainerdFlavour) -> Result<Self> {
        let directory = run.directory().join(number.to_string());
        let layout = Self { directory, number, group_prefix: run.group_prefix(), flavour };
        make_directory(&layout.directory)?;
        for directory in [
            layout.root(),
            layout.state(),
            layout.registries(),
            layout.cni_configuration(),
            layout.logs(),
            layout.agents(),
        ] {
            make_directory(&directory)?;
        }
        if flavour.shim_sockets().is_none() {
            make_directory(&layout.shim_sockets())?;
        }
        layout.create_groups()?;
        Ok(layout)
    }

    /// Makes the cgroup parent.
    pub(super) fn create_groups(&self) -> Result<()> {
        for hierarchy in cgroups::hierarchies(&mounts::current()?) {
            hierarchy.create(&self.cgroup_parent())?;
        }
        Ok(())
    }

    pub(crate) fn directory(&self) -> &Path {
        &self.directory
    }

    /// The number of the rig within its run.
    pub(crate) fn number(&self) -> u8 {
        self.number
    }

    pub(crate) fn flavour(&self) -> ContainerdFlavour {
        self.flavour
    }

    /// Whether these are the arguments of the process that serves CRI.
    pub(crate) fn is_runtime(&self, arguments: &[OsString]) -> bool {
        let has = |wanted: &Path| arguments.iter().any(|argument| *argument == *wanted);
        match self.flavour {
            ContainerdFlavour::OarsmanCri => {
                arguments.get(1).is_some_and(|command| command == "cri") && has(&self.socket())
            }
            _ => has(&self.config()),
        }
    }

    pub(crate) fn config(&self) -> PathBuf {
        self.directory.join("config.toml")
    }

    pub(crate) fn log(&self) -> PathBuf {
        self.directory.join("containerd.log")
    }

    pub(crate) fn root(&self) -> PathBuf {
        self.directory.join("root")
    }

    pub(crate) fn state(&self) -> PathBuf {
        self.directory.join("state")
    }

    pub(crate) fn socket(&self) -> PathBuf {
        self.directory.join("containerd.sock")
    }

    /// The address of containerd's metrics.
    pub(crate) fn metrics(&self) -> SocketAddr {
        (Ipv4Addr::LOCALHOST, METRICS + u16::from(self.number)).into()
    }

    /// containerd wants this path to be 42 characters at most.
    pub(crate) fn shim_sockets(&self) -> PathBuf {
        self.flavour.shim_sockets().map_or_else(|| self.directory.join("s"), PathBuf::from)
    }

    pub(crate) fn runc_root(&self) -> PathBuf {
        self.directory.join("runc")
    }

    pub(crate) fn registries(&self) -> PathBuf {
        self.directory.join("registries")
    }

    pub(crate) fn cni_configuration(&self) -> PathBuf {
        self.directory.join("cni")
    }

    pub(crate) fn leases(&self) -> PathBuf {
        self.directory.join("leases")
    }

    pub(crate) fn leases_of_network(&self) -> PathBuf {
        self.leases().join(NETWORK)
    }

    pub(crate) fn logs(&self) -> PathBuf {
        self.directory.join("logs")
    }

    pub(crate) fn agents(&self) -> PathBuf {
        self.directory.join("agents")
    }

    /// Archives of images, on a rig without containerd.
    pub(crate) fn archives(&self) -> PathBuf {
        self.directory.join("archives")
    }

    pub(crate) fn cgroup_parent(&self) -> PathBuf {
        format!("/{}-{}", self.group_prefix, self.number).into()
    }

    /// The beginning of the names of all control groups of the run, without a slash.
    pub(crate) fn group_prefix(&self) -> &str {
        &self.group_prefix
    }

    pub(crate) fn bridge(&self) -> String {
        format!("oarsman{}", self.number)
    }

    /// The pods' addresses; the bridge has the first one.
    pub(crate) fn subnet(&self) -> String {
        format!("10.77.{}.0/24", self.number)
    }
}
