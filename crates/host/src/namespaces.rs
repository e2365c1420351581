//! Linux namespaces: entering new ones, and preparing the mounts of a new mount namespace.

use std::fs::{self, File};
use std::io;
use std::os::fd::AsFd;
use std::path::Path;

use rustix::mount::{
    MountFlags, MountPropagationFlags, UnmountFlags, mount, mount_change, unmount,
};
use rustix::process::{Signal, set_parent_process_death_signal};
use rustix::thread::{LinkNameSpaceType, UnshareFlags, move_into_link_name_space, unshare_unsafe};

/// The kinds of namespace we deal in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NamespaceKind {
    /// What is mounted where.
    Mount,
    /// Links, addresses, routes, packet filters, sockets.
    Network,
    /// Process numbers.
    Pid,
    /// System V and POSIX message queues, semaphores and shared memory.
    Ipc,
    /// The host name.
    Uts,
    /// Users, groups, and rights over the namespaces that are made inside of it.
    User,
}

impl NamespaceKind {
    pub(crate) fn flag(self) -> UnshareFlags {
        match self {
            Self::Mount => UnshareFlags::NEWNS,
            Self::Network => UnshareFlags::NEWNET,
            Self::Pid => UnshareFlags::NEWPID,
            Self::Ipc => UnshareFlags::NEWIPC,
            Self::Uts => UnshareFlags::NEWUTS,
            Self::User => UnshareFlags::NEWUSER,
        }
    }

    /// The name of its file in `/proc/<pid>/ns`.
    pub fn file_name(self) -> &'static str {
        match self {
            Self::Mount => "mnt",
            Self::Network => "net",
            Self::Pid => "pid",
            Self::Ipc => "ipc",
            Self::Uts => "uts",
            Self::User => "user",
        }
    }
}

/// The namespace of a kind that a process is in, as the kernel names it: `net:[4026531840]`.
///
/// # Errors
/// When there is no such process, or it is not ours to look at.
pub fn of_process(pid: u32, kind: NamespaceKind) -> io::Result<String> {
    let link = fs::read_link(format!("/proc/{pid}/ns/{}", kind.file_name()))?;
    Ok(link.to_string_lossy().into_owned())
}

/// Moves this process into new namespaces; for [`NamespaceKind::Pid`] that holds for its next child, which
/// becomes process 1 there, and not for itself.
///
/// # Errors
/// When this process has a second thread (which would stay behind in the old namespaces), or lacks
/// the right to do it.
pub fn enter_new(kinds: &[NamespaceKind]) -> io::Result<()> {
    require_one_thread("change its namespaces")?;
    unshare(kinds)
}

fn unshare(kinds: &[NamespaceKind]) -> io::Result<()> {
    let flags = kinds.iter().fold(UnshareFlags::empty(), |all, kind| all | kind.flag());
    #[expect(unsafe_code, reason = "rustix has no safe unshare: it cannot know the flags")]
    // SAFETY: the call is unsafe for its FILES flag, after which a descriptor may be open in one
    // thread and closed in another. We never pass that flag.
    unsafe {
        unshare_unsafe(flags)?;
    }
    Ok(())
}

/// Runs `spawn` with new children of this thread going into a new pid namespace, and children after
/// that going into our own again.
///
/// # Errors
/// When we lack the right to do it, and when `spawn` fails.
pub fn with_new_pid_namespace<T>(spawn: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
    let ours = File::open("/proc/thread-self/ns/pid_for_children")?;
    unshare(&[NamespaceKind::Pid])?;
    let result = spawn();
    move_into_link_name_space(ours.as_fd(), Some(LinkNameSpaceType::ProcessID))?;
    result
}

pub(crate) fn require_one_thread(to_do: &str) -> io::Result<()> {
    match fs::read_dir("/proc/self/task")?.count() {
        1 => Ok(()),
        threads => Err(io::Error::other(format!(
            "a process with {threads} threads cannot {to_do}: do it first thing in main"
        ))),
    }
}

/// Has the kernel kill this process when its parent dies, however that happens.
///
/// # Errors
/// When the kernel refuses.
pub fn die_with_parent() -> io::Result<()> {
    Ok(set_parent_process_death_signal(Some(Signal::KILL))?)
}

/// Cuts the mounts of a new mount namespace off from the ones they were copied from, then makes
/// them propagate among themselves, as container runtimes expect of the root they run on.
///
/// # Errors
/// When the kernel refuses.
pub fn isolate_mounts() -> io::Result<()> {
    for propagation in [MountPropagationFlags::PRIVATE, MountPropagationFlags::SHARED] {
        mount_change("/", propagation | MountPropagationFlags::REC)?;
    }
    Ok(())
}

/// Mounts the /proc of the pid namespace we are in over the one of the namespace we came from.
///
/// # Errors
/// When the kernel refuses.
pub fn mount_proc() -> io::Result<()> {
    let flags = MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC;
    Ok(mount("proc", "/proc", "proc", flags, None)?)
}

/// Covers a directory with an empty one in memory, readable by all.
///
/// # Errors
/// When there is no such directory, or the kernel refuses.
pub fn cover_with_empty(directory: &Path) -> io::Result<()> {
    let flags = MountFlags::NOSUID | MountFlags::NODEV;
    Ok(mount("tmpfs", directory, "tmpfs", flags, Some(c"mode=0755"))?)
}

/// Detaches a mount from its mount point at once; processes that still use it may finish.
///
/// # Errors
/// When nothing is mounted there.
pub fn detach(point: &Path) -> io::Result<()> {
    Ok(unmount(point, UnmountFlags::DETACH | UnmountFlags::NOFOLLOW)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_with_threads_cannot_enter_namespaces() {
        // A test runs beside the main thread of its binary, so there are two at least.
        let error = enter_new(&[NamespaceKind::Mount]).unwrap_err();
        assert!(error.to_string().contains("first thing in main"), "{error}");
    }

    #[test]
    fn a_process_is_in_a_namespace_of_each_kind() {
        for (kind, prefix) in [
            (NamespaceKind::Mount, "mnt:["),
            (NamespaceKind::Network, "net:["),
            (NamespaceKind::Pid, "pid:["),
            (NamespaceKind::Ipc, "ipc:["),
            (NamespaceKind::Uts, "uts:["),
            (NamespaceKind::User, "user:["),
        ] {
            let name = of_process(std::process::id(), kind).unwrap();
            assert!(name.starts_with(prefix), "{name}");
        }
    }
}
