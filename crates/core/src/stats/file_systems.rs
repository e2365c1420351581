//! The size of a file system.

use super::cgroup_stats::DeviceNumber;

/// A file system, as statfs tells.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FileSystemStats {
    /// The device that it lies on.
    pub device: DeviceNumber,
    /// Its size in bytes.
    pub capacity: u64,
    /// Bytes that users other than root can still use.
    pub available: u64,
    /// Bytes that are used.
    pub used: u64,
    /// All inodes.
    pub inodes: u64,
    /// Those that are free.
    pub inodes_free: u64,
}

impl FileSystemStats {
    /// Inodes that are used.
    pub fn inodes_used(&self) -> u64 {
        self.inodes.saturating_sub(self.inodes_free)
    }
}
