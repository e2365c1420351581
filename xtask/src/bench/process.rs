//! What processes cost, as the kernel counts it.

use std::time::Duration;

use anyhow::Result;
use oarsman_host::processes;
use oarsman_rig::Rig;

/// Processor time of processes that live.
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

/// containerd and all its shims: both have places of the rig among their arguments.
pub(super) fn runtime(rig: &Rig) -> Result<Vec<u32>> {
    let (socket, config) = (rig.socket(), rig.directory().join("config.toml"));
    let is_ours = |pid: &u32| {
        let arguments = processes::arguments(*pid);
        arguments.iter().any(|argument| *argument == *socket || *argument == *config)
    };
    Ok(processes::list()?.into_iter().map(|process| process.pid).filter(is_ours).collect())
}
