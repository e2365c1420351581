//! File locks: one agent to a root directory, and one kubelet to a runtime.

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use rustix::fs::{FlockOperation, flock};

/// The directory of the lock files of runtimes.
const RUNTIMES: &str = "/run/oarsman";

/// The name of a root directory's lock file.
const OF_ROOT: &str = "oarsman.lock";

/// A lock that is held until it is dropped, or its process ends, however that happens.
#[derive(Debug)]
pub(crate) struct FileLock {
    file: File,
}

/// A child that was forked and has not executed its program yet holds the file open, too: closing it would not end the lock.
impl Drop for FileLock {
    fn drop(&mut self) {
        flock(&self.file, FlockOperation::Unlock).ok();
    }
}

impl FileLock {
    /// Locks a root directory.
    pub(crate) fn of_root(root: &Path) -> Result<Self> {
        let held = "give this agent another one with --root-dir, or stop the other agent";
        acquire(&of_root(root), &format!("the root directory {}", root.display()), held)
    }

    /// Locks a runtime, so that no other kubelet takes its pods for orphans.
    pub(crate) fn of_runtime(endpoint: &str) -> Result<Self> {
        let socket = endpoint.trim_start_matches("unix://").trim_start_matches('/');
        let file = PathBuf::from(RUNTIMES).join(format!("{}.lock", socket.replace('/', "_")));
        acquire(&file, &format!("the runtime {endpoint}"), "stop the other kubelet first")
    }
}

/// The agent that holds the lock of a root directory, if one runs.
pub(crate) fn holder_of_root(root: &Path) -> Option<String> {
    let path = of_root(root);
    let file = File::open(&path).ok()?;
    if flock(&file, FlockOperation::NonBlockingLockShared).is_ok() {
        return None;
    }
    Some(std::fs::read_to_string(path).ok()?.trim().to_owned())
}

fn of_root(root: &Path) -> PathBuf {
    root.join(OF_ROOT)
}

fn acquire(path: &Path, what: &str, fix: &str) -> Result<FileLock> {
    let cannot = || format!("cannot lock {what} by the file {}", path.display());
    if let Some(directory) = path.parent() {
        std::fs::create_dir_all(directory).with_context(cannot)?;
    }
    let mut options = File::options();
    let mut file = options
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .open(path)
        .with_context(cannot)?;
    if flock(&file, FlockOperation::NonBlockingLockExclusive).is_err() {
        let holder = std::fs::read_to_string(path).with_context(cannot)?;
        bail!("{what} is held by another agent ({}): {fix}", holder.trim());
    }
    file.set_len(0).with_context(cannot)?;
    writeln!(file, "process {}", std::process::id()).with_context(cannot)?;
    Ok(FileLock { file })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_root_directory_has_one_agent_at_a_time() {
        let root = tempfile::tempdir().unwrap();
        let first = FileLock::of_root(root.path()).unwrap();
        let refused = FileLock::of_root(root.path()).unwrap_err().to_string();
        assert!(refused.contains(&format!("process {}", std::process::id())), "{refused}");
        assert!(refused.contains("--root-dir"), "{refused}");
        assert_eq!(holder_of_root(root.path()), Some(format!("process {}", std::process::id())));
        drop(first);
        assert_eq!(holder_of_root(root.path()), None);
        FileLock::of_root(root.path()).unwrap();
    }
}
