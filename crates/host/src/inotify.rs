//! Reports changes in one directory, by inotify.
//!
//! What changed is not reported: events get lost, come twice and no longer hold by the time they are read. The caller reads the directory again.

use std::ffi::{OsStr, OsString};
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use rustix::fs::inotify::{self, CreateFlags, Event, ReadFlags, Reader, WatchFlags};
use rustix::io::Errno;

mod async_inotify;
mod shared_inotify;
#[cfg(test)]
mod tests;

pub use async_inotify::AsyncInotify;
pub use shared_inotify::{DirectoryChanges, SharedInotify};

/// The buffer holds some dozens of events.
const BUFFER: usize = 4096;

/// Watches a directory without ever blocking: poll it for readability, then [`Inotify::drain`] it.
#[derive(Debug)]
pub struct Inotify {
    fd: OwnedFd,
    watched: Option<WatchedDirectory>,
    /// The events that are reported.
    flags: WatchFlags,
}

#[derive(Debug)]
struct WatchedDirectory {
    descriptor: i32,
    /// The one name in the directory that counts; all of them when there is none.
    only: Option<OsString>,
}

impl Inotify {
    /// A watcher that watches nothing yet.
    ///
    /// # Errors
    /// When this user has too many of them: `fs.inotify.max_user_instances` is the limit.
    pub fn new() -> io::Result<Self> {
        let fd = inotify::init(CreateFlags::NONBLOCK | CreateFlags::CLOEXEC)?;
        Ok(Self { fd, watched: None, flags: flags() })
    }

    /// The same watcher, which also reports every write to a file, and not only its closing.
    #[must_use]
    pub fn with_writes(mut self) -> Self {
        self.flags |= WatchFlags::MODIFY;
        self
    }

    /// Watches this directory and nothing else from now on, or only one name in it. Doing it again changes nothing, unless
    /// another directory has taken the path meanwhile.
    ///
    /// # Errors
    /// When it is no directory, may not be read, or this user watches too much: `fs.inotify.max_user_watches` is the limit.
    /// Nothing is watched then.
    pub fn watch(&mut self, directory: &Path, only: Option<&OsStr>) -> io::Result<()> {
        let added = inotify::add_watch(&self.fd, directory, self.flags);
        let before = self.watched.take().map(|watched| watched.descriptor);
        if let Some(stale) = before.filter(|before| Ok(*before) != added) {
            // It fails when the directory is gone, and the watch with it.
            inotify::remove_watch(&self.fd, stale).ok();
        }
        self.watched =
            Some(WatchedDirectory { descriptor: added?, only: only.map(OsStr::to_owned) });
        Ok(())
    }

    /// Takes all events there are; whether one of them says that something has changed.
    ///
    /// # Errors
    /// When the kernel does not answer; having no events is no error.
    pub fn drain(&mut self) -> io::Result<bool> {
        let mut buffer = [MaybeUninit::uninit(); BUFFER];
        let mut reader = Reader::new(self.fd.as_fd(), &mut buffer);
        let (mut changed, mut gone) = (false, false);
        loop {
            match reader.next() {
                Ok(event) => {
                    changed |= is_relevant(self.watched.as_ref(), &event);
                    gone |= is_watch_removed(self.watched.as_ref(), &event);
                }
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => break,
                Err(error) => return Err(error.into()),
            }
        }
        if gone {
            self.watched = None;
        }
        Ok(changed)
    }
}

/// A file counts when it is closed after writing, not at each write. Links and directories are never closed after writing, so their creation
/// counts.
fn flags() -> WatchFlags {
    WatchFlags::CREATE
        | WatchFlags::CLOSE_WRITE
        | WatchFlags::ATTRIB
        | WatchFlags::MOVED_FROM
        | WatchFlags::MOVED_TO
        | WatchFlags::DELETE
        | WatchFlags::DELETE_SELF
        | WatchFlags::MOVE_SELF
        | WatchFlags::ONLYDIR
}

fn is_relevant(watched: Option<&WatchedDirectory>, event: &Event<'_>) -> bool {
    if event.events().contains(ReadFlags::QUEUE_OVERFLOW) {
        return true;
    }
    let Some(watched) = watched.filter(|watched| watched.descriptor == event.wd()) else {
        return false;
    };
    match (&watched.only, event.file_name()) {
        (Some(only), Some(name)) => only.as_bytes() == name.to_bytes(),
        // An event without a name concerns the directory itself.
        _ => true,
    }
}

/// The kernel has given the watch up.
fn is_watch_removed(watched: Option<&WatchedDirectory>, event: &Event<'_>) -> bool {
    event.events().contains(ReadFlags::IGNORED)
        && watched.is_some_and(|watched| watched.descriptor == event.wd())
}

impl AsFd for Inotify {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

impl AsRawFd for Inotify {
    fn as_raw_fd(&self) -> RawFd {
        self.fd.as_raw_fd()
    }
}
