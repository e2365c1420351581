//! Notifications of changes at a path, by inotify.

use std::future::pending;
use std::io;
use std::path::Path;
use std::time::Duration;

use oarsman_host::inotify::AsyncInotify;
use tokio::time::{Instant, sleep, sleep_until};

/// Several files are often written one after the other: a scan waits until there was no change for this long.
const QUIET: Duration = Duration::from_millis(50);
/// After this long a scan starts in any case.
const LONGEST: Duration = Duration::from_millis(500);

/// Watches a path; where inotify is not available, there are no notifications, and only the periodic scan finds changes.
#[derive(Debug)]
pub(super) struct PathWatch(Option<AsyncInotify>);

impl PathWatch {
    /// Watches nothing yet.
    pub(super) fn start() -> Self {
        let warn = |error: &io::Error| {
            let setting = "fs.inotify.max_user_instances";
            tracing::error!(setting, %error, "inotify not started, files are rescanned periodically");
        };
        Self(AsyncInotify::new().inspect_err(warn).ok())
    }

    /// Watches the directory at the path, or the name in its parent where something else or nothing is there. To be called
    /// before each look, since what is at the path may be another directory by now.
    pub(super) fn watch_path(&mut self, path: &Path) {
        let Some(listener) = &mut self.0 else { return };
        let aimed = listener.watch(path, None).or_else(|_| {
            let parent = path.parent().filter(|parent| *parent != Path::new(""));
            listener.watch(parent.unwrap_or(Path::new(".")), path.file_name())
        });
        if let Err(error) = aimed {
            tracing::debug!(path = %path.display(), %error, "path not watched, rescanned periodically");
        }
    }

    /// Waits for a change, and then until no more of them come.
    pub(super) async fn changed(&mut self) {
        self.next().await;
        let end = Instant::now() + LONGEST;
        loop {
            tokio::select! {
                biased;
                () = sleep_until(end) => return,
                () = self.next() => {}
                () = sleep(QUIET) => return,
            }
        }
    }

    async fn next(&mut self) {
        if let Some(listener) = &mut self.0 {
            match listener.changed().await {
                Ok(()) => return,
                Err(error) => {
                    tracing::error!(object = "inotify", %error, "inotify failed, files are rescanned periodically");
                    self.0 = None;
                }
            }
        }
        pending::<()>().await;
    }
}
