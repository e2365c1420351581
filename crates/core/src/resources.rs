//! What a pod asks for, turned into the numbers that runtimes and control groups take.
//!
//! Runtimes get them in CRI messages, a container and a sandbox at a time; the groups of pods and
//! of their classes are ours to write, and [`names`] says how they are called.

pub mod amounts;
mod container;
mod cpu;
mod groups;
pub mod hugepages;
pub mod names;
mod oom;
mod sandbox;
#[cfg(test)]
mod tests;
mod totals;

use std::time::Duration;

pub use container::container;
pub use cpu::{MAX_SHARES, MIN_SHARES, quota, shares, weight};
pub use groups::{
    CgroupValues, CpuQuota, QosCpuClaim, memory_volume_size, pod_cgroup, qos_cgroup,
    qos_cgroup_shares,
};
pub use oom::oom_score_adj;
pub use sandbox::{SandboxResources, sandbox};
pub use totals::{pod_limits, pod_requests};

/// Which kind of control groups limits are set in. A hybrid machine, whose controllers are in v1
/// trees, counts as v1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CgroupVersion {
    /// A tree for each controller.
    V1,
    /// One tree for all.
    V2,
}

/// What containers may do with the node's swap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Swap {
    /// The kernel does not limit swap, so we cannot either.
    Unlimitable,
    /// No container may swap.
    Forbidden,
    /// On v2, burstable containers swap in proportion to the memory they request.
    Limited {
        /// The swap of the whole node, in bytes.
        capacity: u64,
    },
}

/// What the numbers depend on besides the pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeResources {
    /// The memory of the machine in bytes.
    pub machine_memory: u64,
    /// Whether CPU limits are enforced at all.
    pub cfs_quota: bool,
    /// The period over which CPU limits are enforced.
    pub cfs_period: Duration,
    /// The sizes of huge pages the machine has, in bytes.
    pub hugepage_sizes: Vec<u64>,
    /// Where limits are set.
    pub cgroups: CgroupVersion,
    /// Whether running out of memory kills one process rather than the whole container; it does
    /// on v1, whatever is said here.
    pub single_process_oom_kill: bool,
    /// What containers may do with swap.
    pub swap: Swap,
    /// How many processes a pod may have.
    pub pod_pids_limit: Option<u64>,
    /// No OOM score adjustment below this is asked for: without CAP_SYS_RESOURCE the kernel
    /// refuses any below the one that the agent, and so the runtime beside it, was started with.
    pub lowest_oom_score_adj: i64,
}

impl NodeResources {
    /// A v2 machine with that much memory, and every setting as it is by default.
    pub fn of_memory(bytes: u64) -> Self {
        Self {
            machine_memory: bytes,
            cfs_quota: true,
            cfs_period: Duration::from_millis(100),
            hugepage_sizes: Vec::new(),
            cgroups: CgroupVersion::V2,
            single_process_oom_kill: false,
            swap: Swap::Forbidden,
            pod_pids_limit: None,
            lowest_oom_score_adj: -1000,
        }
    }

    /// The period in microseconds, as the kernel takes it.
    fn period_micros(&self) -> i64 {
        i64::try_from(self.cfs_period.as_micros()).unwrap_or(i64::MAX)
    }
}
