//! Gathers facts about this machine: reads, queries and measures, without judging.

pub(super) mod cgroups;
pub(super) mod disk;
pub(super) mod embedded_runtime;
pub(super) mod kernel;
pub(super) mod limits;
pub(super) mod permissions;
pub(super) mod ports;
pub(super) mod resolver;
pub(super) mod root;
pub(super) mod runtime;

use std::fs;
use std::path::Path;

use jiff::Timestamp;
use oarsman_clock::Clock;

use super::requirements::Requirements;
use crate::machine::swap::{self, SwapDevice};

/// All facts that were gathered.
#[derive(Clone, Debug)]
pub(super) struct MachineFacts {
    pub(super) runtime: runtime::RuntimeSearch,
    pub(super) cgroups: cgroups::CgroupFacts,
    pub(super) swaps: Vec<SwapDevice>,
    pub(super) ports: Vec<ports::PortFacts>,
    pub(super) kernel: kernel::KernelFacts,
    pub(super) permissions: permissions::PermissionFacts,
    pub(super) directories: Vec<disk::DirectoryFacts>,
    pub(super) memory: disk::MemoryFacts,
    pub(super) now: Timestamp,
    pub(super) host_name: String,
    pub(super) root: root::RootFacts,
    pub(super) resolver: Option<resolver::ResolverFacts>,
    pub(super) limits: limits::LimitFacts,
}

impl MachineFacts {
    /// Gathers the facts.
    pub(super) async fn gather(requirements: &Requirements, clock: &dyn Clock) -> Self {
        Self {
            runtime: runtime::RuntimeSearch::ask(requirements).await,
            cgroups: cgroups::CgroupFacts::read(),
            swaps: swap::parse(&read_text("/proc/swaps")),
            ports: ports::read(&requirements.ports),
            kernel: kernel::KernelFacts::read(),
            permissions: permissions::PermissionFacts::read(),
            directories: disk::read(requirements),
            memory: disk::MemoryFacts::parse(&read_text("/proc/meminfo")),
            now: clock.wall(),
            host_name: rustix::system::uname().nodename().to_string_lossy().into_owned(),
            root: root::RootFacts::read(&requirements.root),
            resolver: requirements.resolv_conf.as_deref().map(resolver::ResolverFacts::read),
            limits: limits::LimitFacts::read(),
        }
    }
}

/// The text of a file of the kernel; empty where this kernel has no such file.
fn read_text(path: impl AsRef<Path>) -> String {
    fs::read_to_string(path).unwrap_or_default()
}

/// A file of the kernel that holds one number.
fn read_number(path: impl AsRef<Path>) -> Option<i64> {
    read_text(path).trim().parse().ok()
}
