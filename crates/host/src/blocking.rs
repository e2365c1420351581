//! Runs blocking work on tokio's blocking threads. A call that hangs, such as on a mount of a server that is gone, holds its thread until the
//! kernel lets go.

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use oarsman_core::disk_usage::DiskUsage;
use oarsman_sync::Guarded;
use tokio::sync::{Mutex, OwnedMutexGuard, OwnedSemaphorePermit, Semaphore};
use tokio::task::JoinError;

use crate::disk_usage::UsageCount;

/// As many threads are in use when every pool is full.
pub const POOL_THREADS: usize =
    6 + 6 + 4 + 6 + 4 + 3 + 3 + 1 + 1 + 1 + 1 + 1 + 8 + 1 + 1 + 1 + 1 + 6 + 4 + 4 + 2;

/// Does the work on a thread of its own; `panicked` makes the error of work that panicked.
///
/// # Errors
/// Those of the work.
pub async fn run<T, E>(
    work: impl FnOnce() -> Result<T, E> + Send + 'static,
    panicked: impl FnOnce(JoinError) -> E,
) -> Result<T, E>
where
    T: Send + 'static,
    E: Send + 'static,
{
    tokio::task::spawn_blocking(work).await.unwrap_or_else(|error| Err(panicked(error)))
}

/// A kind of work that blocks. Each kind has threads of its own, so that one whose calls hang starves no other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BlockingKind {
    /// Directories of the host, which may lie on a mount of a server that is gone.
    HostPaths,
    /// All other volumes.
    Volumes,
    /// Control groups.
    Cgroups,
    /// Directories, logs and termination messages of pods.
    PodFiles,
    /// Sizes of container logs, and their rotation.
    ContainerLogs,
    /// Statuses of pods.
    StatusRecords,
    /// Records of image pulls.
    PullRecords,
    /// Checkpoints of the cluster's pods.
    Checkpoints,
    /// The node's file of credentials for registries.
    NodeCredentials,
    /// The files by which the machine resolves names.
    NameFiles,
    /// Sizes of file systems, such as that of images.
    FileSystems,
    /// The machine's resolver, which may wait for servers that are gone.
    Resolver,
    /// Sizes of volumes, which may have any number of files.
    VolumeUsage,
    /// Sizes of files and logs of pods.
    PodFileUsage,
    /// Numbers of control groups and of the machine.
    Stats,
    /// Sizes of the file systems that are shown with those numbers.
    StatsFileSystems,
    /// Addresses of names, from a name server that may never answer.
    NameLookups,
    /// Records, mounts and files of the embedded runtime's sandboxes and containers.
    RuntimeFiles,
    /// Images and root file systems of the embedded runtime.
    ImageStore,
    /// Networks of the embedded runtime's sandboxes.
    PodNetworks,
    /// Network configurations, and what CNI plugins have answered.
    CniFiles,
}

impl BlockingKind {
    fn threads(self) -> usize {
        match self {
            Self::HostPaths | Self::Volumes => 6,
            Self::Cgroups | Self::ContainerLogs | Self::ImageStore | Self::PodNetworks => 4,
            Self::PodFiles | Self::RuntimeFiles => 6,
            Self::StatusRecords | Self::PullRecords => 3,
            Self::Checkpoints
            | Self::NodeCredentials
            | Self::NameFiles
            | Self::FileSystems
            | Self::Resolver
            | Self::VolumeUsage
            | Self::PodFileUsage
            | Self::Stats
            | Self::StatsFileSystems => 1,
            Self::CniFiles => 2,
            Self::NameLookups => 8,
        }
    }
}

/// Entries that are counted before others have their turn: work for less than a second.
const COUNTED_AT_ONCE: usize = 10_000;

/// Where work of one kind waits for its turn: at most one call at a time for each object, and a bounded number of threads for all.
///
/// A caller that has given up leaves its call on a thread. The next call for the same object waits for that one to end and takes no
/// second thread, however often it is tried again.
#[derive(Debug)]
pub struct BlockingPool {
    threads: Arc<Semaphore>,
    locks: Arc<ObjectLocks>,
}

/// A lock for each object with a call under way.
type ObjectLocks = Guarded<BTreeMap<String, Arc<Mutex<()>>>>;

impl BlockingPool {
    /// A pool for a kind of work.
    pub fn new(kind: BlockingKind) -> Self {
        Self::with_threads(kind.threads())
    }

    fn with_threads(threads: usize) -> Self {
        Self { threads: Arc::new(Semaphore::new(threads)), locks: Arc::default() }
    }

    /// Does the work for an object, such as a pod, when it is its turn.
    ///
    /// # Errors
    /// Those of the work; `panicked` makes the error of work that panicked.
    pub async fn run<T, E>(
        &self,
        object: &str,
        work: impl FnOnce() -> Result<T, E> + Send + 'static,
        panicked: impl FnOnce(JoinError) -> E,
    ) -> Result<T, E>
    where
        T: Send + 'static,
        E: Send + 'static,
    {
        let turn = self.turn(object).await;
        let work = move || {
            let done = work();
            drop(turn);
            done
        };
        run(work, panicked).await
    }

    /// Counts what a file or a directory holds, part by part: between two parts others have their turn.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub async fn count_usage(&self, object: &str, path: PathBuf) -> io::Result<DiskUsage> {
        let begin = move || UsageCount::of(&path);
        let mut count = self.run(object, begin, io::Error::other).await?;
        loop {
            let step = move || count.step(COUNTED_AT_ONCE).map(|is_done| (is_done, count));
            let (is_done, counted) = self.run(object, step, io::Error::other).await?;
            if is_done {
                return Ok(counted.usage());
            }
            count = counted;
        }
    }

    async fn turn(&self, object: &str) -> ObjectLock {
        let lock = Arc::clone(self.locks.lock().entry(object.to_owned()).or_default());
        let locks = Arc::clone(&self.locks);
        let guard = Some(lock.lock_owned().await);
        let mut turn = ObjectLock { object: object.to_owned(), guard, _thread: None, locks };
        // Never closed, so there is always one.
        turn._thread = Arc::clone(&self.threads).acquire_owned().await.ok();
        turn
    }
}

/// The right to work for an object, which ends with the work and not with the wait for it.
struct ObjectLock {
    object: String,
    guard: Option<OwnedMutexGuard<()>>,
    _thread: Option<OwnedSemaphorePermit>,
    locks: Arc<ObjectLocks>,
}

impl Drop for ObjectLock {
    fn drop(&mut self) {
        drop(self.guard.take());
        let mut locks = self.locks.lock();
        if locks.get(&self.object).is_some_and(|lock| Arc::strong_count(lock) == 1) {
            locks.remove(&self.object);
        }
    }
}
