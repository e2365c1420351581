//! What processes cost, as the kernel counts it.

use std::fs;
use std::time::Duration;

use anyhow::{Context, Result};
use oarsman_host::processes;
use oarsman_rig::Rig;

/// The kernel counts processor time for programs in hundredths of a second.
const TICK: Duration = Duration::from_millis(10);

/// Processor time of processes that live, in user mode and in the kernel.
pub(super) fn cpu_time(pids: &[u32]) -> Result<Duration> {
    let mut total = Duration::ZERO;
    for pid in pids {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat"))?;
        total += TICK * ticks(&stat).with_context(|| format!("cannot read {stat:?}"))?;
    }
    Ok(total)
}

/// The 14th and 15th field. The second is the program's name in brackets and may hold anything.
fn ticks(stat: &str) -> Option<u32> {
    let after_name = stat.rsplit_once(')')?.1;
    let mut fields = after_name.split_ascii_whitespace().skip(11);
    let (user, kernel): (u32, u32) = (fields.next()?.parse().ok()?, fields.next()?.parse().ok()?);
    Some(user + kernel)
}

/// Memory of a process in MiB, with its share of what it has in common with others.
pub(super) fn pss_mib(pid: u32) -> Result<f64> {
    let rollup = fs::read_to_string(format!("/proc/{pid}/smaps_rollup"))?;
    let line = rollup.lines().find_map(|line| line.strip_prefix("Pss:"));
    let size = line.and_then(|line| line.split_ascii_whitespace().next());
    let kibibytes: u32 = size.with_context(|| format!("no Pss in {rollup:?}"))?.parse()?;
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_read_from_where_the_kernel_puts_them() {
        let stat = "7 (a) b) S 1 7 7 0 -1 4194560 100 0 0 0 12 30 0 0 20 0 1 0 5 6 7";
        assert_eq!(ticks(stat), Some(42));
        assert_eq!(ticks("7 (a) S 1"), None);
        assert!(pss_mib(std::process::id()).unwrap() > 0.5);
        cpu_time(&[std::process::id()]).unwrap();
    }
}
