//! Reads what the machine as a whole has and uses.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use oarsman_core::stats::{
    MachineStats, StatsDetail, block_devices, boot_time, interfaces, memory_info, number, tasks,
};

use super::kernel_file::KernelFiles;
use crate::processes::parse_stat;

/// The kernel counts for programs in hundredths of a second.
const MILLIS_PER_TICK: u64 = 10;

/// Reads files of `/proc`.
#[derive(Debug)]
pub(super) struct MachineReader {
    proc: PathBuf,
    cores: u32,
    /// Read once: `/proc/stat` is long on a machine with many interrupts.
    boot_time: OnceLock<Option<Timestamp>>,
}

impl MachineReader {
    pub(super) fn new(proc: &Path, cores: u32) -> Self {
        Self { proc: proc.to_owned(), cores, boot_time: OnceLock::new() }
    }

    /// Memory always; processes, devices and interfaces as far as they are shown.
    pub(super) fn read(
        &self,
        files: &mut KernelFiles,
        detail: StatsDetail,
        has_networks: bool,
    ) -> MachineStats {
        let mut text = |name: &str| files.text(&self.proc.join(name)).map(str::to_owned);
        let started = *self.boot_time.get_or_init(|| text("stat").as_deref().and_then(boot_time));
        let has_processes = detail >= StatsDetail::Summary;
        let limits = ["sys/kernel/pid_max", "sys/kernel/threads-max"];
        let limits = limits.iter().filter(|_| has_processes).filter_map(|name| text(name));
        let max_pid = limits.filter_map(|limit| number(&limit)).min();
        let load = has_processes.then(|| text("loadavg")).flatten();
        let devices = match detail {
            StatsDetail::All => text("partitions").as_deref().map(block_devices),
            StatsDetail::CpuAndMemory | StatsDetail::Summary => None,
        };
        let own = has_networks.then(|| text("self/net/dev")).flatten();
        MachineStats {
            cores: self.cores,
            memory: text("meminfo").as_deref().map(memory_info).unwrap_or_default(),
            started,
            max_pid,
            tasks: load.as_deref().and_then(tasks),
            interfaces: own.as_deref().map(interfaces).unwrap_or_default(),
            devices: devices.unwrap_or_else(BTreeMap::new),
        }
    }

    /// A file of a process.
    pub(super) fn of_process(&self, pid: u32, name: &str) -> PathBuf {
        self.proc.join(pid.to_string()).join(name)
    }

    /// When a process was started.
    pub(super) fn started(
        &self,
        files: &mut KernelFiles,
        pid: u32,
        machine: &MachineStats,
    ) -> Option<Timestamp> {
        let stat = files.text(&self.of_process(pid, "stat"))?;
        let ticks = parse_stat(stat.as_bytes())?.started;
        let since_boot = Duration::from_millis(ticks.checked_mul(MILLIS_PER_TICK)?);
        let since_boot = SignedDuration::try_from(since_boot).ok()?;
        machine.started?.checked_add(since_boot).ok()
    }
}
