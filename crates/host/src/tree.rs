//! Removing a tree of directories that containers could write to.
//!
//! Such a tree may hold symbolic links to anywhere, directories nested without bound, and mounts of
//! volumes whose data must outlive the pod. So nothing is followed, nothing recurses, and a look
//! for mounts comes before the first removal: when there is one, the whole tree stays as it is.

#[cfg(test)]
mod tests;
mod walk;

use std::ffi::OsStr;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::path::{Path, PathBuf};
use std::{fs, io};

use crate::beneath::RootDirectory;
use crate::mounts;

use walk::{Walk, WalkPurpose};

/// A tree that could not be removed.
#[derive(Debug, thiserror::Error)]
pub enum RemoveTreeError {
    /// Something is mounted in it.
    #[error("{} is a mount point, so {} is not removed: unmount it first", .point.display(), .tree.display())]
    Mounted {
        /// The mount point that was found.
        point: PathBuf,
        /// The tree that was to be removed.
        tree: PathBuf,
    },
    /// A directory was moved while it was being removed.
    #[error("{} was moved while it was being removed: see who uses it, and try again", .path.display())]
    Moved {
        /// The directory, where it was.
        path: PathBuf,
    },
    /// There is more in it than one call removes.
    #[error("{} holds too many files to be removed at once: the rest is removed at the next try", .tree.display())]
    Unfinished {
        /// The tree, of which some is gone.
        tree: PathBuf,
    },
    /// There is nothing that could be removed at such a path.
    #[error("{} does not name a directory within another", .path.display())]
    Nameless {
        /// The path.
        path: PathBuf,
    },
    /// A call of the kernel failed.
    #[error("cannot remove {}: {source}", .path.display())]
    Failed {
        /// The file or directory that stays.
        path: PathBuf,
        /// The kernel's error.
        source: io::Error,
    },
}

/// Entries that are looked at for mounts one by one; for a larger tree the table of mounts is read, which is long on a node with many
/// pods.
const MAX_LOOK: usize = 4096;
/// Entries that one call removes: work for seconds, after which others have their turn.
const MAX_REMOVED: usize = 100_000;

/// Removes a directory with all that is in it; one that is not there is no error.
///
/// A symbolic link at the path or below it is removed itself and never followed. The directories
/// above the path are the caller's to trust.
///
/// # Errors
/// When something is mounted at the path or below it, then nothing is removed; when there is more in it than one call removes; or when
/// the kernel refuses, then some of it may be gone.
pub fn remove_tree(path: &Path) -> Result<(), RemoveTreeError> {
    let nameless = || RemoveTreeError::Nameless { path: path.to_owned() };
    let name = path.file_name().ok_or_else(nameless)?;
    let above = path.parent().filter(|above| !above.as_os_str().is_empty());
    match RootDirectory::open(above.unwrap_or(Path::new("."))) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(source) => Err(RemoveTreeError::Failed { path: path.to_owned(), source }),
        Ok(parent) => parent.remove_tree(name),
    }
}

/// Removes a directory of an opened one.
pub(crate) fn remove(parent: BorrowedFd<'_>, name: &OsStr) -> Result<(), RemoveTreeError> {
    remove_at_most(parent, name, MAX_REMOVED)
}

fn remove_at_most(
    parent: BorrowedFd<'_>,
    name: &OsStr,
    most: usize,
) -> Result<(), RemoveTreeError> {
    let failed = |source| RemoveTreeError::Failed { path: name.into(), source };
    // As the kernel has it, and as the table of mounts has it.
    let tree =
        fs::read_link(format!("/proc/self/fd/{}", parent.as_raw_fd())).map_err(failed)?.join(name);
    match Walk::start(parent, &tree, WalkPurpose::FindMounts, MAX_LOOK)?.run() {
        Err(error @ RemoveTreeError::Mounted { .. }) => return Err(error),
        Ok(()) => {}
        // It is large, or something in it does not answer, such as a mount whose server is gone.
        Err(_) => refuse_mounts(&tree)?,
    }
    Walk::start(parent, &tree, WalkPurpose::Remove, most)?.run()
}

fn refuse_mounts(tree: &Path) -> Result<(), RemoveTreeError> {
    let failed = |source| RemoveTreeError::Failed { path: tree.to_owned(), source };
    let mounts = mounts::current().map_err(failed)?;
    match mounts::beneath(&mounts, tree).next() {
        None => Ok(()),
        Some(mount) => {
            Err(RemoveTreeError::Mounted { point: mount.point.clone(), tree: tree.to_owned() })
        }
    }
}
