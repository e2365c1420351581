//! The control groups of containers, as far as a shim looks into them: who is in them, and whether memory ran out.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use oarsman_host::cgroups::{Hierarchy, HierarchyKind, hierarchies};
use oarsman_host::mounts;
use rustix::fs::rmdir;
use rustix::io::Errno;

use super::exec::move_into;
use super::reap::kill_process;

/// How often the leftovers of an exec are moved into the container's group: they may be forking.
const MOST_MOVES: usize = 5;

/// Where to look, found once.
#[derive(Clone, Debug)]
pub(crate) struct ContainerCgroups {
    all: Vec<Hierarchy>,
    /// In which processes are listed, and in which an exec has a group of its own.
    processes: Option<Hierarchy>,
    memory: Option<Hierarchy>,
}

impl ContainerCgroups {
    pub(crate) fn discover() -> io::Result<Self> {
        let all = hierarchies(&mounts::current()?);
        let of = |controller: &str| {
            let has = |h: &&Hierarchy| matches!(&h.kind, HierarchyKind::V1(names) if names.iter().any(|name| name == controller));
            all.iter().find(has).cloned()
        };
        let unified = || all.iter().find(|h| h.kind == HierarchyKind::V2).cloned();
        let is_v1 = of("memory").is_some();
        Ok(Self {
            processes: if is_v1 { of("freezer").or_else(|| of("devices")) } else { unified() },
            memory: of("memory").or_else(unified),
            all,
        })
    }

    /// Removes the groups of a container whose processes have all ended. False when something is left.
    pub(super) fn remove_empty(&self, cgroup: &Path) -> bool {
        let remove = |hierarchy: &Hierarchy| rmdir(hierarchy.directory(cgroup));
        self.all.iter().all(|hierarchy| matches!(remove(hierarchy), Ok(()) | Err(Errno::NOENT)))
    }

    /// The directory of an exec's own group. In v2 it is allowed below a group with processes because it has no controllers.
    pub(super) fn exec_group(&self, cgroup: &Path, name: &str) -> Option<PathBuf> {
        Some(self.processes.as_ref()?.directory(cgroup).join(name))
    }

    /// Kills everything of a container, its execs too.
    pub(super) fn signal_container(&self, cgroup: &Path, send: impl Fn(u32)) {
        let Some(hierarchy) = &self.processes else { return };
        hierarchy.processes(cgroup).unwrap_or_default().into_iter().for_each(send);
    }

    /// Whether the kernel has killed a process of the group for want of memory.
    pub(super) fn had_oom_kill(&self, cgroup: &Path) -> bool {
        let Some(memory) = &self.memory else { return false };
        let file =
            if memory.kind == HierarchyKind::V2 { "memory.events" } else { "memory.oom_control" };
        let text = fs::read_to_string(memory.directory(cgroup).join(file)).unwrap_or_default();
        let count = text.lines().find_map(|line| line.strip_prefix("oom_kill "));
        count.is_some_and(|count| count.trim() != "0")
    }
}

fn members(group: &Path) -> Vec<u32> {
    let text = fs::read_to_string(group.join("cgroup.procs")).unwrap_or_default();
    text.lines().filter_map(|pid| pid.parse().ok()).filter(|pid| *pid != 0).collect()
}

/// Kills what is in an exec's group, which is given by its directory.
pub(super) fn kill_exec(group: &Path) {
    for pid in members(group) {
        kill_process(pid);
    }
}

/// Whether nothing of an exec is left.
pub(super) fn is_exec_gone(group: &Path) -> bool {
    members(group).is_empty()
}

/// Removes an exec's group; what it has left behind belongs to the container.
pub(super) fn release_exec(group: &Path) {
    let Some(parent) = group.parent() else { return };
    for _ in 0..MOST_MOVES {
        for pid in members(group) {
            // One that has ended meanwhile cannot be moved.
            move_into(parent, pid).unwrap_or_default();
        }
        if fs::remove_dir(group).is_ok() {
            return;
        }
    }
}
