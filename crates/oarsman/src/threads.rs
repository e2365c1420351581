//! The threads that a command works on.

use std::future::Future;

use anyhow::{Context, Result};

/// How many calls that block, to the disk mostly, are under way at once. Enough for some that hang, such as a mount of a server that
/// is gone; a hundred pods that are looked after at the same moment need not have a thread each, which takes half of an agent's memory.
const MAX_BLOCKING_THREADS: usize = 32;

/// Works until the work is done. Whatever a thread still waits for then, such as a mount that hangs, must not keep the program.
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
