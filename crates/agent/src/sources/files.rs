//! Pods from a directory or a single file: looked at on every change that is heard of, and now and then in any case.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use futures::stream::unfold;
use k8s_openapi::api::core::v1::Pod;
use oarsman_cluster::PodSets;
use tokio::task::spawn_blocking;
use tokio::time::{sleep, timeout};

use super::scan::scan;
use super::shelf::{News, Shelf};
use super::watch::Watch;
use crate::book::Book;

#[cfg(test)]
mod tests;

/// A look that takes longer is worth a line.
const LONG: Duration = Duration::from_secs(10);

/// The pods in the files at a path, for this node: a set at first, and whenever it has changed. The path is looked at when the
/// system tells of a change and every `rescan`. A path that does not exist holds no pods; one that cannot be read tells
/// nothing until it can. The book is told what is broken, and which pod comes from which file.
pub fn files(path: &Path, node_name: &str, rescan: Duration, book: &Arc<Book>) -> PodSets {
    // Without slashes at its end, so that a manifest's path, and with it its pod's UID, does not depend on them.
    let path: PathBuf = path.components().collect();
    let shelf = Shelf::new(path.clone(), node_name.to_owned());
    let book = Arc::clone(book);
    unfold(Files { path, rescan, shelf: Some(shelf), watch: None, book }, |mut files| async {
        files.next().await.map(|pods| (pods, files))
    })
    .boxed()
}

struct Files {
    path: PathBuf,
    rescan: Duration,
    /// Away while a look is under way.
    shelf: Option<Shelf>,
    /// Made where the stream is polled, which is where the event loop runs.
    watch: Option<Watch>,
    book: Arc<Book>,
}

impl Files {
    async fn next(&mut self) -> Option<Vec<Pod>> {
        loop {
            let watch = match &mut self.watch {
                // The first look is at once.
                watch @ None => watch.insert(Watch::start()),
                Some(watch) => {
                    tokio::select! {
                        biased;
                        () = watch.changed() => {}
                        () = sleep(self.rescan) => {}
                    }
                    watch
                }
            };
            watch.aim(&self.path);
            let News { pods, lines } = self.look().await?;
            lines.iter().for_each(|line| line.log());
            if pods.is_some() {
                return pods;
            }
        }
    }

    /// Looks, on a thread that may block. One look is not begun before the one before has ended.
    async fn look(&mut self) -> Option<News> {
        let (mut shelf, path) = (self.shelf.take()?, self.path.clone());
        let mut look = spawn_blocking(move || {
            let news = shelf.look(scan(&path));
            (shelf, news)
        });
        let looked = match timeout(LONG, &mut look).await {
            Ok(looked) => looked,
            Err(_) => {
                let place = self.path.display();
                tracing::warn!(%place, "no look after {LONG:?}: its file system may hang");
                look.await
            }
        };
        let failed = |error: &_| tracing::error!(%error, "files are not looked at any more");
        let (shelf, news) = looked.inspect_err(failed).ok()?;
        self.book.found(&self.path.to_string_lossy(), shelf.found());
        self.shelf = Some(shelf);
        Some(news)
    }
}
