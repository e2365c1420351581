//! File locks: one agent to a root directory, and one kubelet to a runtime.

mod directories;
mod holders;
#[cfg(test)]
mod tests;

use std::fs::{File, Permissions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use rustix::fs::{FlockOperation, Mode, OFlags, flock};

pub(crate) use directories::{prepare_directory, prepare_root};

/// The directory of the lock files of runtimes.
const RUNTIMES: &str = "/run/oarsman";

/// The name of a root directory's lock file.
const OF_ROOT: &str = "oarsman.lock";

/// How often a lock is tried again, and the wait between.
const TRIES: usize = 10;
const BETWEEN_TRIES: Duration = Duration::from_millis(20);

/// No more of the text in a lock file is read.
const HOLDER_LENGTH: u64 = 64;

/// Held until it is dropped, or its process ends, however that happens.
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
        prepare_root(root)?;
        acquire(&of_root(root), &format!("the root directory {}", root.display()), held)
    }

    /// Locks a runtime, so that no other kubelet takes its pods for orphans.
    pub(crate) fn of_runtime(endpoint: &str) -> Result<Self> {
        let socket = endpoint.trim_start_matches("unix://").trim_start_matches('/');
        let file = PathBuf::from(RUNTIMES).join(format!("{}.lock", socket.replace('/', "_")));
        directories::prepare_own(Path::new(RUNTIMES))
            .with_context(|| format!("cannot use {RUNTIMES}"))?;
        acquire(&file, &format!("the runtime {endpoint}"), "stop the other kubelet first")
    }
}

/// The agent that holds the lock of a root directory, if one runs.
pub(crate) fn holder_of_root(root: &Path) -> Option<String> {
    let mut file = open(&of_root(root), OFlags::RDONLY).ok()?;
    if flock(&file, FlockOperation::NonBlockingLockShared).is_ok() {
        return None;
    }
    if holders::is_held_by_unprivileged(&file).unwrap_or(false) {
        return None;
    }
    holder_text(&mut file).ok()
}

fn of_root(root: &Path) -> PathBuf {
    root.join(OF_ROOT)
}

fn acquire(path: &Path, what: &str, fix: &str) -> Result<FileLock> {
    let cannot = || format!("cannot lock {what} by the file {}", path.display());
    let mut file = open_or_create(path).with_context(cannot)?;
    if !is_locked(&file) {
        if !holders::is_held_by_unprivileged(&file).with_context(cannot)? {
            let holder = holder_text(&mut file).with_context(cannot)?;
            bail!("{what} is held by another agent ({holder}): {fix}");
        }
        file = replace(path, &file).with_context(cannot)?;
    }
    write_holder(&mut file, path);
    Ok(FileLock { file })
}

/// A command that asks for the holder of the lock holds it itself for a moment.
#[expect(
    clippy::disallowed_methods,
    reason = "the kernel tells of a free lock only those who wait for it without a deadline"
)]
fn is_locked(file: &File) -> bool {
    let lock = || flock(file, FlockOperation::NonBlockingLockExclusive).is_ok();
    let again = |_| {
        std::thread::sleep(BETWEEN_TRIES);
        lock()
    };
    lock() || (0..TRIES).any(again)
}

/// Puts a new file in the place of one that an unprivileged process holds, which it cannot open.
///
/// Two agents that replace it at once would both hold what they made. They wait for each other by a file that never was open to
/// other users, and the second finds that the file is not the one it knew.
fn replace(path: &Path, known: &File) -> Result<File> {
    let turn = open_or_create(&path.with_extension("lock.replace"))?;
    flock(&turn, FlockOperation::LockExclusive)?;
    let (known, there) = (known.metadata()?, std::fs::symlink_metadata(path)?);
    if (known.dev(), known.ino()) == (there.dev(), there.ino()) {
        std::fs::remove_file(path)?;
        tracing::warn!(path = %path.display(), "lock file held by an unprivileged process, replaced");
    }
    let file = open_or_create(path)?;
    flock(&file, FlockOperation::NonBlockingLockExclusive).context("another agent was faster")?;
    Ok(file)
}

/// A link is not followed, and a pipe does not make us wait. A lock can be taken on a disk that became read-only, too.
fn open_or_create(path: &Path) -> io::Result<File> {
    match open(path, OFlags::RDWR | OFlags::CREATE) {
        Err(error) if error.kind() == io::ErrorKind::ReadOnlyFilesystem => {
            open(path, OFlags::RDONLY)
        }
        opened => opened,
    }
}

fn open(path: &Path, how: OFlags) -> io::Result<File> {
    let flags = how | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK;
    let file = File::from(rustix::fs::open(path, flags, Mode::RUSR | Mode::WUSR)?);
    match file.metadata()?.is_file() {
        true => Ok(file),
        false => Err(io::Error::other("it is not a regular file: remove it")),
    }
}

fn holder_text(file: &mut File) -> io::Result<String> {
    let mut text = String::new();
    file.take(HOLDER_LENGTH).read_to_string(&mut text)?;
    Ok(text.trim().to_owned())
}

/// The lock holds without it: a disk that is full or read-only must not keep pods from being looked after.
fn write_holder(file: &mut File, path: &Path) {
    let mut write = || -> io::Result<()> {
        if file.metadata()?.mode() & 0o077 != 0 {
            file.set_permissions(Permissions::from_mode(0o600))?;
        }
        file.set_len(0)?;
        writeln!(file, "process {}", std::process::id())
    };
    if let Err(error) = write() {
        tracing::warn!(%error, path = %path.display(), "process id not written to the lock file, lock is held");
    }
}
