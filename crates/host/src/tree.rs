//! Removing a tree of directories that containers could write to.
//!
//! Such a tree may hold symbolic links to anywhere, directories nested without bound, and mounts of
//! volumes whose data must outlive the pod. So nothing is followed, nothing recurses, and a look
//! for mounts comes before the first removal: when there is one, the whole tree stays as it is.

#[cfg(test)]
mod tests;
mod walk;

use std::io;
use std::path::{Path, PathBuf};

use walk::{Walk, WalkPurpose};

/// A tree that could not be removed.
#[derive(Debug, thiserror::Error)]
pub enum RemoveTreeError {
    /// Something is mounted in it.
    #[error("{} is a mount point, so {} is not removed: unmount it first", .point.display(), .tree.display())]
    Mounted {
        /// Where.
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
    /// There is nothing that could be removed at such a path.
    #[error("{} does not name a directory within another", .path.display())]
    Nameless {
        /// The path.
        path: PathBuf,
    },
    /// The kernel refused.
    #[error("cannot remove {}: {source}", .path.display())]
    Failed {
        /// The file or directory that stays.
        path: PathBuf,
        /// The kernel's error.
        source: io::Error,
    },
}

/// Removes a directory with all that is in it; one that is not there is no error.
///
/// A symbolic link at the path or below it is removed itself and never followed. The directories
/// above the path are the caller's to trust.
///
/// # Errors
/// When something is mounted at the path or below it, then nothing is removed; or when the kernel
/// refuses, then some of it may be gone.
pub fn remove_tree(path: &Path) -> Result<(), RemoveTreeError> {
    let Some(mut walk) = Walk::start(path, WalkPurpose::FindMounts)? else {
        return Ok(());
    };
    walk.run()?;
    match Walk::start(path, WalkPurpose::Remove)? {
        Some(mut walk) => walk.run(),
        None => Ok(()),
    }
}
