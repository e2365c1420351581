//! The lock of a runtime's directory: two processes that both believed to own the pods of one directory would end each other's.

use std::fs::File;
use std::io::{self, Read, Seek, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::{FlockOperation, Mode, OFlags, flock, open};
use tokio::time::{Instant, sleep};

use crate::error::{EmbeddedRuntimeError, Outcome, failed};

const NAME: &str = "lock";
/// A runtime that is just ending gets this long: its last call may still run on a thread.
const PATIENCE: Duration = Duration::from_secs(3);
const BETWEEN_TRIES: Duration = Duration::from_millis(25);
/// More than is ever written about a holder.
const MOST_TEXT: u64 = 4096;

/// Held as long as the runtime lives; it ends with the process, however that ends.
#[derive(Debug)]
pub(crate) struct RootLock {
    file: File,
    path: PathBuf,
}

impl RootLock {
    /// Locks a directory that exists.
    pub(crate) async fn acquire(root: &Path) -> Outcome<Self> {
        Self::acquire_within(root, PATIENCE).await
    }

    async fn acquire_within(root: &Path, patience: Duration) -> Outcome<Self> {
        let path = root.join(NAME);
        let mut file = open_lock(&path).map_err(failed("open the lock", &path))?;
        let deadline = Instant::now() + patience;
        while !try_lock(&file).map_err(failed("lock", &path))? {
            if Instant::now() >= deadline {
                let holder = read_holder(&mut file).map_err(failed("read", &path))?;
                return Err(EmbeddedRuntimeError::InUse { root: root.to_owned(), holder });
            }
            sleep(BETWEEN_TRIES).await;
        }
        write_holder(&mut file).map_err(failed("write", &path))?;
        Ok(Self { file, path })
    }

    /// Fails when the directory, or the lock in it, is another one than the one that was locked.
    pub(crate) fn check(&self) -> io::Result<()> {
        let (ours, there) = (self.file.metadata()?, std::fs::symlink_metadata(&self.path)?);
        match (ours.dev(), ours.ino()) == (there.dev(), there.ino()) {
            true => Ok(()),
            false => Err(io::Error::other("its lock is another file")),
        }
    }
}

fn open_lock(path: &Path) -> io::Result<File> {
    let flags = OFlags::RDWR | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    Ok(File::from(open(path, flags | OFlags::NONBLOCK, Mode::RUSR | Mode::WUSR)?))
}

fn try_lock(file: &File) -> io::Result<bool> {
    match flock(file.as_fd(), FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(true),
        Err(rustix::io::Errno::WOULDBLOCK) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

fn read_holder(file: &mut File) -> io::Result<String> {
    file.rewind()?;
    let mut text = String::new();
    file.take(MOST_TEXT).read_to_string(&mut text)?;
    Ok(match text.trim() {
        "" => "a process that has not said which it is".to_owned(),
        holder => holder.to_owned(),
    })
}

fn write_holder(file: &mut File) -> io::Result<()> {
    let program = std::env::current_exe().unwrap_or_default();
    file.set_len(0)?;
    file.rewind()?;
    writeln!(file, "process {} ({})", std::process::id(), program.display())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_second_runtime_on_the_same_root_is_told_which_process_holds_it() {
        let root = tempfile::tempdir().unwrap();
        let first = RootLock::acquire(root.path()).await.unwrap();
        let second = RootLock::acquire_within(root.path(), Duration::ZERO).await;
        let error = second.unwrap_err().to_string();
        let holder = format!("process {}", std::process::id());
        assert!(error.contains(&holder), "{error}");
        assert!(error.contains(&root.path().display().to_string()), "{error}");
        drop(first);
        RootLock::acquire(root.path()).await.unwrap();
    }

    #[tokio::test]
    async fn a_directory_that_was_removed_or_replaced_is_noticed() {
        let parent = tempfile::tempdir().unwrap();
        let root = parent.path().join("root");
        std::fs::create_dir(&root).unwrap();
        let lock = RootLock::acquire(&root).await.unwrap();
        lock.check().unwrap();
        std::fs::rename(&root, parent.path().join("moved")).unwrap();
        assert_eq!(lock.check().unwrap_err().kind(), io::ErrorKind::NotFound);
        std::fs::create_dir(&root).unwrap();
        let _other = RootLock::acquire(&root).await.unwrap();
        assert!(lock.check().unwrap_err().to_string().contains("another file"));
    }

    #[tokio::test]
    async fn a_runtime_that_is_just_ending_is_waited_for() {
        let root = tempfile::tempdir().unwrap();
        let first = RootLock::acquire(root.path()).await.unwrap();
        let ending = async {
            sleep(2 * BETWEEN_TRIES).await;
            drop(first);
        };
        let (second, ()) = tokio::join!(RootLock::acquire(root.path()), ending);
        second.unwrap();
    }
}
