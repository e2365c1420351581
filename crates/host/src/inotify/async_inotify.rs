//! An [`Inotify`] that async code can wait for.

use std::ffi::OsStr;
use std::io;
use std::path::Path;

use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

use super::Inotify;

/// Waits for changes in a directory on tokio's event loop.
#[derive(Debug)]
pub struct AsyncInotify(AsyncFd<Inotify>);

impl AsyncInotify {
    /// A watcher without a directory yet, on the event loop of the caller.
    ///
    /// # Errors
    /// As [`Inotify::new`].
    pub fn new() -> io::Result<Self> {
        Self::from_inotify(Inotify::new()?)
    }

    /// A watcher that also reports every write to a file.
    ///
    /// # Errors
    /// As [`Inotify::new`].
    pub fn watching_writes() -> io::Result<Self> {
        Self::from_inotify(Inotify::new()?.with_writes())
    }

    fn from_inotify(watcher: Inotify) -> io::Result<Self> {
        #[expect(unsafe_code, reason = "tokio cannot check by itself that a descriptor stays open")]
        // SAFETY: a watcher owns its descriptor, shows only that one, and never closes or replaces it before it is dropped; the watcher in here
        // is private, so no code outside can replace it.
        let registered = unsafe { AsyncFd::register_with_interest(watcher, Interest::READABLE) };
        Ok(Self(registered?))
    }

    /// As [`Inotify::watch`].
    ///
    /// # Errors
    /// As [`Inotify::watch`].
    pub fn watch(&mut self, directory: &Path, only: Option<&OsStr>) -> io::Result<()> {
        self.0.get_mut().watch(directory, only)
    }

    /// Waits until something has changed. Nothing is lost when the wait is given up.
    ///
    /// # Errors
    /// When the kernel fails, and would fail again.
    pub async fn changed(&mut self) -> io::Result<()> {
        loop {
            let mut ready = self.0.readable_mut().await?;
            let changed = ready.get_inner_mut().drain()?;
            // All pending events have been read.
            ready.clear_ready();
            if changed {
                return Ok(());
            }
        }
    }

    /// Waits until something has changed. A watcher that fails is dropped, and then this waits for ever: callers poll besides.
    pub async fn changed_or_never(listener: &mut Option<Self>) {
        let heard = match listener {
            Some(listener) => listener.changed().await.is_ok(),
            None => false,
        };
        if !heard {
            *listener = None;
            std::future::pending::<()>().await;
        }
    }
}
