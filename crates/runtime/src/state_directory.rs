//! The files of the runtime's state. Each is replaced as a whole, so that a kill at any moment leaves the old or the new one. Nothing is synced: a
//! power failure ends the boot, and with it all that the files are about.

use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use oarsman_shim::ShimDirectory;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::error::{EmbeddedRuntimeError, Outcome, failed};
use crate::settings::EmbeddedRuntimeSettings;

/// Where what is:
///
/// ```text
/// ROOT/sandboxes/ID/sandbox.json       with hostname, hosts, resolv.conf and shm beside it
/// ROOT/containers/ID/container.json    with spec.json, rootfs and volumes beside it
/// ROOT/shims/ID                        the directory of a sandbox's shim
/// ROOT/images, ROOT/network, ROOT/cni  those of image-store, pod-network and cni
/// ```
#[derive(Clone, Debug)]
pub(crate) struct StateDirectory {
    root: PathBuf,
}

impl StateDirectory {
    pub(crate) fn new(root: &Path) -> Self {
        Self { root: root.to_owned() }
    }

    pub(crate) fn images(&self) -> PathBuf {
        EmbeddedRuntimeSettings::image_directory(&self.root)
    }

    pub(crate) fn cni(&self) -> PathBuf {
        self.root.join("cni")
    }

    pub(crate) fn sandboxes(&self) -> PathBuf {
        EmbeddedRuntimeSettings::sandbox_directory(&self.root)
    }

    pub(crate) fn containers(&self) -> PathBuf {
        self.root.join("containers")
    }

    pub(crate) fn shims(&self) -> PathBuf {
        self.root.join("shims")
    }

    pub(crate) fn sandbox(&self, id: &str) -> PathBuf {
        self.sandboxes().join(id)
    }

    pub(crate) fn sandbox_record(&self, id: &str) -> PathBuf {
        self.sandbox(id).join("sandbox.json")
    }

    pub(crate) fn shm(&self, id: &str) -> PathBuf {
        self.sandbox(id).join("shm")
    }

    pub(crate) fn container(&self, id: &str) -> PathBuf {
        self.containers().join(id)
    }

    pub(crate) fn container_record(&self, id: &str) -> PathBuf {
        self.container(id).join("container.json")
    }

    pub(crate) fn spec(&self, id: &str) -> PathBuf {
        self.container(id).join("spec.json")
    }

    pub(crate) fn rootfs(&self, id: &str) -> PathBuf {
        self.container(id).join("rootfs")
    }

    pub(crate) fn volumes(&self, id: &str) -> PathBuf {
        self.container(id).join("volumes")
    }

    pub(crate) fn shim(&self, sandbox: &str) -> ShimDirectory {
        ShimDirectory::new(self.shims().join(sandbox))
    }
}

/// Makes a directory that only root comes near, with those above it.
pub(crate) fn make_directory(path: &Path) -> Outcome<()> {
    let made = DirBuilder::new().recursive(true).mode(0o700).create(path);
    made.map_err(failed("make the directory", path))
}

/// Removes a tree; fine when there is none.
pub(crate) fn remove_tree(path: &Path) -> Outcome<()> {
    match fs::remove_dir_all(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        other => other.map_err(failed("remove", path)),
    }
}

/// Replaces a file.
pub(crate) fn write_json<T: Serialize>(path: &Path, value: &T) -> Outcome<()> {
    let text = serde_json::to_vec(value).map_err(io::Error::from);
    let text = text.map_err(failed("serialise", path))?;
    let fresh = path.with_extension("new");
    fs::write(&fresh, text).map_err(failed("write", &fresh))?;
    fs::rename(&fresh, path).map_err(failed("replace", path))
}

/// A file's value; none when there is no file.
pub(crate) fn read_json<T: DeserializeOwned>(path: &Path) -> Outcome<Option<T>> {
    let text = match fs::read(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        other => other.map_err(failed("read", path))?,
    };
    let value = serde_json::from_slice(&text).map_err(io::Error::from);
    value.map(Some).map_err(failed("understand", path))
}

/// The names in a directory; none when there is none.
pub(crate) fn names_in(path: &Path) -> Outcome<Vec<String>> {
    let entries = match fs::read_dir(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        other => other.map_err(failed("list", path))?,
    };
    let name = |entry: io::Result<fs::DirEntry>| {
        Ok(entry.map_err(failed("list", path))?.file_name().to_string_lossy().into_owned())
    };
    entries.map(name).collect::<Result<Vec<_>, EmbeddedRuntimeError>>()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_replaced_as_a_whole_and_damage_is_told() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("record.json");
        assert_eq!(read_json::<u32>(&path).unwrap(), None);
        write_json(&path, &1_u32).unwrap();
        // What a kill in the middle of the next write leaves.
        fs::write(path.with_extension("new"), "2").unwrap();
        assert_eq!(read_json::<u32>(&path).unwrap(), Some(1));
        write_json(&path, &3_u32).unwrap();
        assert_eq!(read_json::<u32>(&path).unwrap(), Some(3));
        assert_eq!(names_in(directory.path()).unwrap(), ["record.json"]);
        fs::write(&path, "").unwrap();
        assert!(read_json::<u32>(&path).unwrap_err().to_string().contains("record.json"));
        remove_tree(&directory.path().join("none")).unwrap();
    }
}
