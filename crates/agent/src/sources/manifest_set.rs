//! The manifests of `oarsman run`: pods with their ConfigMaps and Secrets, from any number of files, directories and URLs.
//!
//! [`read_once`] reads every place and fails if there is a problem with any of them, before anything is started. Later nothing
//! fails any more: a manifest that becomes invalid keeps its objects, and a set that is inconsistent as a whole changes nothing.

mod kinds;
mod object_reader;
#[cfg(test)]
mod tests;
mod union;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use futures::stream::{BoxStream, SelectAll, select_all, unfold};
use k8s_openapi::api::core::v1::Pod;
use oarsman_cluster::PodSets;
use oarsman_core::cri_spec::Lookup;
use tokio::sync::watch;

use super::file_manifests::ManifestUpdate;
use super::files::FileSource;
use super::into_shared;
use super::message::{ManifestMessage, ManifestProblem, MessageLevel};
use super::url::{UrlError, UrlSource};
use crate::report_store::{ReportStore, SourceReport};
use oarsman_net::Network;
use oarsman_sync::Guarded;

use object_reader::{LocatedObject, ObjectReader};
use union::{MergedObjects, union};

/// The name under which problems of the set as a whole are reported.
const ALL_PLACES: &str = "all manifests together";

/// How often places are read without a notification of a change.
#[derive(Clone, Copy, Debug)]
pub struct PollPeriods {
    /// Of files and directories, besides on every notification of a change.
    pub rescan: Duration,
    /// How often URLs are fetched.
    pub fetch: Duration,
}

/// The objects that were read, and the places that they are read from again.
pub struct ManifestSet {
    pods: Vec<Pod>,
    warnings: Vec<ManifestProblem>,
    names: LocationNames,
    /// The places with their state after the first read; taken by the first call of `follow`.
    places: Guarded<Option<Vec<ManifestLocation>>>,
    current: Arc<Guarded<CurrentObjects>>,
    objects: Arc<watch::Sender<Lookup>>,
}

/// Places as they were named.
struct LocationNames {
    texts: Vec<String>,
    node: String,
    network: Arc<dyn Network>,
}

/// The objects of all places; survives a panic of the task that follows them.
struct CurrentObjects {
    merged: MergedObjects,
    /// By place, its last valid objects.
    parsed_by_location: Vec<Vec<LocatedObject>>,
    /// The problems of the set as a whole that were logged last.
    reported: Vec<ManifestProblem>,
}

/// One place that was named.
enum ManifestLocation {
    FileSource(FileSource<ObjectReader>),
    Url(UrlSource<ObjectReader>),
}

/// Reads everything at these paths and URLs, as it is now.
///
/// # Errors
/// With all that is wrong: a place that is not there, a manifest that is broken, two things of one name, something that a pod
/// refers to and that is not given, or no pod at all.
pub async fn read_once(
    places: &[String],
    node: &str,
    network: Arc<dyn Network>,
) -> Result<ManifestSet, Vec<ManifestProblem>> {
    let (mut wrong, mut warnings) = (Vec::new(), Vec::new());
    let (mut read, mut parsed_by_location) = (Vec::new(), Vec::new());
    for named in places {
        let mut place = match ManifestLocation::named(named, node, &network) {
            Ok(place) => place,
            Err(error) => {
                wrong.push(ManifestProblem::new(without_login(named), error.to_string()));
                continue;
            }
        };
        let ManifestUpdate { items, messages } = place.read().await;
        sort_messages(messages, &mut wrong, &mut warnings);
        read.push(place);
        parsed_by_location.push(items.unwrap_or_default());
    }
    if !wrong.is_empty() {
        return Err(wrong);
    }
    let merged = union(parsed_by_location.iter().flatten())?;
    if merged.pods.is_empty() {
        let why = "there is no Pod in it: add one (apiVersion: v1, kind: Pod)";
        return Err(vec![ManifestProblem::new(shown_locations(places), why)]);
    }
    Ok(ManifestSet {
        pods: merged.pods.clone(),
        warnings,
        names: LocationNames { texts: places.to_vec(), node: node.to_owned(), network },
        places: Guarded::new(Some(read)),
        objects: Arc::new(watch::Sender::new(merged.objects.clone())),
        current: Arc::new(Guarded::new(CurrentObjects {
            merged,
            parsed_by_location,
            reported: Vec::new(),
        })),
    })
}

impl ManifestSet {
    /// The pods that were read.
    pub fn pods(&self) -> &[Pod] {
        &self.pods
    }

    /// Warnings, such as unknown fields.
    pub fn warnings(&self) -> &[ManifestProblem] {
        &self.warnings
    }

    /// The ConfigMaps and Secrets that were read; those that are there later, once [`ManifestSet::follow`] runs.
    pub fn objects(&self) -> watch::Receiver<Lookup> {
        self.objects.subscribe()
    }

    /// The current pods, and the full set whenever it changes. Broken manifests and the place of each pod are reported to the report
    /// store. After a panic of the task that followed, this can be called again.
    pub fn follow(&self, periods: PollPeriods, report_store: &Arc<ReportStore>) -> PodSets {
        let read = self.places.lock().take();
        let places = read.unwrap_or_else(|| self.names.places());
        places.iter().for_each(|place| place.report(report_store));
        let numbered = |(number, place): (usize, ManifestLocation)| {
            place
                .sets(periods, report_store)
                .map(move |located_objects| (number, located_objects))
                .boxed()
        };
        let changes = select_all(places.into_iter().enumerate().map(numbered));
        let first =
            futures::stream::once(std::future::ready(self.current.lock().merged.pods.clone()));
        let (current, objects) = (Arc::clone(&self.current), Arc::clone(&self.objects));
        let watch_state =
            ManifestSetWatch { current, objects, changes, report_store: Arc::clone(report_store) };
        let later = unfold(watch_state, |mut watch_state| async {
            watch_state.next().await.map(|pods| (pods, watch_state))
        });
        first.chain(later).map(into_shared).boxed()
    }
}

impl LocationNames {
    /// Opens the places again. All of them were read once, so none is refused.
    fn places(&self) -> Vec<ManifestLocation> {
        let place = |text: &String| ManifestLocation::named(text, &self.node, &self.network).ok();
        self.texts.iter().filter_map(place).collect()
    }
}

impl ManifestLocation {
    fn named(text: &str, node: &str, network: &Arc<dyn Network>) -> Result<Self, UrlError> {
        let reader = ObjectReader { node: node.to_owned(), base: base() };
        if text.contains("://") {
            let source = UrlSource::at(text, Vec::new(), reader, Arc::clone(network))?;
            return Ok(Self::Url(source));
        }
        Ok(Self::FileSource(FileSource::at(Path::new(text), reader)))
    }

    async fn read(&mut self) -> ManifestUpdate<LocatedObject> {
        match self {
            Self::FileSource(files) => files.scan_path().await.unwrap_or_default(),
            Self::Url(source) => source.fetch().await.unwrap_or_default(),
        }
    }

    fn report(&self, report_store: &ReportStore) {
        match self {
            Self::FileSource(files) => files.report(report_store),
            Self::Url(source) => source.report(report_store),
        }
    }

    fn sets(
        self,
        periods: PollPeriods,
        report_store: &Arc<ReportStore>,
    ) -> BoxStream<'static, Vec<LocatedObject>> {
        match self {
            Self::FileSource(files) => files.sets(periods.rescan, report_store),
            Self::Url(source) => source.sets(periods.fetch, report_store),
        }
    }
}

/// The directory that relative paths are resolved against.
fn base() -> PathBuf {
    std::path::absolute(".").unwrap_or_default()
}

/// A URL that cannot be parsed is shown without what may be a password.
/// All places as errors name them: no password, and no token of a query.
fn shown_locations(places: &[String]) -> String {
    let shown = |place: &String| match place.split_once("://") {
        Some(_) => without_login(place.split('?').next().unwrap_or_default()),
        None => place.clone(),
    };
    places.iter().map(shown).collect::<Vec<_>>().join(", ")
}

fn without_login(url: &str) -> String {
    match (url.split_once("://"), url.rsplit_once('@')) {
        (Some((scheme, _)), Some((_, rest))) => format!("{scheme}://{rest}"),
        _ => url.to_owned(),
    }
}

fn sort_messages(
    messages: Vec<ManifestMessage>,
    wrong: &mut Vec<ManifestProblem>,
    warnings: &mut Vec<ManifestProblem>,
) {
    for ManifestMessage { level, place, summary, .. } in messages {
        match level {
            MessageLevel::Error => wrong.push(ManifestProblem::new(place, summary)),
            MessageLevel::Warning => warnings.push(ManifestProblem::new(place, summary)),
            MessageLevel::Info | MessageLevel::Debug => {}
        }
    }
}

/// The current objects, and the streams that change them.
struct ManifestSetWatch {
    current: Arc<Guarded<CurrentObjects>>,
    objects: Arc<watch::Sender<Lookup>>,
    changes: SelectAll<BoxStream<'static, (usize, Vec<LocatedObject>)>>,
    report_store: Arc<ReportStore>,
}

impl ManifestSetWatch {
    /// The pods, once they have changed; changed ConfigMaps and Secrets are sent to their receivers.
    async fn next(&mut self) -> Option<Vec<Pod>> {
        loop {
            let (number, located_objects) = self.changes.next().await?;
            let mut current = self.current.lock();
            if let Some(parsed) = current.parsed_by_location.get_mut(number) {
                *parsed = located_objects;
            }
            let Some(merged) = current.merge(&self.report_store) else { continue };
            if merged.objects != current.merged.objects {
                self.objects.send_replace(merged.objects.clone());
            }
            let others = merged.pods != current.merged.pods;
            current.merged = merged;
            if others {
                return Some(current.merged.pods.clone());
            }
        }
    }
}

impl CurrentObjects {
    /// The merged objects, if they are consistent.
    fn merge(&mut self, report_store: &ReportStore) -> Option<MergedObjects> {
        let read = union(self.parsed_by_location.iter().flatten());
        let problems = read.as_ref().err().cloned().unwrap_or_default();
        let broken = problems.iter().map(|problem| problem.broken(true)).collect();
        report_store
            .set_source_report(ALL_PLACES, SourceReport { broken, ..SourceReport::default() });
        for ManifestProblem { place, why } in
            problems.iter().filter(|problem| !self.reported.contains(problem))
        {
            tracing::error!(
                source = place,
                error = why,
                "manifests do not fit together, previous pods keep running"
            );
        }
        self.reported = problems;
        read.ok()
    }
}
