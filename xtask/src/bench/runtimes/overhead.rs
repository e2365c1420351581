//! What all processes of a runtime cost together, without the workloads that they run.

use std::fs;
use std::path::Path;
use std::time::Duration;

use anyhow::Result;
use oarsman_host::processes;

use super::super::floor::WORKLOAD;
use super::super::process::pss_mib;

/// Sums over processes.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Overhead {
    pub(super) processes: usize,
    pub(super) pss_mib: f64,
    pub(super) cpu: Duration,
}

impl Overhead {
    /// Sums up all processes of this pid namespace but the bench, workloads, and `others`.
    pub(super) fn read(others: &[u32]) -> Result<Self> {
        let mut sum = Self::default();
        let own = std::process::id();
        for process in processes::list()? {
            let pid = process.pid;
            if pid == own || others.contains(&pid) || is_workload(pid) {
                continue;
            }
            // One that has ended meanwhile, or is in the kernel, has no memory to count.
            let Ok(memory) = pss_mib(pid) else { continue };
            sum.processes += 1;
            sum.pss_mib += memory;
            sum.cpu += processes::cpu_time(pid).unwrap_or_default();
        }
        Ok(sum)
    }
}

/// The containers of the bench have a variable of its own; a runtime's own processes do not.
fn is_workload(pid: u32) -> bool {
    let environment = fs::read(Path::new("/proc").join(pid.to_string()).join("environ"));
    let environment = environment.unwrap_or_default();
    environment.split(|byte| *byte == 0).any(|entry| entry == WORKLOAD.as_bytes())
}
