//! Reads what the machine, its control groups and their network namespaces use: only when asked, and all of it in one pass.
//!
//! A group whose files are gone has ended; that is no error.

mod cgroup_reader;
mod cgroup_trees;
mod kernel_file;
mod machine_reader;
#[cfg(test)]
mod tests;

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use jiff::Timestamp;
use oarsman_core::stats::{
    CgroupStats, FileSystemStats, InterfaceCounters, MachineStats, PodReading, PodToMeasure,
    StatsDetail, cgroup_of_process, container_id_of_cgroup, interfaces,
};
use oarsman_core::time::{Mono, Now};
use rustix::fs::{AtFlags, CWD, StatxFlags, statvfs, statx};

use crate::blocking::{BlockingKind, BlockingPool};
use crate::cgroups::{self, CgroupError, Hierarchy};
use crate::mounts;

use cgroup_reader::CgroupReader;
use cgroup_trees::CgroupTrees;
use kernel_file::KernelFiles;
use machine_reader::MachineReader;

/// The clocks, as they are while a pass is under way.
pub type ReadClock = Arc<dyn Fn() -> Now + Send + Sync>;

/// What one pass reads.
#[derive(Clone, Debug)]
pub struct StatsPlan {
    /// How much of each group.
    pub detail: StatsDetail,
    /// Whether interfaces are read, those of pods and the machine's own.
    pub has_networks: bool,
    /// Groups around those of pods.
    pub groups: Vec<String>,
    /// Pods, each with the groups below its own.
    pub pods: Vec<PodToMeasure>,
    /// Processes whose groups are read.
    pub daemons: Vec<u32>,
}

/// What was read in one pass.
#[derive(Clone, Debug)]
pub struct NodeReading {
    /// The machine as a whole.
    pub machine: MachineStats,
    /// The root group.
    pub root: Option<CgroupStats>,
    /// The groups of the plan that exist, with the time since which they do.
    pub groups: Vec<(String, CgroupStats, Option<Timestamp>)>,
    /// The pods of the plan that have a group.
    pub pods: Vec<(PodToMeasure, PodReading)>,
    /// The groups of daemons, as far as they run, in the order of the plan.
    pub daemons: Vec<Option<(String, CgroupStats, Option<Timestamp>)>>,
}

/// Reads numbers of this machine.
#[derive(Debug)]
pub struct HostStats {
    files: Arc<StatsFiles>,
    pool: BlockingPool,
    file_systems: BlockingPool,
}

impl HostStats {
    /// Of this machine, which has so many CPUs.
    ///
    /// # Errors
    /// When its mounts cannot be read, or no control groups are mounted.
    pub fn open(cores: u32) -> Result<Self, CgroupError> {
        let mounts = mounts::current().map_err(CgroupError::Mounts)?;
        let hierarchies = cgroups::hierarchies(&mounts);
        Self::with_files(&hierarchies, Path::new("/proc"), cores).ok_or(CgroupError::NotMounted)
    }

    fn with_files(hierarchies: &[Hierarchy], proc: &Path, cores: u32) -> Option<Self> {
        let trees = CgroupTrees::of(hierarchies)?;
        Some(Self {
            files: Arc::new(StatsFiles { trees, machine: MachineReader::new(proc, cores) }),
            pool: BlockingPool::new(BlockingKind::Stats),
            file_systems: BlockingPool::new(BlockingKind::StatsFileSystems),
        })
    }

    /// Reads all of a plan in one pass.
    ///
    /// # Errors
    /// When the pass has panicked.
    pub async fn read(&self, plan: StatsPlan, clock: ReadClock) -> io::Result<NodeReading> {
        let files = Arc::clone(&self.files);
        let read = move || Ok(StatsPass::new(&files, &clock).read(plan));
        self.pool.run("stats", read, io::Error::other).await
    }

    /// Reads the CPU time of some groups once more, in nanoseconds.
    ///
    /// # Errors
    /// When the pass has panicked.
    pub async fn cpu_times(
        &self,
        groups: Vec<String>,
        clock: ReadClock,
    ) -> io::Result<Vec<(String, Mono, u64)>> {
        let files = Arc::clone(&self.files);
        let read = move || {
            let mut reader = CgroupReader::new(&files.trees);
            let mut time = |group: String| {
                let total = reader.cpu_time(&group)?;
                Some((group, clock().mono, total))
            };
            Ok(groups.into_iter().filter_map(&mut time).collect())
        };
        self.pool.run("stats", read, io::Error::other).await
    }

    /// The file system that holds a directory. The call may hang on that of a server that is gone.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub async fn file_system(&self, directory: PathBuf) -> io::Result<FileSystemStats> {
        let object = directory.display().to_string();
        let read = move || file_system(&directory);
        self.file_systems.run(&object, read, io::Error::other).await
    }
}

fn file_system(directory: &Path) -> io::Result<FileSystemStats> {
    let found = statvfs(directory)?;
    let on = statx(CWD, directory, AtFlags::empty(), StatxFlags::empty())?;
    Ok(FileSystemStats {
        device: (on.stx_dev_major, on.stx_dev_minor),
        capacity: found.f_blocks.saturating_mul(found.f_frsize),
        available: found.f_bavail.saturating_mul(found.f_frsize),
        used: found.f_blocks.saturating_sub(found.f_bfree).saturating_mul(found.f_frsize),
        inodes: found.f_files,
        inodes_free: found.f_ffree,
    })
}

/// Where the files are.
#[derive(Debug)]
struct StatsFiles {
    trees: CgroupTrees,
    machine: MachineReader,
}

/// One pass through all files, which reuses one buffer.
struct StatsPass<'a> {
    files: &'a StatsFiles,
    groups: CgroupReader<'a>,
    kernel_files: KernelFiles,
    clock: &'a ReadClock,
}

impl<'a> StatsPass<'a> {
    fn new(files: &'a StatsFiles, clock: &'a ReadClock) -> Self {
        let (groups, kernel_files) = (CgroupReader::new(&files.trees), KernelFiles::default());
        Self { files, groups, kernel_files, clock }
    }

    fn read(mut self, plan: StatsPlan) -> NodeReading {
        let detail = plan.detail;
        let machine = self.files.machine.read(&mut self.kernel_files, detail, plan.has_networks);
        self.groups.set_machine_memory(machine.memory);
        let root = self.group("/", detail);
        let mut groups = Vec::new();
        for group in plan.groups {
            let Some(stats) = self.group(&group, detail) else { continue };
            let since = self.groups.changed(&group);
            groups.push((group, stats, since));
        }
        let mut pods = Vec::new();
        for pod in plan.pods {
            if let Some(reading) = self.pod(&pod, detail, plan.has_networks) {
                pods.push((pod, reading));
            }
        }
        let daemons =
            plan.daemons.into_iter().map(|pid| self.daemon(pid, detail, &machine)).collect();
        NodeReading { machine, root, groups, pods, daemons }
    }

    fn group(&mut self, group: &str, detail: StatsDetail) -> Option<CgroupStats> {
        self.groups.read(group, detail, (self.clock)())
    }

    fn pod(
        &mut self,
        pod: &PodToMeasure,
        detail: StatsDetail,
        has_networks: bool,
    ) -> Option<PodReading> {
        let own = self.group(&pod.cgroup, detail)?;
        let mut below = Vec::new();
        for directory in self.groups.below(&pod.cgroup) {
            let path = format!("{}/{directory}", pod.cgroup);
            below.extend(self.group(&path, detail).map(|stats| (directory, stats)));
        }
        let wanted = has_networks && pod.has_network;
        let interfaces = wanted.then(|| self.interfaces(pod, &below)).flatten();
        Some(PodReading { own, below, interfaces })
    }

    /// The interfaces of a pod, by a process of its sandbox: those of containers may be in other network namespaces.
    fn interfaces(
        &mut self,
        pod: &PodToMeasure,
        below: &[(String, CgroupStats)],
    ) -> Option<Vec<InterfaceCounters>> {
        let is_container = |id: &str| pod.containers.iter().any(|container| container.id == id);
        // The monitor of a container is in the node's network namespace.
        let ids = below.iter().filter_map(|(directory, _)| {
            container_id_of_cgroup(directory).map(|id| (is_container(id), directory))
        });
        let mut groups: Vec<(bool, &String)> = ids.collect();
        groups.sort();
        let process = groups.into_iter().find_map(|(_, directory)| {
            self.groups.first_process(&format!("{}/{directory}", pod.cgroup))
        })?;
        let path = self.files.machine.of_process(process, "net/dev");
        self.kernel_files.text(&path).map(interfaces)
    }

    fn daemon(
        &mut self,
        pid: u32,
        detail: StatsDetail,
        machine: &MachineStats,
    ) -> Option<(String, CgroupStats, Option<Timestamp>)> {
        let path = self.files.machine.of_process(pid, "cgroup");
        let group = self.kernel_files.text(&path).and_then(cgroup_of_process)?.to_owned();
        // Outside of the cgroup namespace that this process sees.
        if group.contains("..") {
            return None;
        }
        let since = self.files.machine.started(&mut self.kernel_files, pid, machine);
        Some((group.clone(), self.group(&group, detail)?, since))
    }
}
