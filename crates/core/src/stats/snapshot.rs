//! Everything that was measured of a node at one moment, from which each endpoint takes its part.

use std::collections::BTreeMap;

use jiff::Timestamp;

use crate::disk_usage::DiskUsage;
use crate::ids::{FullName, PodUid};

use super::cgroup_stats::{CgroupStats, DeviceNumber};
use super::file_systems::FileSystemStats;
use super::proc_files::{InterfaceCounters, MemoryInfo};

/// How much of each control group is read. A higher level has all of the lower ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum StatsDetail {
    /// CPU time and memory.
    CpuAndMemory,
    /// With processes and pressure.
    Summary,
    /// All files that metrics are made of.
    All,
}

/// For which endpoint is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StatsScope {
    /// `/metrics/resource`.
    Resources,
    /// `/stats/summary?only_cpu_and_memory=true`: with CPU rates.
    CpuAndMemory,
    /// `/metrics/cadvisor`.
    Containers,
    /// `/stats/summary`: with CPU rates, volumes, logs and writable layers.
    Summary,
}

impl StatsScope {
    /// What is read of each control group.
    pub fn detail(self) -> StatsDetail {
        match self {
            Self::Resources | Self::CpuAndMemory => StatsDetail::CpuAndMemory,
            Self::Summary => StatsDetail::Summary,
            Self::Containers => StatsDetail::All,
        }
    }

    /// Whether the CPU rate of each group is shown.
    pub fn has_rates(self) -> bool {
        matches!(self, Self::CpuAndMemory | Self::Summary)
    }

    /// Whether network counters and sizes of file systems are shown.
    pub fn has_networks(self) -> bool {
        matches!(self, Self::Containers | Self::Summary)
    }

    /// Whether what was measured for this one is enough for another.
    pub fn covers(self, other: Self) -> bool {
        self == other
            || other == Self::Resources
            || (self == Self::Summary && other == Self::CpuAndMemory)
    }
}

/// A node at one moment.
#[derive(Clone, Debug, PartialEq)]
pub struct StatsSnapshot {
    /// When its first number was read.
    pub at: Timestamp,
    /// The node's name.
    pub node_name: String,
    /// The machine as a whole.
    pub machine: MachineStats,
    /// The root group of the machine.
    pub root: Option<MeasuredCgroup>,
    /// The groups around those of pods: of all pods and of QoS classes.
    pub groups: Vec<MeasuredCgroup>,
    /// Groups of daemons, and that of all pods again.
    pub system: Vec<SystemContainer>,
    /// Pods that have a group.
    pub pods: Vec<MeasuredPod>,
    /// The file system of the root directory.
    pub node_fs: Option<FileSystemStats>,
    /// The file system of images, and what images take of it.
    pub image_fs: Option<(FileSystemStats, Option<DiskUsage>)>,
    /// The file system of writable layers, and what they take of it.
    pub container_fs: Option<(FileSystemStats, Option<DiskUsage>)>,
}

/// The machine as a whole.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct MachineStats {
    /// CPUs that are online.
    pub cores: u32,
    /// Memory and swap.
    pub memory: MemoryInfo,
    /// When it was started.
    pub started: Option<Timestamp>,
    /// The highest process id, or number of threads.
    pub max_pid: Option<u64>,
    /// Tasks that exist.
    pub tasks: Option<u64>,
    /// Its own interfaces.
    pub interfaces: Vec<InterfaceCounters>,
    /// The names of block devices.
    pub devices: BTreeMap<DeviceNumber, String>,
}

/// A control group and its numbers.
#[derive(Clone, Debug, PartialEq)]
pub struct MeasuredCgroup {
    /// Its absolute path within the hierarchies.
    pub path: String,
    /// What was read.
    pub stats: CgroupStats,
    /// CPU nanoseconds in each second of the last window.
    pub nano_cores: Option<u64>,
    /// Since when it exists, as far as that is known.
    pub started: Option<Timestamp>,
}

/// The group of a daemon, under the name that the summary gives it.
#[derive(Clone, Debug, PartialEq)]
pub struct SystemContainer {
    /// `kubelet`, `runtime`, `misc` or `pods`.
    pub name: &'static str,
    /// Its group.
    pub cgroup: MeasuredCgroup,
}

/// A pod.
#[derive(Clone, Debug, PartialEq)]
pub struct MeasuredPod {
    /// Its UID.
    pub uid: PodUid,
    /// Its name.
    pub name: String,
    /// Its namespace.
    pub namespace: String,
    /// Since when it is on this node.
    pub started: Option<Timestamp>,
    /// The pod's own group.
    pub cgroup: MeasuredCgroup,
    /// Its running containers, in the order of its status.
    pub containers: Vec<MeasuredContainer>,
    /// Groups below its own that are no container of its status: its sandbox.
    pub sandboxes: Vec<MeasuredCgroup>,
    /// The interfaces of its network; none for a pod on the machine's own.
    pub interfaces: Option<Vec<InterfaceCounters>>,
    /// Its emptyDir volumes, where they were counted.
    pub volumes: Option<Vec<MeasuredVolume>>,
    /// Its volumes of claims, where they were measured.
    pub claims: Vec<MeasuredClaim>,
    /// Its hosts file and termination messages, where they were counted.
    pub other_files: Option<DiskUsage>,
    /// When volumes and files were counted.
    pub counted: Option<Timestamp>,
}

/// A running container.
#[derive(Clone, Debug, PartialEq)]
pub struct MeasuredContainer {
    /// Its name in the pod.
    pub name: String,
    /// The runtime's id of it.
    pub id: String,
    /// Its image.
    pub image: String,
    /// Its group.
    pub cgroup: MeasuredCgroup,
    /// What its writable layer holds, where the runtime says so.
    pub writable_layer: Option<DiskUsage>,
    /// What its logs hold, where they were counted.
    pub logs: Option<DiskUsage>,
}

/// A volume of a claim.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MeasuredClaim {
    /// Its name in the pod.
    pub volume: String,
    /// The claim that it is of.
    pub claim: FullName,
    /// The file system that is mounted, all of which counts as the volume's.
    pub fs: FileSystemStats,
}

/// An emptyDir volume.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MeasuredVolume {
    /// Its name in the pod.
    pub name: String,
    /// What it holds.
    pub usage: DiskUsage,
    /// Its limit in bytes.
    pub size_limit: Option<u64>,
    /// Whether it is on the node's disk, and not in memory.
    pub is_on_disk: bool,
}
