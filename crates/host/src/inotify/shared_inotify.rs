//! One inotify instance for all watched directories: `fs.inotify.max_user_instances` is 128 on most machines, for all of root's
//! programs together.

use std::collections::BTreeMap;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;

use oarsman_sync::{Guarded, TaskName, TaskPanics, restarted};
use rustix::fs::inotify::{self, CreateFlags, ReadFlags, Reader, WatchFlags};
use rustix::io::Errno;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::sync::watch;
use tokio::task::{JoinHandle, yield_now};

use super::{BUFFER, flags};
use crate::beneath::RootDirectory;

/// How often events are read before other tasks have their turn.
const MAX_READS: usize = 16;

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
    /// A watcher that watches nothing yet, on the event loop of the caller; panics of its task are counted there.
    ///
    /// # Errors
    /// When this user has too many of them: `fs.inotify.max_user_instances` is the limit.
    pub fn new(panics: TaskPanics) -> io::Result<Self> {
        let fd = inotify::init(CreateFlags::NONBLOCK | CreateFlags::CLOEXEC)?;
        #[expect(unsafe_code, reason = "tokio cannot check by itself that a descriptor stays open")]
        // SAFETY: the descriptor is owned by what is registered, is never closed or replaced before that is dropped, and is not
        // reachable from outside of this module.
        let fd = unsafe { AsyncFd::register_with_interest(fd, Interest::READABLE) }?;
        let watches = Arc::new(WatchTable { fd, senders: Guarded::default() });
        let delivered = Arc::clone(&watches);
        let task = restarted(TaskName::LogWatch, panics, move || deliver(Arc::clone(&delivered)));
        Ok(Self { watches, task: tokio::spawn(task) })
    }

    /// Changes in a directory from now on. It is opened already, so that this waits for no file system.
    ///
    /// # Errors
    /// When it is no directory, may not be read, or this user watches too much: `fs.inotify.max_user_watches` is the limit.
    pub fn watch(&self, directory: &RootDirectory) -> io::Result<DirectoryChanges> {
        let wanted = flags() | WatchFlags::MODIFY;
        let directory = directory.magic_link();
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
        match watches.drain() {
            Ok(Drained::All) => ready.clear_ready(),
            // Writers may be faster than this.
            Ok(Drained::Part) => yield_now().await,
            Err(_) => return,
        }
    }
}

/// What was read of the waiting events.
enum Drained {
    All,
    Part,
}

impl WatchTable {
    fn drain(&self) -> io::Result<Drained> {
        let mut buffer = [MaybeUninit::uninit(); BUFFER];
        let mut reader = Reader::new(self.fd.get_ref().as_fd(), &mut buffer);
        let mut reads = 0;
        // What was read is told before it stops.
        while reads < MAX_READS || !reader.is_buffer_empty() {
            reads += usize::from(reader.is_buffer_empty());
            match reader.next() {
                Ok(event) => self.tell(event.wd(), event.events()),
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => return Ok(Drained::All),
                Err(error) => return Err(error.into()),
            }
        }
        Ok(Drained::Part)
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

    fn opened(directory: &tempfile::TempDir) -> RootDirectory {
        RootDirectory::open(directory.path()).unwrap()
    }

    #[tokio::test]
    async fn writers_that_are_faster_than_the_events_are_read_leave_others_their_turn() {
        let directory = tempdir().unwrap();
        let inotify = SharedInotify::new(TaskPanics::default()).unwrap();
        let _changes = inotify.watch(&opened(&directory)).unwrap();
        // Two files in turn: the same event twice would be one.
        for number in 0..4000 {
            fs::write(directory.path().join(format!("{}.log", number % 2)), "x").unwrap();
        }
        let is_part = || matches!(inotify.watches.drain().unwrap(), Drained::Part);
        assert!(is_part(), "all at once");
        let parts = (0..1000).take_while(|_| is_part()).count();
        assert!((1..1000).contains(&parts), "{parts}");
    }

    #[tokio::test]
    async fn what_has_taken_the_path_of_an_opened_directory_is_not_watched() {
        let above = tempdir().unwrap();
        let (here, elsewhere) = (above.path().join("here"), above.path().join("elsewhere"));
        fs::create_dir(&here).unwrap();
        fs::create_dir(&elsewhere).unwrap();
        let inotify = SharedInotify::new(TaskPanics::default()).unwrap();
        let opened = RootDirectory::open(&here).unwrap();
        fs::rename(&here, above.path().join("moved")).unwrap();
        std::os::unix::fs::symlink(&elsewhere, &here).unwrap();
        let mut changes = inotify.watch(&opened).unwrap();
        fs::write(elsewhere.join("0.log"), "x").unwrap();
        assert!(timeout(Duration::from_millis(20), changes.changed()).await.is_err());
        fs::write(above.path().join("moved/0.log"), "x").unwrap();
        timeout(LONG, changes.changed()).await.unwrap();
    }

    #[tokio::test]
    async fn all_that_wait_for_a_directory_hear_of_its_changes_and_of_no_others() {
        let (here, there) = (tempdir().unwrap(), tempdir().unwrap());
        let inotify = SharedInotify::new(TaskPanics::default()).unwrap();
        let mut first = inotify.watch(&opened(&here)).unwrap();
        let mut second = inotify.watch(&opened(&here)).unwrap();
        let mut other = inotify.watch(&opened(&there)).unwrap();
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
    }
}
