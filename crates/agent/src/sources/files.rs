//! The file source: manifests in a directory or a single file, scanned on every notification and periodically.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use futures::stream::{BoxStream, unfold};
use oarsman_cluster::PodSets;
use tokio::task::spawn_blocking;
use tokio::time::{sleep, timeout};

use super::read::{OnePod, Reading};
use super::scan::scan;
use super::shared;
use super::shelf::{News, Shelf};
use super::watch::Watch;
use crate::book::Book;

#[cfg(test)]
mod tests;

/// A scan that takes longer is logged.
const LONG: Duration = Duration::from_secs(10);

/// The pods in the files at a path, for this node: a set at first, and whenever it has changed. The path is scanned on
/// every notification and every `rescan`. A path that does not exist has no pods; one that cannot be read sends
/// nothing until it can. Broken manifests and the file of each pod are reported to the report store.
pub fn files(path: &Path, node_name: &str, rescan: Duration, book: &Arc<Book>) -> PodSets {
    Files::at(path, OnePod { node: node_name.to_owned() }).sets(rescan, book).map(shared).boxed()
}

/// The manifests at one path.
pub(super) struct Files<R: Reading> {
    path: PathBuf,
    /// None while a scan is under way.
    shelf: Option<Shelf<R>>,
    /// Created with the first scan, where the event loop runs.
    watch: Option<Watch>,
}

impl<R: Reading> Files<R> {
    /// Not scanned yet.
    pub(super) fn at(path: &Path, reading: R) -> Self {
        // Without slashes at its end, so that a manifest's path, and with it its pod's UID, does not depend on them.
        let path: PathBuf = path.components().collect();
        let shelf = Shelf::new(path.clone(), reading);
        Self { path, shelf: Some(shelf), watch: None }
    }

    /// The full set of objects, whenever it has changed.
    pub(super) fn sets(
        self,
        rescan: Duration,
        book: &Arc<Book>,
    ) -> BoxStream<'static, Vec<R::Item>> {
        unfold((self, Arc::clone(book)), move |(mut files, book)| async move {
            files.next(rescan, &book).await.map(|items| (items, (files, book)))
        })
        .boxed()
    }

    /// Reports broken manifests and the file of each pod.
    pub(super) fn tell(&self, book: &Book) {
        let found = self.shelf.iter().map(Shelf::found);
        found.for_each(|found| book.found(&self.path.to_string_lossy(), found));
    }

    async fn next(&mut self, rescan: Duration, book: &Book) -> Option<Vec<R::Item>> {
        loop {
            // The first scan is immediate.
            if let Some(watch) = &mut self.watch {
                tokio::select! {
                    biased;
                    () = watch.changed() => {}
                    () = sleep(rescan) => {}
                }
            }
            let News { items, lines } = self.look().await?;
            lines.iter().for_each(|line| line.log());
            self.tell(book);
            if items.is_some() {
                return items;
            }
        }
    }

    /// Scans the path on a thread that may block. A scan does not start before the last one has ended.
    pub(super) async fn look(&mut self) -> Option<News<R::Item>> {
        self.watch.get_or_insert_with(Watch::start).aim(&self.path);
        let (mut shelf, path) = (self.shelf.take()?, self.path.clone());
        let mut look = spawn_blocking(move || {
            let news = shelf.look(scan(&path, R::is_manifest));
            (shelf, news)
        });
        let looked = match timeout(LONG, &mut look).await {
            Ok(looked) => looked,
            Err(_) => {
                let (path, seconds) = (self.path.display(), LONG.as_secs());
                tracing::warn!(%path, seconds, "manifests not read in time, still waiting");
                look.await
            }
        };
        let path = self.path.display();
        let failed = |error: &_| tracing::error!(%path, %error, "reading manifests panicked, files are no longer read");
        let (shelf, news) = looked.inspect_err(failed).ok()?;
        self.shelf = Some(shelf);
        Some(news)
    }
}
