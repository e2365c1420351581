//! The threads of the async runtime that a command runs on.

use std::future::Future;

use anyhow::{Context, Result};
use oarsman_host::blocking::POOL_THREADS;

/// How many calls that block, to the disk mostly, are under way at once. Enough for some that hang, such as a mount of a server that
/// is gone; a hundred pods that are looked after at the same moment need not have a thread each, which takes half of an agent's memory.
/// Beside the pools there are some for the manifest directory, logs, and names of servers.
const MAX_BLOCKING_THREADS: usize = POOL_THREADS + 8;

/// Runs a future to its end. Blocking calls that hang by then, such as on a mount, do not delay the end of the program.
pub(crate) fn block_on<T>(work: impl Future<Output = Result<T>>) -> Result<T> {
    let threads = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .max_blocking_threads(MAX_BLOCKING_THREADS)
        .build()
        .context("cannot start threads")?;
    let done = threads.block_on(work);
    threads.shutdown_background();
    done
}
