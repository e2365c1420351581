//! The numbers of system calls, which are facts of the kernel's interface.

use std::collections::BTreeMap;
use std::sync::LazyLock;

#[cfg(target_arch = "x86_64")]
const TABLE: &str = include_str!("x86_64.txt");
#[cfg(target_arch = "aarch64")]
const TABLE: &str = include_str!("aarch64.txt");

static NUMBERS: LazyLock<BTreeMap<&str, i64>> = LazyLock::new(|| {
    let entries = TABLE.lines().filter_map(|line| line.split_once(' '));
    entries.filter_map(|(name, number)| Some((name, number.parse().ok()?))).collect()
});

/// The number of a system call on this machine; none if it has no such call.
pub(super) fn of(name: &str) -> Option<i64> {
    NUMBERS.get(name).copied()
}
