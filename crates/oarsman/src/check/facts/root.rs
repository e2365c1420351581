//! Facts about the agent's root directory.

use std::path::{Path, PathBuf};

use oarsman_host::mounts;
use rustix::fs::{Access, access};

use crate::lock;

/// Whether the directory can be written, and which agent holds it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RootFacts {
    pub(crate) path: PathBuf,
    pub(crate) is_there: bool,
    /// Why the directory, or its nearest existing parent, cannot be written.
    pub(crate) unwritable: Option<String>,
    /// The agent that holds the lock of the directory.
    pub(crate) holder: Option<String>,
    /// The mount point that the directory lies on, if that is not shared: mounts of containers do not reach the host then.
    pub(crate) unshared_mount: Option<PathBuf>,
}

impl RootFacts {
    pub(super) fn read(path: &Path) -> Self {
        let there = nearest(path);
        let unwritable = access(there, Access::WRITE_OK | Access::EXEC_OK).err();
        Self {
            path: path.to_owned(),
            is_there: there == path,
            unwritable: unwritable.map(|error| format!("{}: {error}", there.display())),
            holder: lock::holder_of_root(path),
            unshared_mount: unshared_mount(there),
        }
    }
}

fn unshared_mount(path: &Path) -> Option<PathBuf> {
    let (path, table) = (path.canonicalize().ok()?, mounts::current().ok()?);
    let on = mounts::mount_of(&table, &path)?;
    (!on.is_shared()).then(|| on.point.clone())
}

/// A path, or its nearest parent directory that exists.
pub(super) fn nearest(path: &Path) -> &Path {
    path.ancestors().find(|path| path.exists()).unwrap_or(Path::new("/"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lock::FileLock;

    #[test]
    fn a_root_directory_is_free_until_an_agent_takes_it() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("deep/root");
        let found = RootFacts::read(&path);
        assert_eq!((found.is_there, found.unwritable, found.holder), (false, None, None));
        assert!(!path.exists(), "looking makes nothing");
        let lock = FileLock::of_root(&path).unwrap();
        let holder = RootFacts::read(&path).holder.unwrap();
        assert_eq!(holder, format!("process {}", std::process::id()));
        drop(lock);
        assert_eq!(RootFacts::read(&path).holder, None);
        FileLock::of_root(&path).unwrap();
    }
}
