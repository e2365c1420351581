//! What happens to what the machine holds of a pod, for the trace.

use std::fmt;

/// What happens to a pod's ground on the machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DiskChange {
    /// Its directory was made.
    DirectoryMade,
    /// Its directory was removed, and what was remembered of it forgotten.
    DirectoryRemoved,
    /// Its cgroup was made.
    CgroupMade,
    /// The agent removed its cgroup.
    CgroupRemoved,
    /// Somebody else removed its cgroup.
    CgroupVanished,
    /// Its volumes were made.
    VolumesMade,
    /// Files of its volumes are not what they were.
    FilesReplaced,
    /// Its volumes were given back.
    VolumesReleased,
    /// The agent asked for what it must never ask for, and was refused.
    Violated(DiskViolation),
}

/// What an agent must never ask for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DiskViolation {
    /// To remove a cgroup in which a process runs.
    CgroupInUse,
    /// To take the volumes of a process that runs.
    VolumesInUse,
    /// To remove the directory of a process that runs, or one with volumes in it, whose content would go too.
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
            Self::Violated(DiskViolation::DirectoryInUse) => "directory in use, yet to be removed",
        })
    }
}
