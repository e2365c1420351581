//! How many logs are read at once, so that those who read them leave threads and memory to the pods.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use oarsman_core::ids::FullName;
use oarsman_host::inotify::SharedInotify;
use oarsman_sync::Guarded;
use tokio::sync::Semaphore;
use tokio::task::spawn_blocking;
use tokio::time::timeout;

/// Logs that are sent at once: each holds some 200 KiB.
const MAX_READERS: usize = 128;
/// Of these, of one pod.
const MAX_READERS_OF_A_POD: usize = 32;
/// Pieces that are read from disk at once: few of the threads for blocking work, which start and stop pods, too.
const MAX_CONCURRENT_READS: usize = 4;
/// For a turn, and for a piece from the disk. A disk that hangs keeps its thread until the kernel lets go, the reader goes on.
const READ_TIMEOUT: Duration = Duration::from_secs(30);

/// What all readers of logs share.
#[derive(Debug)]
pub(crate) struct LogLimits {
    readers: Guarded<BTreeMap<FullName, usize>>,
    reads: Arc<Semaphore>,
    /// None when the machine has no more of them: then logs that are followed are looked at every second.
    inotify: Option<SharedInotify>,
}

/// Leave to send one log, until it is dropped.
#[derive(Debug)]
pub(super) struct LogPermit {
    limits: Arc<LogLimits>,
    pod: FullName,
}

impl LogLimits {
    /// On the event loop of the caller.
    pub(crate) fn new() -> Arc<Self> {
        let failed = |error: &io::Error| {
            tracing::warn!(call = "inotify_init", %error, "log directories not watched, followed logs are read every second");
        };
        Arc::new(Self {
            readers: Guarded::default(),
            reads: Arc::new(Semaphore::new(MAX_CONCURRENT_READS)),
            inotify: SharedInotify::new().inspect_err(failed).ok(),
        })
    }

    pub(super) fn inotify(&self) -> Option<&SharedInotify> {
        self.inotify.as_ref()
    }

    /// None when too many read logs already, those of this pod or all.
    pub(super) fn admit(self: &Arc<Self>, pod: &FullName) -> Option<LogPermit> {
        let mut readers = self.readers.lock();
        let of_pod = readers.get(pod).copied().unwrap_or_default();
        if of_pod >= MAX_READERS_OF_A_POD || readers.values().sum::<usize>() >= MAX_READERS {
            return None;
        }
        readers.insert(pod.clone(), of_pod + 1);
        Some(LogPermit { limits: Arc::clone(self), pod: pod.clone() })
    }

    /// Does a bounded piece of reading on a thread for blocking work, when it is its turn.
    pub(super) async fn read<T: Send + 'static>(
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
        &self.pod
    }
}

impl Drop for LogPermit {
    fn drop(&mut self) {
        let mut readers = self.limits.readers.lock();
        let left = readers.get(&self.pod).copied().unwrap_or_default().saturating_sub(1);
        match left {
            0 => drop(readers.remove(&self.pod)),
            left => drop(readers.insert(self.pod.clone(), left)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pod(name: usize) -> FullName {
        FullName { name: name.to_string(), namespace: "default".to_owned() }
    }

    #[tokio::test]
    async fn readers_are_limited_by_pod_and_in_all_and_make_room_when_they_leave() {
        let limits = LogLimits::new();
        let admit = |name| limits.admit(&pod(name));
        let mut permits: Vec<_> = (0..MAX_READERS_OF_A_POD).map(|_| admit(0).unwrap()).collect();
        assert!(admit(0).is_none());
        let rest = MAX_READERS - MAX_READERS_OF_A_POD;
        permits.extend((1..=rest).map(|name| admit(name).unwrap()));
        assert!(admit(rest + 1).is_none());
        permits.remove(0);
        assert!(admit(0).is_some());
        permits.clear();
        assert!(limits.readers.lock().is_empty());
    }

    #[tokio::test]
    async fn at_most_a_few_threads_read_at_once() {
        let limits = LogLimits::new();
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
