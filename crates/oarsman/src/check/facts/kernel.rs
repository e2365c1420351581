//! Facts about the kernel: its version, its features, its settings.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use super::{read_number, read_text};

/// The namespaces that a container needs.
const NAMESPACES: [&str; 6] = ["cgroup", "ipc", "mnt", "net", "pid", "uts"];
/// The settings below `/proc/sys` that are checked.
const SETTINGS: [&str; 8] = [
    "net/ipv4/ip_forward",
    "net/bridge/bridge-nf-call-iptables",
    "vm/overcommit_memory",
    "vm/panic_on_oom",
    "kernel/panic",
    "kernel/panic_on_oops",
    "kernel/keys/root_maxkeys",
    "kernel/keys/root_maxbytes",
];

/// The kernel's version, features and settings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct KernelFacts {
    /// The release, such as `6.1.0-18-amd64`.
    pub(crate) release: String,
    /// Whether it can mount overlays now, without a module being loaded first.
    pub(crate) has_overlay: bool,
    /// Those of the needed namespaces that it lacks.
    pub(crate) lacking: BTreeSet<&'static str>,
    /// Settings below `/proc/sys`, by path; those that this kernel does not have are left out.
    pub(crate) settings: BTreeMap<&'static str, i64>,
}

impl KernelFacts {
    pub(super) fn read() -> Self {
        let setting =
            |path: &&'static str| Some((*path, read_number(Path::new("/proc/sys").join(path))?));
        let own = Path::new("/proc/self/ns");
        // `exists` would follow the link, whose target cannot be read.
        let lacks = |name: &&&str| own.join(name).symlink_metadata().is_err();
        Self {
            release: rustix::system::uname().release().to_string_lossy().into_owned(),
            has_overlay: has_overlay(&read_text("/proc/filesystems")),
            lacking: NAMESPACES.iter().filter(lacks).copied().collect(),
            settings: SETTINGS.iter().filter_map(setting).collect(),
        }
    }
}

/// Reads `/proc/filesystems`.
fn has_overlay(filesystems: &str) -> bool {
    filesystems.lines().any(|line| line.split_ascii_whitespace().last() == Some("overlay"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn overlay_is_found_among_file_systems() {
        assert!(has_overlay("nodev\tproc\n\text4\nnodev\toverlay\n"));
        assert!(!has_overlay("nodev\tproc\n\text4\nnodev\toverlayfs\n"));
    }
}
