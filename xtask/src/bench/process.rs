//! Processor time and memory of processes, as the kernel counts them.

use std::fs;
use std::time::Duration;

use anyhow::{Context, Result};
use oarsman_host::processes;
use oarsman_rig::Rig;

use super::figures::Cpu;

/// The kernel counts in hundredths of a second.
const TICKS: f64 = 100.0;
/// The fields of `/proc/stat` for idle time and for waiting for disks.
const IDLE: [usize; 2] = [3, 4];
/// The fields after these are contained in others.
const COUNTS: usize = 8;

/// Measures processor time from its creation on.
pub(super) struct CpuMeter {
    agent: Vec<u32>,
    cluster: Vec<u32>,
    before: Cpu,
}

impl CpuMeter {
    /// Starts to measure these processes, and the machine as a whole.
    pub(super) fn begin(agent: Vec<u32>, cluster: Vec<u32>) -> Result<Self> {
        let mut meter = Self { agent, cluster, before: Cpu::default() };
        meter.before = meter.total()?;
        Ok(meter)
    }

    /// The processor time so far.
    pub(super) fn read(&self) -> Result<Cpu> {
        let (before, after) = (self.before, self.total()?);
        Ok(Cpu {
            agent: after.agent.zip(before.agent).map(|(after, before)| after - before),
            cluster: after.cluster - before.cluster,
            machine: after.machine - before.machine,
        })
    }

    fn total(&self) -> Result<Cpu> {
        let agent = (!self.agent.is_empty()).then(|| cpu_time(&self.agent)).transpose()?;
        let stat = fs::read_to_string("/proc/stat")?;
        Ok(Cpu {
            agent: agent.map(|time| time.as_secs_f64()),
            cluster: cpu_time(&self.cluster)?.as_secs_f64(),
            machine: busy(&stat).context("cannot read /proc/stat")?,
        })
    }
}

/// Seconds in which processors were busy, summed over processors.
fn busy(stat: &str) -> Option<f64> {
    let counts = stat.lines().next()?.strip_prefix("cpu ")?.split_ascii_whitespace();
    let counts = counts.take(COUNTS).enumerate().filter(|(index, _)| !IDLE.contains(index));
    let ticks: Option<f64> = counts.map(|(_, count)| count.parse::<f64>().ok()).sum();
    ticks.map(|ticks| ticks / TICKS)
}

/// The processor time of running processes.
pub(super) fn cpu_time(pids: &[u32]) -> Result<Duration> {
    let mut total = Duration::ZERO;
    for pid in pids {
        total += processes::cpu_time(*pid)?;
    }
    Ok(total)
}

/// Memory of a process in MiB.
pub(super) fn pss_mib(pid: u32) -> Result<f64> {
    let kibibytes = u32::try_from(processes::pss(pid)? / 1024)?;
    Ok(f64::from(kibibytes) / 1024.0)
}

/// containerd and all its shims: both have paths of the rig among their arguments.
pub(super) fn runtime(rig: &Rig) -> Result<Vec<u32>> {
    let (socket, config) = (rig.socket(), rig.directory().join("config.toml"));
    let is_ours = |pid: &u32| {
        let arguments = processes::arguments(*pid);
        arguments.iter().any(|argument| *argument == *socket || *argument == *config)
    };
    Ok(processes::list()?.into_iter().map(|process| process.pid).filter(is_ours).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_processor_is_busy_when_it_neither_idles_nor_waits() {
        let stat = "cpu  100 20 300 5000 700 6 7 8 90 10\ncpu0 1 2 3 4 5 6 7 8 9 10\n";
        assert_eq!(busy(stat), Some(4.41));
        assert_eq!(busy("intr 1 2 3"), None);
        assert_eq!(busy("cpu  1 x 3"), None);
    }
}
