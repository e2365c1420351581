//! Removes what a container or a failed create has left.

use std::io;
use std::path::Path;

use oarsman_host::cgroups::CgroupManager;

use super::HelperError;
use crate::directory::{ContainerDirectory, ShimDirectory};
use crate::file_io::read_json;
use crate::protocol::CreateRequest;

/// Removes a container's control group, libcontainer's state, and the container's directory at last.
pub(super) fn delete(
    shim: &ShimDirectory,
    directory: &ContainerDirectory,
    id: &str,
) -> Result<(), HelperError> {
    kill_container(shim, directory, id)?;
    remove_files(shim, directory, id)
}

/// Removes libcontainer's state of a container, and the container's directory at last.
pub(crate) fn remove_files(
    shim: &ShimDirectory,
    directory: &ContainerDirectory,
    id: &str,
) -> Result<(), HelperError> {
    remove_tree(&shim.libcontainer().join(id))?;
    remove_tree(directory.path())
}

/// Kills what is in a container's control group, and removes the group and libcontainer's state.
pub(crate) fn kill_container(
    shim: &ShimDirectory,
    directory: &ContainerDirectory,
    id: &str,
) -> Result<(), HelperError> {
    let request: Option<CreateRequest> =
        read_json(&directory.request()).map_err(HelperError::io("cannot read the request"))?;
    let spec = request.map(|request| request.spec);
    let linux = spec.as_ref().and_then(|spec| spec.linux().as_ref());
    if let Some(group) = linux.and_then(|linux| linux.cgroups_path().as_deref()) {
        CgroupManager::discover(group)?.destroy(group)?;
    }
    remove_tree(&shim.libcontainer().join(id))
}

fn remove_tree(path: &Path) -> Result<(), HelperError> {
    match std::fs::remove_dir_all(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(HelperError::Io {
            what: format!("cannot remove {}", path.display()),
            source: error,
        }),
        _ => Ok(()),
    }
}
