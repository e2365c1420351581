//! How many logs are read at once, so that readers of logs leave threads and memory to the pods.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use oarsman_core::ids::FullName;
use oarsman_host::inotify::SharedInotify;
use oarsman_sync::{Guarded, TaskPanics};
use tokio::sync::Semaphore;
use tokio::task::spawn_blocking;
use tokio::time::{Instant, timeout};
use tokio_util::sync::CancellationToken;

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
    readers: Guarded<Readers>,
    reads: Arc<Semaphore>,
    /// When a refusal was logged last.
    last_warning: Guarded<Option<Instant>>,
    /// None when the machine has no more of them: then logs that are followed are looked at every second.
    inotify: Option<SharedInotify>,
}

/// Who reads, by the order in which they came.
#[derive(Debug, Default)]
struct Readers {
    next: u64,
    by_number: BTreeMap<u64, (FullName, CancellationToken)>,
}

/// Leave to send one log, until it is dropped or taken back.
#[derive(Debug)]
pub(super) struct LogPermit {
    limits: Arc<LogLimits>,
    pod: FullName,
    number: u64,
    revoked: CancellationToken,
}

impl LogLimits {
    /// On the event loop of the caller.
    pub(crate) fn new(panics: TaskPanics) -> Arc<Self> {
        let failed = |error: &io::Error| {
            tracing::warn!(call = "inotify_init", %error, "log directories not watched, followed logs are read every second");
        };
        Arc::new(Self {
            readers: Guarded::default(),
            last_warning: Guarded::default(),
            reads: Arc::new(Semaphore::new(MAX_CONCURRENT_READS)),
            inotify: SharedInotify::new(panics).inspect_err(failed).ok(),
        })
    }

    pub(super) fn inotify(&self) -> Option<&SharedInotify> {
        self.inotify.as_ref()
    }

    /// None when too many read the logs of this pod or of its namespace already. Another namespace that has the most of all places
    /// gives one back.
    pub(super) fn admit(self: &Arc<Self>, pod: &FullName) -> Option<LogPermit> {
        let (number, revoked) = self.readers.lock().admit(pod)?;
        Some(LogPermit { limits: Arc::clone(self), pod: pod.clone(), number, revoked })
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

impl Readers {
    fn admit(&mut self, pod: &FullName) -> Option<(u64, CancellationToken)> {
        let of_pod = self.by_number.values().filter(|(other, _)| other == pod).count();
        if of_pod >= MAX_READERS_OF_A_POD {
            return None;
        }
        if self.by_number.len() >= MAX_READERS {
            let oldest = self.oldest_of_fullest(&pod.namespace)?;
            let (_, revoked) = self.by_number.remove(&oldest)?;
            revoked.cancel();
        }
        let (number, revoked) = (self.next, CancellationToken::new());
        self.next += 1;
        self.by_number.insert(number, (pod.clone(), revoked.clone()));
        Some((number, revoked))
    }

    /// The oldest reader of the namespace with the most, unless this one has as many.
    fn oldest_of_fullest(&self, namespace: &str) -> Option<u64> {
        let mut namespaces = BTreeMap::<&str, (usize, u64)>::new();
        for (number, (pod, _)) in &self.by_number {
            namespaces.entry(&pod.namespace).or_insert((0, *number)).0 += 1;
        }
        let own = namespaces.get(namespace).map_or(0, |(count, _)| *count);
        let (count, oldest) = namespaces.into_values().max_by_key(|(count, _)| *count)?;
        (count > own).then_some(oldest)
    }
}

impl LogPermit {
    pub(super) fn limits(&self) -> &Arc<LogLimits> {
        &self.limits
    }

    pub(super) fn pod(&self) -> &FullName {
        &self.pod
    }

    /// Waits until the place is given to another.
    pub(super) async fn revoked(&self) {
        self.revoked.cancelled().await;
    }
}

impl Drop for LogPermit {
    fn drop(&mut self) {
        self.limits.readers.lock().by_number.remove(&self.number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pod(name: usize) -> FullName {
        pod_of("default", name)
    }

    fn pod_of(namespace: &str, name: usize) -> FullName {
        FullName { name: name.to_string(), namespace: namespace.to_owned() }
    }

    #[tokio::test]
    async fn a_namespace_that_has_all_places_gives_the_oldest_back_to_others() {
        let limits = LogLimits::new(TaskPanics::default());
        let of = |namespace: &str, number: usize| limits.admit(&pod_of(namespace, number / 32));
        let greedy: Vec<_> = (0..MAX_READERS).map(|number| of("a", number).unwrap()).collect();
        assert!(of("a", 1_000_000).is_none(), "they are its own");
        let others: Vec<_> = (0..64).map(|number| of("b", number).unwrap()).collect();
        let is_revoked = |it: &LogPermit| it.revoked.is_cancelled();
        let gone: Vec<_> = greedy.iter().map(is_revoked).collect();
        assert!(gone[..64].iter().all(|gone| *gone) && !gone[64..].contains(&true), "{gone:?}");
        assert!(!others.iter().any(is_revoked));
        drop((greedy, others));
        assert!(limits.readers.lock().by_number.is_empty());
    }

    #[tokio::test]
    async fn readers_are_limited_by_pod_and_in_all_and_make_room_when_they_leave() {
        let limits = LogLimits::new(TaskPanics::default());
        let admit = |name| limits.admit(&pod(name));
        let mut permits: Vec<_> = (0..MAX_READERS_OF_A_POD).map(|_| admit(0).unwrap()).collect();
        assert!(admit(0).is_none());
        let rest = MAX_READERS - MAX_READERS_OF_A_POD;
        permits.extend((1..=rest).map(|name| admit(name).unwrap()));
        assert!(admit(rest + 1).is_none());
        permits.remove(0);
        assert!(admit(0).is_some());
        permits.clear();
        assert!(limits.readers.lock().by_number.is_empty());
    }

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
