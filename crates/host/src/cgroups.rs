//! Control groups: the hierarchies of this machine, the groups in them, and the removal of groups.
//!
//! There may be one tree (v2), one a controller (v1), or v1 trees with a v2 tree beside them
//! (hybrid); all three are a list of [`Hierarchy`]. [`CgroupManager`] makes and destroys one group in all
//! of them at once, and never reaches outside of the root it was given.

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::path::{Component, Path, PathBuf};
use std::{fs, io};

use crate::mounts::Mount;

mod create;
mod destroy;
mod error;
mod files;
mod manager;
mod swap;
#[cfg(test)]
mod tests;
mod values;

pub use error::CgroupError;
pub use manager::{CgroupLayout, CgroupManager};

/// The options of a v1 mount that name controllers.
const V1_CONTROLLERS: [&str; 14] = [
    "blkio",
    "cpu",
    "cpuacct",
    "cpuset",
    "devices",
    "freezer",
    "hugetlb",
    "memory",
    "misc",
    "net_cls",
    "net_prio",
    "perf_event",
    "pids",
    "rdma",
];

/// What a hierarchy is for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HierarchyKind {
    /// A v1 tree with its controllers, or with a name alone (`name=systemd`).
    V1(Vec<String>),
    /// The v2 tree. Beside v1 trees it may be without any controller.
    V2,
}

/// One mounted tree of groups.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hierarchy {
    /// What it is for.
    pub kind: HierarchyKind,
    /// Where it is mounted.
    pub root: PathBuf,
}

/// A group that could not be removed, most often because a process is still in it.
#[derive(Debug, thiserror::Error)]
#[error("cannot remove the control group {}: {source}", .group.display())]
pub struct RemoveGroupError {
    /// The path of the cgroup below the hierarchies.
    pub group: PathBuf,
    /// The kernel's error.
    pub source: io::Error,
}

/// The hierarchies among `mounts`, each once, even where one is mounted in two places.
pub fn hierarchies(mounts: &[Mount]) -> Vec<Hierarchy> {
    let mut seen = BTreeSet::new();
    mounts
        .iter()
        .filter_map(|mount| Some((mount, kind(mount)?)))
        .filter(|(mount, _)| seen.insert(mount.device.clone()))
        .map(|(mount, kind)| Hierarchy { kind, root: mount.point.clone() })
        .collect()
}

fn kind(mount: &Mount) -> Option<HierarchyKind> {
    match mount.fs_type.as_str() {
        "cgroup2" => Some(HierarchyKind::V2),
        "cgroup" => Some(HierarchyKind::V1(
            mount
                .super_options
                .split(',')
                .filter(|option| option.starts_with("name=") || V1_CONTROLLERS.contains(option))
                .map(str::to_owned)
                .collect(),
        )),
        _ => None,
    }
}

impl Hierarchy {
    /// The directory of a group, given as an absolute path within the hierarchy.
    pub fn directory(&self, group: &Path) -> PathBuf {
        let names = group.components().filter(|part| matches!(part, Component::Normal(_)));
        names.fold(self.root.clone(), |directory, name| directory.join(name))
    }

    /// Every group but the root one, as absolute paths within the hierarchy.
    ///
    /// # Errors
    /// When the tree cannot be read. Groups that go away meanwhile are no error.
    pub fn groups(&self) -> io::Result<BTreeSet<PathBuf>> {
        let mut found = BTreeSet::new();
        let mut to_visit = vec![self.root.clone()];
        while let Some(directory) = to_visit.pop() {
            for child in children(&directory)? {
                if let Ok(group) = child.strip_prefix(&self.root) {
                    found.insert(Path::new("/").join(group));
                }
                to_visit.push(child);
            }
        }
        Ok(found)
    }

    /// The groups right below one, by the names of their directories. None if there is no such
    /// group.
    ///
    /// # Errors
    /// When the tree cannot be read.
    pub fn below(&self, group: &Path) -> io::Result<BTreeSet<OsString>> {
        let found = children(&self.directory(group))?;
        Ok(found.iter().filter_map(|child| child.file_name()).map(OsStr::to_owned).collect())
    }

    /// Makes a group and its parents; it may be there already.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn create(&self, group: &Path) -> io::Result<()> {
        fs::create_dir_all(self.directory(group))
    }

    /// The processes in a group or below it. None if there is no such group.
    ///
    /// # Errors
    /// When the tree cannot be read.
    pub fn processes(&self, group: &Path) -> io::Result<BTreeSet<u32>> {
        let mut found = BTreeSet::new();
        let mut to_visit = vec![self.directory(group)];
        while let Some(directory) = to_visit.pop() {
            let pids = match fs::read_to_string(directory.join("cgroup.procs")) {
                Err(error) if is_threaded(&error) => String::new(),
                pids => gone_is_default(pids)?,
            };
            found.extend(pids.lines().filter_map(|pid| pid.parse::<u32>().ok()));
            to_visit.extend(children(&directory)?);
        }
        Ok(found)
    }

    /// Removes a group and all groups below it. One that does not exist is no error.
    ///
    /// # Errors
    /// When one of them still has processes; what could be removed by then is gone.
    pub fn remove(&self, group: &Path) -> Result<(), RemoveGroupError> {
        remove_tree(&self.directory(group))
    }
}

/// Groups can only be removed one by one and from below: their files are not real ones.
fn remove_tree(directory: &Path) -> Result<(), RemoveGroupError> {
    let failed = |source| RemoveGroupError { group: directory.to_owned(), source };
    for child in children(directory).map_err(failed)? {
        remove_tree(&child)?;
    }
    gone_is_default(fs::remove_dir(directory)).map_err(failed)
}

fn children(directory: &Path) -> io::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    let Some(entries) = gone_is_default(fs::read_dir(directory).map(Some))? else {
        return Ok(found);
    };
    for entry in entries {
        let Some(entry) = gone_is_default(entry.map(Some))? else {
            break;
        };
        if entry.file_type()?.is_dir() {
            found.push(entry.path());
        }
    }
    Ok(found)
}

/// Groups come and go while we look: one that has gone has nothing in it.
fn gone_is_default<T: Default>(result: io::Result<T>) -> io::Result<T> {
    match result {
        Err(error) if is_gone(&error) => Ok(T::default()),
        other => other,
    }
}

/// The processes of a threaded group are those of the group above it, which lists them.
fn is_threaded(error: &io::Error) -> bool {
    error.raw_os_error() == Some(rustix::io::Errno::OPNOTSUPP.raw_os_error())
}

/// Reading a file of a group that was removed after it was opened gives ENODEV.
fn is_gone(error: &io::Error) -> bool {
    let no_device = rustix::io::Errno::NODEV.raw_os_error();
    error.kind() == io::ErrorKind::NotFound || error.raw_os_error() == Some(no_device)
}
