//! The file source: manifests in a directory or a single file, scanned on every notification and periodically.

use std::path::{Path, PathBuf};
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use futures::stream::{BoxStream, unfold};
use oarsman_cluster::PodSets;
use tokio::time::{sleep, timeout};

use super::file_manifests::{FileManifests, ManifestUpdate};
use super::manifest_reader::{ManifestReader, SinglePodReader};
use super::path_watch::PathWatch;
use super::scan::scan;
use super::{into_shared, on_blocking_thread};
use crate::report_store::ReportStore;

#[cfg(test)]
mod tests;

/// A scan that takes longer is logged.
const SLOW_SCAN: Duration = Duration::from_secs(10);

/// The pods in the files at a path, for this node: a set at first, and whenever it has changed. The path is scanned on
/// every notification and every `rescan`. A path that does not exist has no pods; one that cannot be read sends
/// nothing until it can. Broken manifests and the file of each pod are reported to the report store.
pub fn pods_from_files(
    path: &Path,
    node_name: &str,
    rescan: Duration,
    report_store: &Arc<ReportStore>,
) -> PodSets {
    FileSource::at(path, SinglePodReader { node: node_name.to_owned() })
        .sets(rescan, report_store)
        .map(into_shared)
        .boxed()
}

/// The manifests at one path.
pub(super) struct FileSource<R: ManifestReader> {
    path: PathBuf,
    /// None while a scan is under way.
    manifests: Option<FileManifests<R>>,
    /// None before the first scan, and while one is under way.
    watch: Option<PathWatch>,
}

impl<R: ManifestReader> FileSource<R> {
    /// A path that is not scanned yet.
    pub(super) fn at(path: &Path, reader: R) -> Self {
        // Without slashes at its end, so that a manifest's path, and with it its pod's UID, does not depend on them.
        let path: PathBuf = path.components().collect();
        let manifests = FileManifests::new(path.clone(), reader);
        Self { path, manifests: Some(manifests), watch: None }
    }

    /// The full set of objects, whenever it has changed.
    pub(super) fn sets(
        self,
        rescan: Duration,
        report_store: &Arc<ReportStore>,
    ) -> BoxStream<'static, Vec<R::Item>> {
        unfold((self, Arc::clone(report_store)), move |(mut files, report_store)| async move {
            files.next(rescan, &report_store).await.map(|items| (items, (files, report_store)))
        })
        .boxed()
    }

    /// Reports broken manifests and the file of each pod.
    pub(super) fn report(&self, report_store: &ReportStore) {
        let found = self.manifests.iter().map(FileManifests::source_report);
        found.for_each(|found| report_store.set_source_report(&self.path.to_string_lossy(), found));
    }

    async fn next(&mut self, rescan: Duration, report_store: &ReportStore) -> Option<Vec<R::Item>> {
        loop {
            // The first scan is immediate.
            if let Some(watch) = &mut self.watch {
                tokio::select! {
                    biased;
                    () = watch.changed() => {}
                    () = sleep(rescan) => {}
                }
            }
            let ManifestUpdate { items, messages } = self.scan_path().await?;
            messages.iter().for_each(|message| message.log());
            self.report(report_store);
            if items.is_some() {
                return items;
            }
        }
    }

    /// Watches and scans the path on a thread that may block. A scan does not start before the last one has ended.
    pub(super) async fn scan_path(&mut self) -> Option<ManifestUpdate<R::Item>> {
        let (mut manifests, path) = (self.manifests.take()?, self.path.clone());
        let watch = self.watch.take();
        let mut look = pin!(on_blocking_thread(move || {
            let mut watch = watch.unwrap_or_else(PathWatch::start);
            watch.watch_path(&path);
            let update = manifests.update(scan(&path, R::is_manifest));
            (watch, manifests, update)
        }));
        let looked = match timeout(SLOW_SCAN, &mut look).await {
            Ok(looked) => looked,
            Err(_) => {
                let (path, seconds) = (self.path.display(), SLOW_SCAN.as_secs());
                tracing::warn!(%path, seconds, "manifests not read in time, still waiting");
                look.await
            }
        };
        let (watch, manifests, update) = looked?;
        (self.watch, self.manifests) = (Some(watch), Some(manifests));
        Some(update)
    }
}
