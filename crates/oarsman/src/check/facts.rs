//! What is the case on this machine: read, asked and measured, judged by others.

pub(super) mod cgroups;
pub(super) mod kernel;
pub(super) mod limits;
pub(super) mod permissions;
pub(super) mod places;
pub(super) mod ports;
pub(super) mod resolver;
pub(super) mod root;
pub(super) mod runtime;

use std::fs;
use std::path::Path;

use jiff::Timestamp;
use oarsman_clock::Clock;

use super::plan::Plan;
use crate::machine::swap::{self, Swap};

/// Everything that was found.
#[derive(Clone, Debug)]
pub(super) struct Facts {
    pub(super) runtime: runtime::Runtime,
    pub(super) cgroups: cgroups::Cgroups,
    pub(super) swaps: Vec<Swap>,
    pub(super) ports: Vec<ports::Port>,
    pub(super) kernel: kernel::Kernel,
    pub(super) permissions: permissions::Permissions,
    pub(super) places: Vec<places::Place>,
    pub(super) memory: places::Memory,
    pub(super) now: Timestamp,
    pub(super) host_name: String,
    pub(super) root: root::Root,
    pub(super) resolver: Option<resolver::Resolver>,
    pub(super) limits: limits::Limits,
}

impl Facts {
    /// Looks at this machine.
    pub(super) async fn gather(plan: &Plan, clock: &dyn Clock) -> Self {
        Self {
            runtime: runtime::Runtime::ask(plan).await,
            cgroups: cgroups::Cgroups::look(),
            swaps: swap::parse(&text("/proc/swaps")),
            ports: ports::look(&plan.ports),
            kernel: kernel::Kernel::look(),
            permissions: permissions::Permissions::look(),
            places: places::look(plan),
            memory: places::Memory::parse(&text("/proc/meminfo")),
            now: clock.wall(),
            host_name: rustix::system::uname().nodename().to_string_lossy().into_owned(),
            root: root::Root::look(&plan.root),
            resolver: plan.resolv_conf.as_deref().map(resolver::Resolver::look),
            limits: limits::Limits::look(),
        }
    }
}

/// What a file of the kernel says; nothing where this kernel has no such file.
fn text(path: impl AsRef<Path>) -> String {
    fs::read_to_string(path).unwrap_or_default()
}

/// A file of the kernel that holds one number.
fn number(path: impl AsRef<Path>) -> Option<i64> {
    text(path).trim().parse().ok()
}
