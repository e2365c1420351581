//! Facts about free space on the agent's file systems, and about memory.

use std::path::{Path, PathBuf};

use oarsman_host::mounts::{self, Mount};

use super::root::nearest;
use crate::check::requirements::Requirements;

/// A directory that is written to, and the file system it lies on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct DirectoryFacts {
    /// What the agent uses it for.
    pub(crate) what: &'static str,
    pub(crate) path: PathBuf,
    pub(crate) bytes: FreeSpace,
    /// All zero on file systems that do not count inodes.
    pub(crate) inodes: FreeSpace,
    /// Options of its mount, such as `ro` and `noexec`.
    pub(crate) options: Vec<String>,
    /// Where the file system is mounted.
    pub(crate) mount_point: PathBuf,
}

/// The total and the free amount of bytes or inodes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct FreeSpace {
    pub(crate) all: u64,
    pub(crate) free: u64,
}

impl FreeSpace {
    /// How much of it is free, in percent, rounded down.
    pub(crate) fn percent_free(self) -> u64 {
        self.free.saturating_mul(100).checked_div(self.all).unwrap_or(100)
    }
}

/// Memory in bytes; zero where the kernel does not report it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct MemoryFacts {
    pub(crate) total: Option<u64>,
    pub(crate) available: Option<u64>,
}

impl MemoryFacts {
    /// Reads `/proc/meminfo`.
    pub(super) fn parse(text: &str) -> Self {
        let bytes = |name: &str| {
            let rest = text.lines().find_map(|line| line.strip_prefix(name))?;
            rest.trim().strip_suffix("kB")?.trim().parse::<u64>().ok().map(|kb| kb * 1024)
        };
        Self { total: bytes("MemTotal:"), available: bytes("MemAvailable:") }
    }
}

/// Reads the facts of the agent's directories; those that cannot be read are left out.
pub(super) fn read(requirements: &Requirements) -> Vec<DirectoryFacts> {
    let mounts = mounts::current().unwrap_or_default();
    let directories =
        [("root directory", &requirements.root), ("pod logs", &requirements.pod_logs)];
    directories.into_iter().filter_map(|(what, path)| directory(what, path, &mounts)).collect()
}

fn directory(what: &'static str, path: &Path, mounts: &[Mount]) -> Option<DirectoryFacts> {
    let there = nearest(path).canonicalize().ok()?;
    let room = rustix::fs::statvfs(&there).ok()?;
    let mount = mount_of(mounts, &there);
    Some(DirectoryFacts {
        what,
        path: path.to_owned(),
        bytes: FreeSpace {
            all: room.f_blocks.saturating_mul(room.f_frsize),
            free: room.f_bavail.saturating_mul(room.f_frsize),
        },
        inodes: FreeSpace { all: room.f_files, free: room.f_favail },
        options: mount.map(options).unwrap_or_default(),
        mount_point: mount.map(|mount| mount.point.clone()).unwrap_or_default(),
    })
}

/// The mount that a directory lies on: the innermost, and of several at one point the last.
fn mount_of<'a>(mounts: &'a [Mount], path: &Path) -> Option<&'a Mount> {
    let above = mounts.iter().filter(|mount| path.starts_with(&mount.point));
    above.max_by_key(|mount| mount.point.components().count())
}

fn options(mount: &Mount) -> Vec<String> {
    let both = mount.options.split(',').chain(mount.super_options.split(','));
    both.map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_innermost_and_last_mount_counts() {
        let text = "1 0 8:1 / / rw - ext4 /dev/a rw\n\
            2 1 8:2 / /var rw,noexec - ext4 /dev/b rw\n\
            3 2 8:3 / /var rw,nodev - ext4 /dev/c ro\n\
            4 1 8:4 / /variety ro - ext4 /dev/d rw\n";
        let mounts = mounts::parse(text.as_bytes()).unwrap();
        let found = mount_of(&mounts, Path::new("/var/lib")).unwrap();
        assert_eq!(options(found), ["rw", "nodev", "ro"]);
        assert_eq!(mount_of(&mounts, Path::new("/vari")).unwrap().id, 1);
    }

    #[test]
    fn memory_is_read_in_bytes() {
        let text = "MemTotal:        4096 kB\nMemFree:  1 kB\nMemAvailable:    2048 kB\n";
        let want = MemoryFacts { total: Some(4 << 20), available: Some(2 << 20) };
        assert_eq!(MemoryFacts::parse(text), want);
        assert_eq!(MemoryFacts::parse(""), MemoryFacts::default());
    }
}
