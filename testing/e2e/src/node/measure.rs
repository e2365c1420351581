//! What a process costs, as the kernel counts it.

use std::fs;
use std::time::Duration;

use anyhow::{Context, Result};

/// The kernel counts processor time for programs in hundredths of a second.
const TICK: Duration = Duration::from_millis(10);

pub(super) fn cpu_time(pid: u32) -> Result<Duration> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat"))?;
    Ok(TICK * ticks(&stat).with_context(|| format!("cannot read {stat:?}"))?)
}

/// In user mode and in the kernel: the 14th and 15th field. The second is the program's name in
/// brackets and may hold anything.
fn ticks(stat: &str) -> Option<u32> {
    let after_name = stat.rsplit_once(')')?.1;
    let mut fields = after_name.split_ascii_whitespace().skip(11);
    let (user, kernel): (u32, u32) = (fields.next()?.parse().ok()?, fields.next()?.parse().ok()?);
    Some(user + kernel)
}

pub(super) fn pss(pid: u32) -> Result<u64> {
    let rollup = fs::read_to_string(format!("/proc/{pid}/smaps_rollup"))?;
    kibibytes(&rollup).map(|size| size * 1024).with_context(|| format!("cannot read {rollup:?}"))
}

fn kibibytes(rollup: &str) -> Option<u64> {
    let line = rollup.lines().find_map(|line| line.strip_prefix("Pss:"))?;
    line.split_ascii_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_read_from_where_the_kernel_puts_them() {
        let stat = "7 (a) b) S 1 7 7 0 -1 4194560 100 0 0 0 12 30 0 0 20 0 1 0 5 6 7";
        assert_eq!(ticks(stat), Some(42));
        assert_eq!(ticks("7 (a) S 1"), None);
        let rollup = "55-7f ---p 00000000 00:00 0 [rollup]\nRss: 900 kB\nPss:      512 kB\nPss_Dirty: 1 kB\n";
        assert_eq!(kibibytes(rollup), Some(512));
        assert!(pss(std::process::id()).unwrap() > 1024);
    }
}
