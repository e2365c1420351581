//! A pod's directory, and what of it is not a volume.

use std::fs::{self, File, Permissions};
use std::io::{self, Read};
use std::os::unix::fs::{FileExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use k8s_openapi::api::core::v1::Pod;
use oarsman_core::cri_spec::PodPaths;
use oarsman_core::ids::PodUid;
use oarsman_host::tree::{self, RemoveTreeError};
use rustix::fs::{FallocateFlags, fallocate};
use rustix::io::Errno;

use super::PodDirectories;
use crate::error::{FileError, failed};
use crate::files::{OUR_DIRECTORY, make_directory, names_in, unless_gone};

/// A container of any user writes its termination message.
const EVERYBODY_WRITES: u32 = 0o666;
/// A container of any user reads its hosts file.
const EVERYBODY_READS: u32 = 0o644;

/// A container can write to its hosts file: what it made longer is not read.
const LONGEST_HOSTS: u64 = 1 << 20;

/// The directory of all pods' directories.
const PODS: &str = "pods";

/// Makes what all pods share.
pub(super) fn create_shared_directories(root: &Path) -> Result<(), FileError> {
    make_directory(root, OUR_DIRECTORY)?;
    make_directory(&root.join(PODS), OUR_DIRECTORY)
}

impl PodDirectories {
    pub(super) fn make_directories(&self, pod: &Pod, paths: &PodPaths) -> Result<(), FileError> {
        let all = [paths.directory().to_owned(), paths.volumes(), paths.plugins()];
        all.iter().try_for_each(|directory| make_directory(directory, OUR_DIRECTORY))?;
        self.logs.make_directory(pod, None)
    }

    /// Pods that have a directory.
    pub(super) fn with_directories(&self) -> Result<impl Iterator<Item = PodUid>, FileError> {
        Ok(names_in(&self.settings.root.join(PODS))?.into_iter().map(PodUid::from))
    }
}

/// Removes a pod's directory; false when there is more in it than was removed at once. Mounts in it may hold data of users: they stay,
/// and so do the directories above them.
pub(super) fn remove_directory(paths: &PodPaths) -> Result<bool, FileError> {
    let directory = paths.directory();
    is_removed(tree::remove_tree(directory)).map_err(failed("remove the directory", directory))
}

/// Whether a tree is gone, and not only a part of it.
pub(super) fn is_removed(removed: Result<(), RemoveTreeError>) -> Result<bool, RemoveTreeError> {
    match removed {
        Err(RemoveTreeError::Unfinished { .. }) => Ok(false),
        removed => removed.map(|()| true),
    }
}

/// An empty file for a container's termination message. The one of the container before the last is removed.
pub(super) fn make_termination_message(
    paths: &PodPaths,
    container: &str,
    restart_count: u32,
) -> Result<PathBuf, FileError> {
    let directory = paths.container(container);
    make_directory(&directory, OUR_DIRECTORY)?;
    // The container before the last is gone or about to be removed, and its message is in the status.
    let stale = restart_count.checked_sub(2).map(|count| directory.join(name_of(count)));
    if let Some(stale) = stale {
        unless_gone(fs::remove_file(&stale)).map_err(failed("remove", &stale))?;
    }
    let path = directory.join(name_of(restart_count));
    empty_file(&path).map_err(failed("make the file", &path))?;
    Ok(path)
}

/// Writes over the file that is there: containers that run have that very one mounted.
pub(super) fn write_hosts(paths: &PodPaths, content: &str) -> Result<PathBuf, FileError> {
    let path = paths.hosts();
    overwrite(&path, content.as_bytes()).map_err(failed("write", &path))?;
    Ok(path)
}

/// On a full disk the file stays as it was: room is made first, nothing is cut off before all is written, and what was there is put
/// back when it cannot be.
fn overwrite(path: &Path, content: &[u8]) -> io::Result<()> {
    let mut options = File::options();
    options.read(true).write(true).create(true).truncate(false).mode(EVERYBODY_READS);
    let mut file = options.open(path)?;
    file.set_permissions(Permissions::from_mode(EVERYBODY_READS))?;
    let mut before = Vec::new();
    Read::by_ref(&mut file).take(LONGEST_HOSTS).read_to_end(&mut before)?;
    if before == content {
        return Ok(());
    }
    match fallocate(&file, FallocateFlags::KEEP_SIZE, 0, content.len() as u64) {
        // Not every file system can.
        Ok(()) | Err(Errno::OPNOTSUPP | Errno::INVAL) => {}
        Err(error) => return Err(error.into()),
    }
    let written = file.write_all_at(content, 0).and_then(|()| file.set_len(content.len() as u64));
    written.inspect_err(|_| {
        let put_back = file.write_all_at(&before, 0).and_then(|()| file.set_len(before.len() as u64));
        if let Err(error) = put_back {
            tracing::error!(%error, path = %path.display(), "hosts file not restored after a failed write");
        }
    })
}

/// Go's kubelet draws these names; any eight hex digits will do.
fn name_of(restart_count: u32) -> String {
    format!("{restart_count:08x}")
}

fn empty_file(path: &Path) -> io::Result<()> {
    let mut options = File::options();
    options.write(true).create(true).truncate(true).mode(EVERYBODY_WRITES);
    // Not every umask leaves the mode as it is.
    options.open(path)?.set_permissions(Permissions::from_mode(EVERYBODY_WRITES))
}
