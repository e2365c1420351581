//! Destroys a group: kills its processes, then removes its directories.

use std::collections::BTreeSet;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

use super::{
    CgroupError, CgroupLayout, CgroupManager, Hierarchy, HierarchyKind, RemoveGroupError, children,
    files,
};
use crate::{descriptor_reserve, processes};

/// How often the processes of a group are killed: they may be forking meanwhile.
const KILL_ROUNDS: usize = 5;
/// How long each round waits for a process that was killed.
const KILL_TIMEOUT: Timespec = Timespec { tv_sec: 0, tv_nsec: 200_000_000 };
/// How many processes are held at once: a group may have more of them than we may have files open.
const MOST_HANDLES: usize = 256;
/// How often a directory is removed that the kernel still finds busy, and the wait between.
const REMOVALS: usize = 20;
const BETWEEN_REMOVALS: Duration = Duration::from_millis(25);

impl CgroupManager {
    /// Kills what lives in a group or below it, and takes the group away from every hierarchy. One
    /// that is not there is no error.
    ///
    /// Blocks until the processes are dead, a few seconds at most.
    ///
    /// # Errors
    /// When the group is outside of the root, or one of its processes or directories stays.
    pub fn destroy(&self, group: &Path) -> Result<(), CgroupError> {
        self.check_ours(group)?;
        descriptor_reserve::retry(CgroupError::is_out_of_descriptors, || {
            self.kill_all(group)?;
            let removals: Vec<_> = self.all.iter().map(|h| self.remove_from(h, group)).collect();
            removals.into_iter().collect()
        })
    }

    /// Takes a group away in which there is nothing, neither processes nor groups; one in which there is something stays.
    ///
    /// # Errors
    /// When the group is outside of the root, or the kernel refuses for another reason.
    pub fn remove_if_empty(&self, group: &Path) -> Result<(), CgroupError> {
        self.check_ours(group)?;
        for hierarchy in &self.all {
            let directory = hierarchy.directory(group);
            match rustix::fs::rmdir(&directory) {
                Ok(()) | Err(Errno::NOENT | Errno::NOTEMPTY | Errno::BUSY) => {}
                Err(error) => {
                    return Err(RemoveGroupError { group: directory, source: error.into() }.into());
                }
            }
        }
        Ok(())
    }

    fn kill_all(&self, group: &Path) -> Result<(), CgroupError> {
        for _ in 0..KILL_ROUNDS {
            let living = self.processes(group)?;
            if living.is_empty() {
                return Ok(());
            }
            self.kill(group, &living)?;
        }
        self.surviving_process(group)?.map_or(Ok(()), Err)
    }

    fn kill(&self, group: &Path, living: &BTreeSet<u32>) -> Result<(), CgroupError> {
        if living.contains(&std::process::id()) {
            return Err(CgroupError::Ourselves { group: group.to_owned() });
        }
        self.unfreeze(group)?;
        let killed = self.kill_at_once(group)?;
        let failed = |pid, source| CgroupError::Kill { group: group.to_owned(), pid, source };
        let living: Vec<u32> = living.iter().copied().collect();
        for some in living.chunks(MOST_HANDLES) {
            let handles = handles(some, failed)?;
            if !killed {
                self.kill_one_by_one(group, &handles)?;
            }
            let ended = handles.iter().all(|(_, handle)| wait_for_exit(handle));
            if killed && !ended {
                break;
            }
        }
        Ok(())
    }

    /// Newer v2 kernels kill a whole group at once, however fast it forks.
    fn kill_at_once(&self, group: &Path) -> Result<bool, CgroupError> {
        let tree = self.needed.first().filter(|_| self.layout() == CgroupLayout::V2);
        let file = tree.map(|tree| tree.directory(group).join("cgroup.kill"));
        match file.filter(|file| file.exists()) {
            Some(file) => files::write(&file, "1").map(|()| true),
            None => Ok(false),
        }
    }

    /// A pid may have been reused by a process of another group since it was read. So handles of the processes are opened first, and then those
    /// whose pids are still in the group are killed.
    fn kill_one_by_one(&self, group: &Path, handles: &[(u32, OwnedFd)]) -> Result<(), CgroupError> {
        let still = self.processes(group)?;
        for (pid, handle) in handles.iter().filter(|(pid, _)| still.contains(pid)) {
            match pidfd_send_signal(handle, Signal::KILL) {
                Ok(()) | Err(Errno::SRCH) => (),
                Err(error) => {
                    let (group, source) = (group.to_owned(), error.into());
                    return Err(CgroupError::Kill { group, pid: *pid, source });
                }
            }
        }
        Ok(())
    }

    /// A frozen process of v1 cannot be killed.
    fn unfreeze(&self, group: &Path) -> Result<(), CgroupError> {
        let freezes = |h: &&Hierarchy| matches!(&h.kind, HierarchyKind::V1(names) if names.iter().any(|name| name == "freezer"));
        let Some(freezer) = self.all.iter().find(freezes) else {
            return Ok(());
        };
        let mut to_visit = vec![freezer.directory(group)];
        while let Some(directory) = to_visit.pop() {
            let file = directory.join("freezer.state");
            if files::read(&file).is_ok_and(|state| state.trim() != "THAWED") {
                files::write(&file, "THAWED")?;
            }
            let below = children(&directory);
            to_visit.extend(below.map_err(|source| CgroupError::Read { path: directory, source })?);
        }
        Ok(())
    }

    fn remove_from(&self, hierarchy: &Hierarchy, group: &Path) -> Result<(), CgroupError> {
        for _ in 0..REMOVALS {
            match hierarchy.remove(group) {
                Ok(()) => return Ok(()),
                Err(error) if is_busy(&error) => {
                    self.kill_all(group)?;
                    pause();
                }
                Err(error) => return Err(error.into()),
            }
        }
        hierarchy
            .remove(group)
            .or_else(|error| Err(self.surviving_process(group)?.unwrap_or(error.into())))
    }

    /// The error that names a process which is still in the group, if there is one.
    fn surviving_process(&self, group: &Path) -> Result<Option<CgroupError>, CgroupError> {
        let living = self.processes(group)?;
        let name = |pid| processes::find(pid).map(|process| process.name).unwrap_or_default();
        Ok(living.first().map(|&pid| CgroupError::Survivor {
            group: PathBuf::from(group),
            pid,
            name: name(pid),
        }))
    }
}

/// Handles of those processes that are there still. Pid 0 stands for a process outside of our pid
/// namespace, which we cannot name.
fn handles(
    pids: &[u32],
    failed: impl Fn(u32, io::Error) -> CgroupError,
) -> Result<Vec<(u32, OwnedFd)>, CgroupError> {
    let mut found = Vec::new();
    for &pid in pids {
        let Some(raw) = i32::try_from(pid).ok().and_then(Pid::from_raw) else { continue };
        match pidfd_open(raw, PidfdFlags::empty()) {
            Ok(handle) => found.push((pid, handle)),
            Err(Errno::SRCH) => (),
            // The next round takes the next ones.
            Err(Errno::MFILE | Errno::NFILE) if !found.is_empty() => break,
            Err(error) => return Err(failed(pid, error.into())),
        }
    }
    Ok(found)
}

/// Waits for the end of a process; false if it takes too long.
fn wait_for_exit(handle: &OwnedFd) -> bool {
    let mut ends = [PollFd::new(handle, PollFlags::IN)];
    poll(&mut ends, Some(&KILL_TIMEOUT)).is_ok_and(|ready| ready > 0)
}

fn is_busy(error: &RemoveGroupError) -> bool {
    error.source.raw_os_error() == Some(Errno::BUSY.raw_os_error())
}

#[expect(
    clippy::disallowed_methods,
    reason = "the kernel gives no notification when a v1 group is free"
)]
fn pause() {
    std::thread::sleep(BETWEEN_REMOVALS);
}
