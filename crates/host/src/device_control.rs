//! Which devices the processes of a control group may use, where control groups are one tree (v2): there is no file for it there, but a program that
//! the kernel asks at every `open` and `mknod` of a device.
//!
//! The program is made of rules by a pure function, attached to the group, and holds for all groups below it. A program of a group below can only
//! take more away.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use crate::cgroups::{Hierarchy, HierarchyKind};

mod kernel;
mod program;
#[cfg(test)]
mod tests;

/// What is done to a device, as a set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeviceAccess(i32);

impl DeviceAccess {
    /// A node of it is made.
    pub const MAKE_NODE: Self = Self(1);
    /// It is opened for reading.
    pub const READ: Self = Self(2);
    /// It is opened for writing.
    pub const WRITE: Self = Self(4);
    /// All that can be done.
    pub const ALL: Self = Self(7);

    /// Reads letters, as OCI and the files of v1 have them: `r`, `w` and `m`. None if there is another one.
    pub fn parse(letters: &str) -> Option<Self> {
        letters.chars().try_fold(Self(0), |all, letter| {
            let one = match letter {
                'm' => Self::MAKE_NODE,
                'r' => Self::READ,
                'w' => Self::WRITE,
                _ => return None,
            };
            Some(Self(all.0 | one.0))
        })
    }
}

/// A kind of device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeviceKind {
    /// Such as a disk.
    Block,
    /// Such as a terminal.
    Character,
}

/// Allows or forbids something. What is done to a device is decided, for each kind of access by itself, by the last rule of a list that is about it;
/// what no rule is about is forbidden.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeviceRule {
    /// Whether it allows.
    pub allow: bool,
    /// None for both kinds.
    pub kind: Option<DeviceKind>,
    /// None for all numbers; no number is negative.
    pub major: Option<i32>,
    /// The same.
    pub minor: Option<i32>,
    /// What it is about.
    pub access: DeviceAccess,
}

impl DeviceRule {
    /// A rule about all that can be done to all devices.
    pub const fn about_everything(allow: bool) -> Self {
        Self { allow, kind: None, major: None, minor: None, access: DeviceAccess::ALL }
    }
}

/// Why devices cannot be controlled.
#[derive(Debug, thiserror::Error)]
pub enum DeviceControlError {
    /// The kernel took no program.
    #[error("cannot load a program that controls devices: {source}; {}", why_not_loaded(.source))]
    Load {
        /// The kernel's error.
        source: io::Error,
    },
    /// There is no such group.
    #[error("cannot open the control group {}: {source}", .group.display())]
    Open {
        /// Its directory.
        group: PathBuf,
        /// The kernel's error.
        source: io::Error,
    },
    /// The group took no program, or kept one that it had.
    #[error("cannot control the devices of the control group {}: {source}; {}", .group.display(), why_not_attached(.source))]
    Attach {
        /// Its directory.
        group: PathBuf,
        /// The kernel's error.
        source: io::Error,
    },
}

fn why_not_loaded(error: &io::Error) -> &'static str {
    match error.raw_os_error() {
        Some(libc::EPERM | libc::EACCES) => {
            "it needs CAP_SYS_ADMIN, or CAP_BPF and CAP_NET_ADMIN, and a seccomp profile that allows the call bpf"
        }
        Some(libc::EINVAL) => "the kernel has to be built with CONFIG_CGROUP_BPF",
        Some(libc::ENOSYS) => {
            "the kernel has to be built with CONFIG_BPF_SYSCALL and CONFIG_CGROUP_BPF"
        }
        Some(libc::E2BIG | libc::ENOSPC) => "there are more rules than the kernel takes",
        _ => "see the kernel's log",
    }
}

fn why_not_attached(error: &io::Error) -> &'static str {
    match error.raw_os_error() {
        Some(libc::EPERM | libc::EACCES) => {
            "it needs CAP_SYS_ADMIN, and no group above may have a program that forbids others below it"
        }
        Some(libc::EINVAL | libc::EBADF | libc::ENOSYS) => {
            "it has to be a group of version 2, and the kernel has to be built with CONFIG_CGROUP_BPF"
        }
        Some(libc::E2BIG) => "it has as many programs as the kernel allows",
        _ => "see the kernel's log",
    }
}

/// Whether it takes programs to control devices here: no tree of v1 has the controller.
pub fn takes_programs(all: &[Hierarchy]) -> bool {
    !all.iter().any(has_controller)
}

/// Whether a tree of v1 has the controller of devices.
pub fn has_controller(hierarchy: &Hierarchy) -> bool {
    let HierarchyKind::V1(names) = &hierarchy.kind else { return false };
    names.iter().any(|name| name == "devices")
}

/// Whether this kernel takes programs from us.
///
/// # Errors
/// When it does not.
pub fn probe() -> Result<(), DeviceControlError> {
    load(&[]).map(drop)
}

/// Gives a group, by its directory in the v2 tree, these rules in place of those that it had.
///
/// # Errors
/// When there is no such group, the kernel cannot do it, or we may not. The group then has the rules that it had, or those and the new ones.
pub fn apply(group: &Path, rules: &[DeviceRule]) -> Result<(), DeviceControlError> {
    let failed = |source| DeviceControlError::Attach { group: group.to_owned(), source };
    let opened = File::open(group)
        .map_err(|source| DeviceControlError::Open { group: group.to_owned(), source })?;
    let before = kernel::attached(&opened).map_err(failed)?;
    if !program::allow_everything(rules) {
        kernel::attach(&opened, &load(rules)?).map_err(failed)?;
    }
    // For a moment both hold, and only what both allow is allowed: at no time is there more than one of them allows.
    before.iter().try_for_each(|old| kernel::detach(&opened, old)).map_err(failed)
}

fn load(rules: &[DeviceRule]) -> Result<std::os::fd::OwnedFd, DeviceControlError> {
    kernel::load(&program::generate(rules)).map_err(|source| DeviceControlError::Load { source })
}
