//! The threads that a command works on.

use std::future::Future;

use anyhow::{Context, Result};

/// Works until the work is done. Whatever a thread still waits for then, such as a mount that hangs, must not keep the program.
pub(crate) fn work_on<T>(work: impl Future<Output = Result<T>>) -> Result<T> {
    let threads = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .context("cannot start threads")?;
    let done = threads.block_on(work);
    threads.shutdown_background();
    done
}
