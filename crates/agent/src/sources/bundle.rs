//! The manifests of `oarsman run`: pods with their ConfigMaps and Secrets, from any number of files, directories and URLs.
//!
//! [`read_once`] reads every place and fails if there is a problem with any of them, before anything is started. Later nothing
//! fails any more: a manifest that becomes invalid keeps its objects, and a set that is inconsistent as a whole changes nothing.

mod everything;
mod kinds;
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
use oarsman_core::config::Lookup;
use tokio::sync::watch;

use super::files::Files;
use super::line::{Line, Remark, Weight};
use super::shared;
use super::shelf::News;
use super::url::{Asking, UrlError};
use crate::book::{Book, Found};
use oarsman_net::Network;
use oarsman_sync::Guarded;

use everything::{Everything, Thing};
use union::{Contents, union};

/// The name under which problems of the set as a whole are reported.
const TOGETHER: &str = "all manifests together";

/// How often places are read without a notification of a change.
#[derive(Clone, Copy, Debug)]
pub struct Periods {
    /// Of files and directories, besides on every notification of a change.
    pub rescan: Duration,
    /// Of URLs.
    pub fetch: Duration,
}

/// The objects that were read, and the places that they are read from again.
pub struct Bundle {
    pods: Vec<Pod>,
    warnings: Vec<Remark>,
    names: PlaceNames,
    /// The places with their state after the first read; taken by the first call of `follow`.
    places: Guarded<Option<Vec<Place>>>,
    held: Arc<Guarded<Held>>,
    objects: Arc<watch::Sender<Lookup>>,
}

/// Places as they were named.
struct PlaceNames {
    texts: Vec<String>,
    node: String,
    network: Arc<dyn Network>,
}

/// The objects of all places; survives a panic of the task that follows them.
struct Held {
    contents: Contents,
    /// By place, its last valid objects.
    sheets: Vec<Vec<Thing>>,
    /// The problems of the set as a whole that were logged last.
    said: Vec<Remark>,
}

/// One place that was named.
enum Place {
    Files(Files<Everything>),
    Url(Asking<Everything>),
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
) -> Result<Bundle, Vec<Remark>> {
    let (mut wrong, mut warnings) = (Vec::new(), Vec::new());
    let (mut read, mut sheets) = (Vec::new(), Vec::new());
    for named in places {
        let mut place = match Place::named(named, node, &network) {
            Ok(place) => place,
            Err(error) => {
                wrong.push(Remark::new(without_login(named), error.to_string()));
                continue;
            }
        };
        let News { items, lines } = place.look().await;
        sort(lines, &mut wrong, &mut warnings);
        read.push(place);
        sheets.push(items.unwrap_or_default());
    }
    if !wrong.is_empty() {
        return Err(wrong);
    }
    let contents = union(sheets.iter().flatten())?;
    if contents.pods.is_empty() {
        let why = "there is no Pod in it: add one (apiVersion: v1, kind: Pod)";
        return Err(vec![Remark::new(places.join(", "), why)]);
    }
    Ok(Bundle {
        pods: contents.pods.clone(),
        warnings,
        names: PlaceNames { texts: places.to_vec(), node: node.to_owned(), network },
        places: Guarded::new(Some(read)),
        objects: Arc::new(watch::Sender::new(contents.objects.clone())),
        held: Arc::new(Guarded::new(Held { contents, sheets, said: Vec::new() })),
    })
}

impl Bundle {
    /// The pods that were read.
    pub fn pods(&self) -> &[Pod] {
        &self.pods
    }

    /// Warnings, such as unknown fields.
    pub fn warnings(&self) -> &[Remark] {
        &self.warnings
    }

    /// The ConfigMaps and Secrets that were read; those that are there later, once [`Bundle::follow`] runs.
    pub fn objects(&self) -> watch::Receiver<Lookup> {
        self.objects.subscribe()
    }

    /// The current pods, and the full set whenever it changes. Broken manifests and the place of each pod are reported to the report
    /// store. After a panic of the task that followed, this can be called again.
    pub fn follow(&self, periods: Periods, book: &Arc<Book>) -> PodSets {
        let read = self.places.lock().take();
        let places = read.unwrap_or_else(|| self.names.places());
        places.iter().for_each(|place| place.tell(book));
        let numbered = |(number, place): (usize, Place)| {
            place.sets(periods, book).map(move |things| (number, things)).boxed()
        };
        let changes = select_all(places.into_iter().enumerate().map(numbered));
        let first =
            futures::stream::once(std::future::ready(self.held.lock().contents.pods.clone()));
        let (held, objects) = (Arc::clone(&self.held), Arc::clone(&self.objects));
        let following = Following { held, objects, changes, book: Arc::clone(book) };
        let later = unfold(following, |mut following| async {
            following.next().await.map(|pods| (pods, following))
        });
        first.chain(later).map(shared).boxed()
    }
}

impl PlaceNames {
    /// Opens the places again. All of them were read once, so none is refused.
    fn places(&self) -> Vec<Place> {
        let place = |text: &String| Place::named(text, &self.node, &self.network).ok();
        self.texts.iter().filter_map(place).collect()
    }
}

impl Place {
    fn named(text: &str, node: &str, network: &Arc<dyn Network>) -> Result<Self, UrlError> {
        let reading = Everything { node: node.to_owned(), base: base() };
        if text.contains("://") {
            let asking = Asking::at(text, Vec::new(), reading, Arc::clone(network))?;
            return Ok(Self::Url(asking));
        }
        Ok(Self::Files(Files::at(Path::new(text), reading)))
    }

    async fn look(&mut self) -> News<Thing> {
        match self {
            Self::Files(files) => files.look().await.unwrap_or_default(),
            Self::Url(asking) => asking.look().await,
        }
    }

    fn tell(&self, book: &Book) {
        match self {
            Self::Files(files) => files.tell(book),
            Self::Url(asking) => asking.tell(book),
        }
    }

    fn sets(self, periods: Periods, book: &Arc<Book>) -> BoxStream<'static, Vec<Thing>> {
        match self {
            Self::Files(files) => files.sets(periods.rescan, book),
            Self::Url(asking) => asking.sets(periods.fetch, book),
        }
    }
}

/// The directory that relative paths are resolved against.
fn base() -> PathBuf {
    std::path::absolute(".").unwrap_or_default()
}

/// A URL that cannot be parsed is shown without what may be a password.
fn without_login(url: &str) -> String {
    match (url.split_once("://"), url.rsplit_once('@')) {
        (Some((scheme, _)), Some((_, rest))) => format!("{scheme}://{rest}"),
        _ => url.to_owned(),
    }
}

fn sort(lines: Vec<Line>, wrong: &mut Vec<Remark>, warnings: &mut Vec<Remark>) {
    for Line { weight, place, said, .. } in lines {
        match weight {
            Weight::Error => wrong.push(Remark::new(place, said)),
            Weight::Warning => warnings.push(Remark::new(place, said)),
            Weight::News | Weight::Detail => {}
        }
    }
}

/// The current objects, and the streams that change them.
struct Following {
    held: Arc<Guarded<Held>>,
    objects: Arc<watch::Sender<Lookup>>,
    changes: SelectAll<BoxStream<'static, (usize, Vec<Thing>)>>,
    book: Arc<Book>,
}

impl Following {
    /// The pods, once they have changed; changed ConfigMaps and Secrets are sent to their receivers.
    async fn next(&mut self) -> Option<Vec<Pod>> {
        loop {
            let (number, things) = self.changes.next().await?;
            let mut held = self.held.lock();
            if let Some(sheet) = held.sheets.get_mut(number) {
                *sheet = things;
            }
            let Some(contents) = held.together(&self.book) else { continue };
            if contents.objects != held.contents.objects {
                self.objects.send_replace(contents.objects.clone());
            }
            let others = contents.pods != held.contents.pods;
            held.contents = contents;
            if others {
                return Some(held.contents.pods.clone());
            }
        }
    }
}

impl Held {
    /// The merged objects, if they are consistent.
    fn together(&mut self, book: &Book) -> Option<Contents> {
        let read = union(self.sheets.iter().flatten());
        let remarks = read.as_ref().err().cloned().unwrap_or_default();
        let broken = remarks.iter().map(|remark| remark.broken(true)).collect();
        book.found(TOGETHER, Found { broken, ..Found::default() });
        for Remark { place, why } in remarks.iter().filter(|remark| !self.said.contains(remark)) {
            tracing::error!(
                source = place,
                error = why,
                "manifests do not fit together, previous pods keep running"
            );
        }
        self.said = remarks;
        read.ok()
    }
}
