//! The threads of the async runtime that a command runs on.

use std::future::Future;
use std::thread::available_parallelism;

use anyhow::{Context, Result};
use oarsman_host::blocking::POOL_THREADS;

/// How many calls that block, to the disk mostly, are under way at once. Enough for some that hang, such as a mount of a server that
/// is gone; a hundred pods that are looked after at the same moment need not have a thread each, which takes half of an agent's memory.
/// Beside the pools there are some for the manifest directory, logs, and names of servers.
const MAX_BLOCKING_THREADS: usize = POOL_THREADS + 8;

/// One worker thread for so many processors. Each event that a worker handles wakes up another one, in case there is more to do; an agent
/// waits most of the time, so with a worker for each processor it pays for two threads where one would do. The node server has a thread of
/// its own.
const PROCESSORS_PER_WORKER: usize = 4;
/// More than this an agent cannot keep busy.
const MAX_WORKERS: usize = 4;

/// Runs a future to its end. Blocking calls that hang by then, such as on a mount, do not delay the end of the program.
pub(crate) fn block_on<T>(work: impl Future<Output = Result<T>>) -> Result<T> {
    let threads = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .worker_threads(workers(available_parallelism().map_or(1, Into::into)))
        .max_blocking_threads(MAX_BLOCKING_THREADS)
        .build()
        .context("cannot start threads")?;
    let done = threads.block_on(work);
    threads.shutdown_background();
    done
}

fn workers(processors: usize) -> usize {
    processors.div_ceil(PROCESSORS_PER_WORKER).clamp(1, MAX_WORKERS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_small_machine_has_one_worker_and_a_large_one_four() {
        let rows = [(0, 1), (1, 1), (2, 1), (4, 1), (5, 2), (8, 2), (16, 4), (256, 4)];
        for (processors, expected) in rows {
            assert_eq!(workers(processors), expected, "{processors}");
        }
    }
}
