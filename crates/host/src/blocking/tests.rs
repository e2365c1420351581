//! Calls that hang, on real threads.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use std::time::Duration;

use tokio::time::timeout;

use super::*;

const SOON: Duration = Duration::from_millis(50);
const LATE: Duration = Duration::from_secs(60);

fn threads(most: usize) -> tokio::runtime::Runtime {
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    builder.worker_threads(1).max_blocking_threads(most).enable_all().build().unwrap()
}

/// Work that hangs until its sender is gone.
fn hanging(
    started: &Arc<AtomicUsize>,
) -> (mpsc::Sender<()>, impl FnOnce() -> Result<(), JoinError> + Send + 'static) {
    let (release, released) = mpsc::channel::<()>();
    let started = Arc::clone(started);
    let work = move || {
        started.fetch_add(1, Ordering::SeqCst);
        released.recv().ok();
        Ok(())
    };
    (release, work)
}

fn panicked(error: JoinError) -> JoinError {
    error
}

#[test]
fn a_retry_waits_for_the_call_that_hangs_and_takes_no_second_thread() {
    let threads = threads(8);
    threads.block_on(async {
        let pool = BlockingPool::with_threads(4);
        let started = Arc::new(AtomicUsize::new(0));
        let (release, work) = hanging(&started);
        assert!(timeout(SOON, pool.run("pod", work, panicked)).await.is_err());
        for _ in 0..3 {
            let (_release, work) = hanging(&started);
            assert!(timeout(SOON, pool.run("pod", work, panicked)).await.is_err());
        }
        assert_eq!(started.load(Ordering::SeqCst), 1, "retries wait");
        timeout(LATE, pool.run("other", || Ok(()), panicked)).await.unwrap().unwrap();
        drop(release);
        timeout(LATE, pool.run("pod", || Ok(()), panicked)).await.unwrap().unwrap();
        assert!(pool.locks.lock().is_empty(), "nothing is kept of objects without a call");
    });
    threads.shutdown_background();
}

#[test]
fn a_kind_whose_calls_all_hang_starves_no_other() {
    let threads = threads(3);
    threads.block_on(async {
        let (hung, other) = (BlockingPool::with_threads(2), BlockingPool::with_threads(1));
        let started = Arc::new(AtomicUsize::new(0));
        let mut releases = Vec::new();
        for pod in ["a", "b", "c", "d"] {
            let (release, work) = hanging(&started);
            releases.push(release);
            assert!(timeout(SOON, hung.run(pod, work, panicked)).await.is_err());
        }
        assert_eq!(started.load(Ordering::SeqCst), 2);
        timeout(LATE, other.run("a", || Ok(()), panicked)).await.unwrap().unwrap();
    });
    threads.shutdown_background();
}

#[tokio::test]
async fn work_that_panics_gives_its_turn_back() {
    let pool = BlockingPool::with_threads(1);
    let fails = || -> Result<(), JoinError> { std::panic::resume_unwind(Box::new("on purpose")) };
    assert!(pool.run("pod", fails, panicked).await.is_err());
    timeout(LATE, pool.run("pod", || Ok(()), panicked)).await.unwrap().unwrap();
}

#[test]
fn the_lanes_have_the_threads_that_are_made_for_them() {
    use BlockingKind::{
        Cgroups, Checkpoints, CniFiles, ContainerLogs, FileSystems, HostPaths, ImageStore,
        NameFiles, NameLookups, NodeCredentials, PodFileUsage, PodFiles, PodNetworks, PullRecords,
        Resolver, RuntimeFiles, Stats, StatsFileSystems, StatusRecords, VolumeUsage, Volumes,
    };
    let files =
        [HostPaths, Volumes, PodFiles, StatusRecords, Checkpoints, NodeCredentials, NameFiles];
    let others = [
        Cgroups,
        ContainerLogs,
        FileSystems,
        PullRecords,
        Resolver,
        NameLookups,
        VolumeUsage,
        PodFileUsage,
        Stats,
        StatsFileSystems,
        RuntimeFiles,
        ImageStore,
        PodNetworks,
        CniFiles,
    ];
    let all = files.into_iter().chain(others);
    assert_eq!(all.map(BlockingKind::threads).sum::<usize>(), POOL_THREADS);
}
