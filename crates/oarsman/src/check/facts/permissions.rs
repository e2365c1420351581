//! Facts about the user and the capabilities of this process.

use std::collections::BTreeSet;

use super::read_text;

/// The capabilities that the agent or a runtime started by the same unit needs, by their bits.
const KNOWN: [(&str, u32); 8] = [
    ("CAP_CHOWN", 0),
    ("CAP_DAC_OVERRIDE", 1),
    ("CAP_FOWNER", 3),
    ("CAP_KILL", 5),
    ("CAP_NET_ADMIN", 12),
    ("CAP_SYS_PTRACE", 19),
    ("CAP_SYS_ADMIN", 21),
    ("CAP_SYS_RESOURCE", 24),
];

/// The user and the missing capabilities.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PermissionFacts {
    pub(crate) is_root: bool,
    /// Those of the known capabilities that we lack.
    pub(crate) lacking: BTreeSet<&'static str>,
}

impl PermissionFacts {
    pub(super) fn read() -> Self {
        let is_root = rustix::process::geteuid().is_root();
        Self { is_root, lacking: lacking(&read_text("/proc/self/status")) }
    }
}

/// Reads `/proc/self/status`. No capability counts as missing where the kernel does not report them.
fn lacking(status: &str) -> BTreeSet<&'static str> {
    let line = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    let Some(have) = line.and_then(|hex| u64::from_str_radix(hex.trim(), 16).ok()) else {
        return BTreeSet::new();
    };
    let lacks = |(_, bit): &&(&str, u32)| have & (1 << bit) == 0;
    KNOWN.iter().filter(lacks).map(|(name, _)| *name).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_capabilities_are_named() {
        let rows: [(&str, &[&str]); 4] = [
            ("CapEff:\t000001ffffffffff\n", &[]),
            ("CapInh:\t0000000000000000\nCapEff:\t000001fffeffffff\n", &["CAP_SYS_RESOURCE"]),
            (
                "CapEff:\t00000000a80425fb\n",
                &["CAP_NET_ADMIN", "CAP_SYS_ADMIN", "CAP_SYS_PTRACE", "CAP_SYS_RESOURCE"],
            ),
            ("", &[]),
        ];
        for (status, want) in rows {
            assert_eq!(lacking(status), want.iter().copied().collect(), "{status}");
        }
    }
}
