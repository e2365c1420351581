//! Changes of a pod's resources on the machine, for the trace.

use std::fmt;

/// A change of a pod's resources on the machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DiskChange {
    /// Its directory was made.
    DirectoryMade,
    /// Its directory was removed, and its record with it.
    DirectoryRemoved,
    /// Its cgroup was made.
    CgroupMade,
    /// The agent removed its cgroup.
    CgroupRemoved,
    /// Its cgroup was removed, not by the agent.
    CgroupVanished,
    /// Its volumes were made.
    VolumesMade,
    /// Files of its volumes were replaced.
    FilesReplaced,
    /// Its volumes were torn down.
    VolumesReleased,
    /// Parts of its volumes were mounted.
    SubPathsMounted,
    /// The last part of its volumes was unmounted.
    SubPathsUnmounted,
    /// The agent tried what it must never do, and was refused.
    Violated(DiskViolation),
}

/// What an agent must never do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DiskViolation {
    /// Remove a cgroup in which a process runs.
    CgroupInUse,
    /// Tear down the volumes of a running process.
    VolumesInUse,
    /// Unmount parts of volumes of a running process, or tear down a volume of which a part is mounted.
    SubPathsInUse,
    /// Remove the directory of a running process, or one with volumes or mounts in it, whose content would be lost.
    DirectoryInUse,
}

impl fmt::Display for DiskChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::DirectoryMade => "directory made",
            Self::DirectoryRemoved => "directory removed",
            Self::CgroupMade => "cgroup made",
            Self::CgroupRemoved => "cgroup removed",
            Self::CgroupVanished => "cgroup vanished",
            Self::VolumesMade => "volumes made",
            Self::FilesReplaced => "files replaced",
            Self::VolumesReleased => "volumes released",
            Self::Violated(DiskViolation::CgroupInUse) => "cgroup in use, yet to be removed",
            Self::Violated(DiskViolation::VolumesInUse) => "volumes in use, yet to be released",
            Self::SubPathsMounted => "sub paths mounted",
            Self::SubPathsUnmounted => "sub paths unmounted",
            Self::Violated(DiskViolation::SubPathsInUse) => "sub paths in use, yet to be unmounted",
            Self::Violated(DiskViolation::DirectoryInUse) => "directory in use, yet to be removed",
        })
    }
}
