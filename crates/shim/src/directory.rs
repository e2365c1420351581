//! Where a shim keeps what it knows.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use oarsman_host::files::is_plain_name;

/// The directory of one shim. It cannot outlive a boot, and is best in memory.
///
/// - `socket`: where it answers; `lock`: held as long as it lives; `shim.json`: what it is
/// - `containers/ID`: `ContainerDirectory`
/// - `libcontainer/ID`: libcontainer's own state
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShimDirectory(PathBuf);

impl ShimDirectory {
    /// At that absolute path.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self(path.into())
    }

    /// The directory itself.
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// The name of the socket in it.
    pub(crate) const SOCKET: &'static str = "socket";

    pub(crate) fn lock(&self) -> PathBuf {
        self.0.join("lock")
    }

    /// Removes it, the lock last: a shim that is started before finds that another one lives. One that is started after makes a lock file of its
    /// own, which keeps the directory from being removed.
    pub(crate) fn remove(&self) -> io::Result<()> {
        for entry in fs::read_dir(&self.0)? {
            let entry = entry?;
            match entry.file_type()?.is_dir() {
                true => fs::remove_dir_all(entry.path())?,
                false if entry.path() == self.lock() => {}
                false => fs::remove_file(entry.path())?,
            }
        }
        fs::remove_file(self.lock())?;
        fs::remove_dir(&self.0)
    }

    pub(crate) fn libcontainer(&self) -> PathBuf {
        self.0.join("libcontainer")
    }

    pub(crate) fn containers(&self) -> PathBuf {
        self.0.join("containers")
    }

    /// None if the id is not a plain name that libcontainer takes.
    pub(crate) fn container(&self, id: &str) -> Option<ContainerDirectory> {
        let allowed = |c: char| c.is_ascii_alphanumeric() || "_+-.".contains(c);
        let is_id = is_plain_name(id) && id.len() <= 200 && id.chars().all(allowed);
        is_id.then(|| ContainerDirectory(self.containers().join(id)))
    }
}

/// The files of one container.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ContainerDirectory(PathBuf);

impl ContainerDirectory {
    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    /// What was asked for.
    pub(crate) fn request(&self) -> PathBuf {
        self.0.join("request.json")
    }

    /// The bundle that libcontainer reads.
    pub(crate) fn bundle(&self) -> PathBuf {
        self.0.join("bundle")
    }

    /// The last [`crate::protocol::ContainerReport`].
    pub(crate) fn report(&self) -> PathBuf {
        self.0.join("report.json")
    }

    /// The process of an exec, and what its helper tells. `name` is `create`, `delete` or an exec's.
    pub(crate) fn of_step(&self, name: &str, file: &str) -> PathBuf {
        self.0.join(format!("{name}.{file}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_is_removed_with_all_that_is_in_it() {
        let files = tempfile::tempdir().unwrap();
        let directory = ShimDirectory::new(files.path().join("shim"));
        fs::create_dir_all(directory.containers().join("one")).unwrap();
        for file in [directory.lock(), directory.containers().join("one/report.json")] {
            fs::write(file, "").unwrap();
        }
        directory.remove().unwrap();
        assert!(!directory.path().exists());
    }
}
