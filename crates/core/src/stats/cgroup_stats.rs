//! The numbers of one control group at one moment, of either version of cgroups.

use crate::time::Now;

use super::pressure::Pressure;

/// What the kernel tells of one control group and all below it.
#[derive(Clone, Debug, PartialEq)]
pub struct CgroupStats {
    /// When it was read.
    pub at: Now,
    /// CPU time.
    pub cpu: Option<CpuUsage>,
    /// How often its quota held it up.
    pub throttling: Option<CpuThrottling>,
    /// Its share of the CPUs.
    pub cpu_limits: Option<CpuLimits>,
    /// Memory.
    pub memory: Option<MemoryUsage>,
    /// Processes that the kernel has killed for lack of memory.
    pub oom_kills: Option<u64>,
    /// Processes of the group itself.
    pub processes: Option<u64>,
    /// Threads, those of groups below it included.
    pub threads: Option<u64>,
    /// The most threads it may have; zero for no limit.
    pub max_threads: Option<u64>,
    /// Reads and writes of block devices.
    pub io: Vec<DeviceIo>,
    /// How long tasks waited for CPU, memory and devices.
    pub pressure: CgroupPressure,
}

pub(super) const NANOS_PER_SECOND: f64 = 1e9;

impl CgroupStats {
    /// A reading without any number yet.
    pub fn at(at: Now) -> Self {
        Self {
            at,
            cpu: None,
            throttling: None,
            cpu_limits: None,
            memory: None,
            oom_kills: None,
            processes: None,
            threads: None,
            max_threads: None,
            io: Vec::new(),
            pressure: CgroupPressure::default(),
        }
    }

    /// One number of its memory, as metrics have it.
    pub(super) fn of_memory(&self, value: fn(&MemoryUsage) -> Option<u64>) -> Option<f64> {
        value(&self.memory?).map(|bytes| bytes as f64)
    }
}

/// CPU time since the group was made, in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CpuUsage {
    /// On all CPUs together.
    pub total: u64,
    /// In user mode, where it was read.
    pub user: Option<u64>,
    /// In the kernel, where it was read.
    pub system: Option<u64>,
}

/// How often a CPU quota held a group up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CpuThrottling {
    /// Periods in which it had something to run.
    pub periods: u64,
    /// Those in which its quota was used up.
    pub throttled_periods: u64,
    /// How long its tasks waited then, in nanoseconds.
    pub throttled: u64,
}

/// The share of the CPUs that a group has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CpuLimits {
    /// Its weight, in shares of v1.
    pub shares: Option<u64>,
    /// The period of the quota, in microseconds.
    pub period: Option<u64>,
    /// CPU time in each period, in microseconds; none for no limit.
    pub quota: Option<u64>,
}

/// The memory of a group, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MemoryUsage {
    /// All that is charged to it.
    pub usage: u64,
    /// File pages that have not been used for some time: the kernel takes them first.
    pub inactive_file: u64,
    /// Anonymous memory.
    pub rss: u64,
    /// Pages of files.
    pub cache: u64,
    /// Pages of files that processes have mapped.
    pub mapped_file: u64,
    /// What is swapped out.
    pub swap: u64,
    /// The most it may have; none for no limit.
    pub limit: Option<u64>,
    /// The most it may swap; none for no limit, or where it was not read.
    pub swap_limit: Option<u64>,
    /// The most it ever had; v1 only.
    pub max_usage: Option<u64>,
    /// How often it reached its limit.
    pub fail_count: Option<u64>,
    /// Page faults of the group itself; on v2, of those below it, too.
    pub page_faults: u64,
    /// Those of them that read from a device.
    pub major_page_faults: u64,
    /// Page faults of the group and of all below it.
    pub total_page_faults: u64,
    /// Those of them that read from a device.
    pub total_major_page_faults: u64,
}

impl MemoryUsage {
    /// What the kernel cannot simply take away.
    pub fn working_set(&self) -> u64 {
        self.usage.saturating_sub(self.inactive_file)
    }
}

/// The number of a block device: major and minor.
pub type DeviceNumber = (u32, u32);

/// What a group has read from a block device and written to it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DeviceIo {
    /// The device.
    pub device: DeviceNumber,
    /// Bytes that were read.
    pub read_bytes: u64,
    /// Bytes that were written.
    pub written_bytes: u64,
    /// Read requests.
    pub reads: u64,
    /// Write requests.
    pub writes: u64,
}

/// How long tasks of a group waited. None where the kernel does not tell, as on v1.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct CgroupPressure {
    /// For a CPU.
    pub cpu: Option<Pressure>,
    /// For memory.
    pub memory: Option<Pressure>,
    /// For block devices.
    pub io: Option<Pressure>,
}
