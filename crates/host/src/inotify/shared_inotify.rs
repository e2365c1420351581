//! One watcher for many directories, for many that wait: `fs.inotify.max_user_instances` is 128 on most machines, for all of root's
//! programs together.

use std::collections::BTreeMap;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::sync::Arc;

use oarsman_sync::Guarded;
use rustix::fs::inotify::{self, CreateFlags, ReadFlags, Reader, WatchFlags};
use rustix::io::Errno;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::sync::watch;
use tokio::task::JoinHandle;

use super::{BUFFER, flags};

/// Watches directories for every write to a file in them.
#[derive(Debug)]
pub struct SharedInotify {
    watches: Arc<WatchTable>,
    task: JoinHandle<()>,
}

#[derive(Debug)]
struct WatchTable {
    fd: AsyncFd<OwnedFd>,
    /// Those that wait, by the kernel's number of the directory.
    senders: Guarded<BTreeMap<i32, watch::Sender<()>>>,
}

/// Changes in one directory, as long as they are waited for.
#[derive(Debug)]
pub struct DirectoryChanges {
    watches: Arc<WatchTable>,
    descriptor: i32,
    receiver: watch::Receiver<()>,
}

impl SharedInotify {
    /// A watcher that watches nothing yet, on the event loop of the caller.
    ///
    /// # Errors
    /// When this user has too many of them: `fs.inotify.max_user_instances` is the limit.
    pub fn new() -> io::Result<Self> {
        let fd = inotify::init(CreateFlags::NONBLOCK | CreateFlags::CLOEXEC)?;
        #[expect(unsafe_code, reason = "tokio cannot check by itself that a descriptor stays open")]
        // SAFETY: the descriptor is owned by what is registered, is never closed or replaced before that is dropped, and is not
        // reachable from outside of this module.
        let fd = unsafe { AsyncFd::register_with_interest(fd, Interest::READABLE) }?;
        let watches = Arc::new(WatchTable { fd, senders: Guarded::default() });
        let task = tokio::spawn(deliver(Arc::clone(&watches)));
        Ok(Self { watches, task })
    }

    /// Changes in a directory from now on; the last component of the path is no link.
    ///
    /// # Errors
    /// When it is no directory, may not be read, or this user watches too much: `fs.inotify.max_user_watches` is the limit.
    pub fn watch(&self, directory: &Path) -> io::Result<DirectoryChanges> {
        let wanted = flags() | WatchFlags::MODIFY | WatchFlags::DONT_FOLLOW;
        // Locked before the kernel is asked: the same directory has the same number, which another one may be giving back.
        let mut senders = self.watches.senders.lock();
        let descriptor = inotify::add_watch(&self.watches.fd, directory, wanted)?;
        let receiver =
            senders.entry(descriptor).or_insert_with(|| watch::Sender::new(())).subscribe();
        Ok(DirectoryChanges { watches: Arc::clone(&self.watches), descriptor, receiver })
    }
}

impl Drop for SharedInotify {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl DirectoryChanges {
    /// Waits until something has changed since the last time; for ever, once the directory is gone or the watcher is.
    pub async fn changed(&mut self) {
        if self.receiver.changed().await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}

impl Drop for DirectoryChanges {
    fn drop(&mut self) {
        let mut senders = self.watches.senders.lock();
        let is_last = senders.get(&self.descriptor).is_some_and(|it| it.receiver_count() <= 1);
        if is_last {
            senders.remove(&self.descriptor);
            // It fails when the directory is gone, and the watch with it.
            inotify::remove_watch(&self.watches.fd, self.descriptor).ok();
        }
    }
}

/// Tells those that wait, until the watcher is dropped or the kernel fails; then they look from time to time by themselves.
async fn deliver(watches: Arc<WatchTable>) {
    loop {
        let Ok(mut ready) = watches.fd.readable().await else { return };
        if watches.drain().is_err() {
            return;
        }
        ready.clear_ready();
    }
}

impl WatchTable {
    fn drain(&self) -> io::Result<()> {
        let mut buffer = [MaybeUninit::uninit(); BUFFER];
        let mut reader = Reader::new(self.fd.get_ref().as_fd(), &mut buffer);
        loop {
            match reader.next() {
                Ok(event) => self.tell(event.wd(), event.events()),
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => return Ok(()),
                Err(error) => return Err(error.into()),
            }
        }
    }

    fn tell(&self, descriptor: i32, events: ReadFlags) {
        let mut senders = self.senders.lock();
        if events.contains(ReadFlags::QUEUE_OVERFLOW) {
            senders.values().for_each(|sender| sender.send_replace(()));
        }
        if let Some(sender) = senders.get(&descriptor) {
            sender.send_replace(());
        }
        if events.contains(ReadFlags::IGNORED) {
            senders.remove(&descriptor);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::time::Duration;

    use tempfile::tempdir;
    use tokio::time::timeout;

    use super::*;

    const LONG: Duration = Duration::from_secs(20);

    #[tokio::test]
    async fn all_that_wait_for_a_directory_hear_of_its_changes_and_of_no_others() {
        let (here, there) = (tempdir().unwrap(), tempdir().unwrap());
        let inotify = SharedInotify::new().unwrap();
        let mut first = inotify.watch(here.path()).unwrap();
        let mut second = inotify.watch(here.path()).unwrap();
        let mut other = inotify.watch(there.path()).unwrap();
        fs::write(here.path().join("0.log"), "x").unwrap();
        for changes in [&mut first, &mut second] {
            timeout(LONG, changes.changed()).await.unwrap();
        }
        assert!(timeout(Duration::from_millis(20), other.changed()).await.is_err());
        drop(first);
        fs::write(here.path().join("0.log"), "y").unwrap();
        timeout(LONG, second.changed()).await.unwrap();
        drop((second, other));
        assert!(
            inotify.watches.senders.lock().is_empty(),
            "nothing is watched for those that left"
        );
        assert!(inotify.watch(&here.path().join("none")).is_err());
    }
}
