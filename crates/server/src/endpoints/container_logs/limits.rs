//! How many logs are read at once, so that readers of logs leave threads and memory to the pods.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use oarsman_core::ids::FullName;
use oarsman_host::inotify::SharedInotify;
use oarsman_sync::{Guarded, TaskPanics};
use tokio::sync::Semaphore;
use tokio::task::spawn_blocking;
use tokio::time::{Instant, timeout};

use crate::pod_quota::{PodQuota, QuotaPermit};

/// Logs that are sent at once. One that is followed and is quiet holds next to nothing, one that is sent some 200 KiB, and one with
/// the longest lines some 1.3 MiB.
const MAX_READERS: usize = 256;
/// Of these, of one pod.
const MAX_READERS_OF_A_POD: usize = 32;
/// Pieces that are read from disk at once: few of the threads for blocking work, which start and stop pods, too.
const MAX_CONCURRENT_READS: usize = 4;
/// How often it is logged that readers are refused.
const WARNING_INTERVAL: Duration = Duration::from_secs(10);
/// For a turn, and for a piece from the disk. A disk that hangs keeps its thread until the kernel lets go, the reader goes on.
const READ_TIMEOUT: Duration = Duration::from_secs(30);

/// What all readers of logs share.
#[derive(Debug)]
pub(crate) struct LogLimits {
    readers: Arc<PodQuota>,
    reads: Arc<Semaphore>,
    /// When a refusal was logged last.
    last_warning: Guarded<Option<Instant>>,
    /// None when the machine has no more of them: then logs that are followed are looked at every second.
    inotify: Option<SharedInotify>,
}

/// Leave to send one log, until it is dropped or taken back.
#[derive(Debug)]
pub(super) struct LogPermit {
    limits: Arc<LogLimits>,
    place: QuotaPermit,
}

impl LogLimits {
    /// On the event loop of the caller.
    pub(crate) fn new(panics: TaskPanics) -> Arc<Self> {
        let failed = |error: &io::Error| {
            tracing::warn!(call = "inotify_init", %error, "log directories not watched, followed logs are read every second");
        };
        Arc::new(Self {
            readers: PodQuota::new(MAX_READERS, MAX_READERS_OF_A_POD),
            last_warning: Guarded::default(),
            reads: Arc::new(Semaphore::new(MAX_CONCURRENT_READS)),
            inotify: SharedInotify::new(panics).inspect_err(failed).ok(),
        })
    }

    pub(super) fn inotify(&self) -> Option<&SharedInotify> {
        self.inotify.as_ref()
    }

    /// None when too many read the logs of this pod or of its namespace already.
    pub(super) fn admit(self: &Arc<Self>, pod: &FullName) -> Option<LogPermit> {
        Some(LogPermit { limits: Arc::clone(self), place: self.readers.admit(pod)? })
    }

    /// Whether a refusal is to be logged: clients may cause many.
    pub(super) fn is_warning_due(&self, now: Instant) -> bool {
        let mut last = self.last_warning.lock();
        let is_due = last.is_none_or(|last| now.duration_since(last) >= WARNING_INTERVAL);
        if is_due {
            *last = Some(now);
        }
        is_due
    }

    /// Does a bounded piece of reading on a thread for blocking work, when it is its turn.
    pub(in crate::endpoints) async fn read<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> io::Result<T> {
        let late = |_| io::Error::new(io::ErrorKind::TimedOut, "reading the log timed out");
        let turn = timeout(READ_TIMEOUT, Arc::clone(&self.reads).acquire_owned());
        let turn = turn.await.map_err(late)?.map_err(io::Error::other)?;
        // The turn ends with the work, also when the work is not waited for any more.
        let work = spawn_blocking(move || {
            let done = work();
            drop(turn);
            done
        });
        timeout(READ_TIMEOUT, work).await.map_err(late)?.map_err(io::Error::other)
    }
}

impl LogPermit {
    pub(super) fn limits(&self) -> &Arc<LogLimits> {
        &self.limits
    }

    pub(super) fn pod(&self) -> &FullName {
        self.place.pod()
    }

    /// Waits until the place is given to another.
    pub(super) async fn revoked(&self) {
        self.place.revoked().await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn refusals_are_logged_now_and_then() {
        let limits = LogLimits::new(TaskPanics::default());
        let begin = Instant::now();
        let due = |at: Instant| (0..1000).filter(|_| limits.is_warning_due(at)).count();
        assert_eq!(due(begin), 1);
        assert_eq!(due(begin + WARNING_INTERVAL), 1);
    }

    #[tokio::test]
    async fn at_most_a_few_threads_read_at_once() {
        let limits = LogLimits::new(TaskPanics::default());
        let at_once = Arc::new(Guarded::new((0_usize, 0_usize)));
        let reads = (0..64).map(|_| {
            let at_once = Arc::clone(&at_once);
            limits.read(move || {
                let mut seen = at_once.lock();
                seen.0 += 1;
                seen.1 = seen.1.max(seen.0);
                drop(seen);
                std::thread::yield_now();
                at_once.lock().0 -= 1;
            })
        });
        futures::future::try_join_all(reads).await.unwrap();
        let most = at_once.lock().1;
        assert!(most <= MAX_CONCURRENT_READS, "{most}");
    }
}
