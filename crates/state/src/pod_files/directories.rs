//! A pod's directory, and what of it is not a volume.

use std::fs::{self, File, Permissions};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use k8s_openapi::api::core::v1::Pod;
use oarsman_core::cri_spec::PodPaths;
use oarsman_core::ids::PodUid;
use oarsman_host::tree;

use super::PodDirectories;
use crate::error::{FileError, failed};
use crate::files::{OUR_DIRECTORY, make_directory, names_in, unless_gone};

/// A container of any user writes its termination message.
const EVERYBODY_WRITES: u32 = 0o666;
/// A container of any user reads its hosts file.
const EVERYBODY_READS: u32 = 0o644;

impl PodDirectories {
    /// Makes what all pods share.
    pub(super) fn create_shared_directories(&self) -> Result<(), FileError> {
        make_directory(&self.settings.root, OUR_DIRECTORY)?;
        make_directory(&self.pods_directory(), OUR_DIRECTORY)?;
        make_directory(&self.settings.pod_logs, 0o755)?;
        self.settings.container_logs.iter().try_for_each(|links| make_directory(links, 0o755))
    }

    pub(super) fn pods_directory(&self) -> PathBuf {
        self.settings.root.join("pods")
    }

    pub(super) fn make_directories(&self, pod: &Pod, paths: &PodPaths) -> Result<(), FileError> {
        let all = [paths.directory().to_owned(), paths.volumes(), paths.plugins()];
        all.iter().try_for_each(|directory| make_directory(directory, OUR_DIRECTORY))?;
        self.make_log_directory(pod, None)
    }

    /// Pods that have a directory.
    pub(super) fn with_directories(&self) -> Result<impl Iterator<Item = PodUid>, FileError> {
        Ok(names_in(&self.pods_directory())?.into_iter().map(PodUid::from))
    }
}

/// Removes a pod's directory. Mounts in it may hold data of users: they stay, and so do the directories above them.
pub(super) fn remove_directory(paths: &PodPaths) -> Result<(), FileError> {
    let directory = paths.directory();
    tree::remove_tree(directory).map_err(failed("remove the directory", directory))
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
    let write = || {
        fs::write(&path, content)?;
        fs::set_permissions(&path, Permissions::from_mode(EVERYBODY_READS))
    };
    write().map_err(failed("write", &path))?;
    Ok(path)
}

/// Go's kubelet draws these names; any eight hex digits will do.
fn name_of(restart_count: u32) -> String {
    format!("{restart_count:08x}")
}

fn empty_file(path: &Path) -> std::io::Result<()> {
    let mut options = File::options();
    options.write(true).create(true).truncate(true).mode(EVERYBODY_WRITES);
    // Not every umask leaves the mode as it is.
    options.open(path)?.set_permissions(Permissions::from_mode(EVERYBODY_WRITES))
}
