//! Reads the files of one control group after the other.

use std::fs;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use jiff::Timestamp;
use oarsman_core::stats::{
    CgroupPressure, CgroupStats, CpuLimits, CpuUsage, MemoryInfo, MemoryUsage, StatsDetail,
    count_lines, cpu_max, cpu_stat_v1, cpu_stat_v2, cpuacct_stat, io_stat, memory_stat_v1,
    memory_stat_v2, number, number_of, pressure, shares_of_weight, throttled_io,
};
use oarsman_core::time::Now;
use rustix::fs::{CWD, Mode, OFlags, openat};

use super::cgroup_trees::{CgroupTrees, V1Trees};
use super::kernel_file::KernelFiles;

/// Groups below a pod's that are read: more than a pod can have containers.
const MAX_BELOW: usize = 1024;

/// Reads groups with one buffer.
pub(super) struct CgroupReader<'a> {
    trees: &'a CgroupTrees,
    files: KernelFiles,
    machine: MemoryInfo,
}

impl<'a> CgroupReader<'a> {
    pub(super) fn new(trees: &'a CgroupTrees) -> Self {
        Self { trees, files: KernelFiles::default(), machine: MemoryInfo::default() }
    }

    /// The machine's memory: the root group of v2 does not count its own, and without swap no limit of it is read.
    pub(super) fn set_machine_memory(&mut self, machine: MemoryInfo) {
        self.machine = machine;
    }

    /// The numbers of a group; none if there is none.
    pub(super) fn read(
        &mut self,
        group: &str,
        detail: StatsDetail,
        now: Now,
    ) -> Option<CgroupStats> {
        let main = open(self.trees.main()?, group)?;
        let mut stats = CgroupStats::at(now);
        match self.trees {
            CgroupTrees::V1(trees) => self.read_v1(trees, group, &main, detail, &mut stats),
            CgroupTrees::V2(_) => self.read_v2(group, &main, detail, &mut stats),
        }
        Some(stats)
    }

    /// The CPU time of a group in nanoseconds.
    pub(super) fn cpu_time(&mut self, group: &str) -> Option<u64> {
        match self.trees {
            CgroupTrees::V1(trees) => {
                let directory = open(trees.cpuacct.as_ref()?, group)?;
                self.files.text_in(&directory, "cpuacct.usage").and_then(number)
            }
            CgroupTrees::V2(tree) => {
                let directory = open(tree, group)?;
                Some(cpu_stat_v2(self.files.text_in(&directory, "cpu.stat")?).0?.total)
            }
        }
    }

    /// The names of the groups right below one.
    pub(super) fn below(&self, group: &str) -> Vec<String> {
        let Some(tree) = self.trees.main() else { return Vec::new() };
        let entries = fs::read_dir(directory(tree, group)).into_iter().flatten().flatten();
        let directories = entries.filter(|it| it.file_type().is_ok_and(|kind| kind.is_dir()));
        let names = directories.filter_map(|entry| entry.file_name().into_string().ok());
        let mut names: Vec<String> = names.take(MAX_BELOW).collect();
        names.sort();
        names
    }

    /// A process of a group.
    pub(super) fn first_process(&mut self, group: &str) -> Option<u32> {
        let directory = open(self.trees.main()?, group)?;
        let processes = self.files.text_in(&directory, "cgroup.procs")?;
        processes.lines().next()?.parse().ok()
    }

    /// When a group was made, or when one was made or removed right below it.
    pub(super) fn changed(&self, group: &str) -> Option<Timestamp> {
        let changed = fs::metadata(directory(self.trees.main()?, group)).ok()?.modified().ok()?;
        let since = changed.duration_since(SystemTime::UNIX_EPOCH).ok()?;
        Timestamp::from_second(i64::try_from(since.as_secs()).ok()?).ok()
    }

    fn read_v1(
        &mut self,
        trees: &V1Trees,
        group: &str,
        main: &OwnedFd,
        detail: StatsDetail,
        stats: &mut CgroupStats,
    ) {
        let cpuacct = trees.cpuacct.as_ref().and_then(|tree| open(tree, group));
        stats.cpu = cpuacct.as_ref().and_then(|directory| self.v1_cpu_time(directory, detail));
        if trees.memory.is_some() {
            stats.memory = self.v1_memory(main, detail);
        }
        if detail >= StatsDetail::Summary {
            stats.processes = self.files.text_in(main, "cgroup.procs").map(count_lines);
            let unified = trees.unified.as_ref().and_then(|tree| open(tree, group));
            stats.pressure = unified.map(|it| self.pressure(&it)).unwrap_or_default();
        }
        if detail < StatsDetail::All {
            return;
        }
        stats.oom_kills = self.number_after(main, "memory.oom_control", "oom_kill");
        if let Some(cpu) = trees.cpu.as_ref().and_then(|tree| open(tree, group)) {
            stats.throttling = self.files.text_in(&cpu, "cpu.stat").and_then(cpu_stat_v1);
            stats.cpu_limits = Some(CpuLimits {
                shares: self.number(&cpu, "cpu.shares"),
                period: self.number(&cpu, "cpu.cfs_period_us"),
                quota: self.number(&cpu, "cpu.cfs_quota_us"),
            });
        }
        if let Some(pids) = trees.pids.as_ref().and_then(|tree| open(tree, group)) {
            self.threads(&pids, stats);
        }
        if let Some(blkio) = trees.blkio.as_ref().and_then(|tree| open(tree, group)) {
            let bytes = self.files.text_in(&blkio, "blkio.throttle.io_service_bytes_recursive");
            let bytes = bytes.map(str::to_owned).unwrap_or_default();
            let requests = self.files.text_in(&blkio, "blkio.throttle.io_serviced_recursive");
            stats.io = throttled_io(&bytes, requests.unwrap_or_default());
        }
    }

    fn v1_cpu_time(&mut self, directory: &OwnedFd, detail: StatsDetail) -> Option<CpuUsage> {
        let total = self.number(directory, "cpuacct.usage")?;
        let split = match detail {
            StatsDetail::All => {
                self.files.text_in(directory, "cpuacct.stat").and_then(cpuacct_stat)
            }
            StatsDetail::CpuAndMemory | StatsDetail::Summary => None,
        };
        let (user, system) = (split.map(|it| it.user), split.map(|it| it.system));
        Some(CpuUsage { total, user, system })
    }

    fn v1_memory(&mut self, directory: &OwnedFd, detail: StatsDetail) -> Option<MemoryUsage> {
        let mut memory = memory_stat_v1(self.files.text_in(directory, "memory.stat")?);
        memory.usage = self.number(directory, "memory.usage_in_bytes")?;
        memory.limit = self.number(directory, "memory.limit_in_bytes");
        if self.machine.swap_total > 0 {
            // The limit of v1 is that of memory and swap together.
            let both = self.number(directory, "memory.memsw.limit_in_bytes");
            memory.swap_limit =
                both.zip(memory.limit).map(|(both, memory)| both.saturating_sub(memory));
        }
        if detail == StatsDetail::All {
            memory.fail_count = self.number(directory, "memory.failcnt");
            memory.max_usage = self.number(directory, "memory.max_usage_in_bytes");
        }
        Some(memory)
    }

    fn read_v2(
        &mut self,
        group: &str,
        directory: &OwnedFd,
        detail: StatsDetail,
        stats: &mut CgroupStats,
    ) {
        let cpu = self.files.text_in(directory, "cpu.stat").map(cpu_stat_v2);
        (stats.cpu, stats.throttling) = cpu.unwrap_or_default();
        stats.memory = match group {
            "/" => Some(self.v2_root_memory(directory)),
            _ => self.v2_memory(directory),
        };
        if detail >= StatsDetail::Summary {
            stats.processes = self.files.text_in(directory, "cgroup.procs").map(count_lines);
            stats.pressure = self.pressure(directory);
        }
        if detail < StatsDetail::All {
            return;
        }
        stats.oom_kills = self.number_after(directory, "memory.events", "oom_kill");
        if let Some(memory) = &mut stats.memory {
            memory.fail_count = self.number_after(directory, "memory.events", "max");
        }
        let (quota, period) =
            self.files.text_in(directory, "cpu.max").map(cpu_max).unwrap_or_default();
        let shares = self.number(directory, "cpu.weight").map(shares_of_weight);
        stats.cpu_limits = period.map(|period| CpuLimits { shares, period: Some(period), quota });
        self.threads(directory, stats);
        stats.io = self.files.text_in(directory, "io.stat").map(io_stat).unwrap_or_default();
    }

    fn v2_memory(&mut self, directory: &OwnedFd) -> Option<MemoryUsage> {
        let mut memory = memory_stat_v2(self.files.text_in(directory, "memory.stat")?);
        memory.usage = self.number(directory, "memory.current")?;
        memory.limit = self.number(directory, "memory.max");
        memory.swap = self.number(directory, "memory.swap.current").unwrap_or_default();
        if self.machine.swap_total > 0 {
            memory.swap_limit = self.number(directory, "memory.swap.max");
        }
        Some(memory)
    }

    /// The root group of v2 has no `memory.current`: it is what the machine has in use.
    fn v2_root_memory(&mut self, directory: &OwnedFd) -> MemoryUsage {
        let machine = self.machine;
        let usage = machine.total.saturating_sub(machine.free);
        let swap = machine.swap_total.saturating_sub(machine.swap_free);
        match self.files.text_in(directory, "memory.stat").map(memory_stat_v2) {
            Some(memory) => MemoryUsage { usage, swap, ..memory },
            None => MemoryUsage {
                usage,
                swap,
                inactive_file: machine.inactive_file,
                rss: machine.anonymous,
                cache: machine.cached,
                mapped_file: machine.mapped,
                ..MemoryUsage::default()
            },
        }
    }

    /// `max` is no limit, which cAdvisor's families have as zero.
    fn threads(&mut self, directory: &OwnedFd, stats: &mut CgroupStats) {
        stats.threads = self.number(directory, "pids.current");
        let limit = self.files.text_in(directory, "pids.max");
        stats.max_threads = limit.map(|text| number(text).unwrap_or_default());
    }

    fn pressure(&mut self, directory: &OwnedFd) -> CgroupPressure {
        let mut of = |name| self.files.text_in(directory, name).and_then(pressure);
        CgroupPressure {
            cpu: of("cpu.pressure"),
            memory: of("memory.pressure"),
            io: of("io.pressure"),
        }
    }

    fn number(&mut self, directory: &OwnedFd, name: &str) -> Option<u64> {
        self.files.text_in(directory, name).and_then(number)
    }

    fn number_after(&mut self, directory: &OwnedFd, name: &str, key: &str) -> Option<u64> {
        number_of(self.files.text_in(directory, name)?, key)
    }
}

fn directory(tree: &Path, group: &str) -> PathBuf {
    tree.join(group.trim_start_matches('/'))
}

fn open(tree: &Path, group: &str) -> Option<OwnedFd> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let path = directory(tree, group);
    openat(CWD, path.as_os_str().as_bytes(), flags, Mode::empty()).ok()
}
