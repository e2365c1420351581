//! Every object of a selection, and then whatever becomes of them, for ever.
//!
//! The list comes as a stream where the API server serves that, and in pages where it does not. A watch is asked for half a minute at
//! a time: a connection that died silently is noticed when it has said nothing for a little longer, well within the forty
//! seconds after which others would take this node for dead. Asking again from where we were costs the API server less than the
//! renewal of our lease. TCP's own probes would find a dead connection too, but not a proxy that swallows what should come through.

use std::fmt::Debug;
use std::time::Duration;

use futures::stream::BoxStream;
use futures::{FutureExt, StreamExt};
use k8s_openapi::serde::de::DeserializeOwned;
use kube::api::{ListParams, WatchEvent, WatchParams};
use kube::core::Status;
use kube::{Api, Resource, ResourceExt};
use tokio::time::{Instant, sleep, timeout};

use super::{error, jitter};

/// How long the API server is asked to keep a watch open. Not all nodes come back in the same second.
const OPEN: (Duration, Duration) = (Duration::from_secs(20), Duration::from_secs(25));
/// A watch that says nothing for this much longer than it should be open is dead.
const GRACE: Duration = Duration::from_secs(5);
/// Within this time a list must come along, page by page or object by object, and a watch must begin.
const PATIENCE: Duration = Duration::from_secs(20);
/// A watch that ends sooner than this without having said anything was not served.
const SHORT: Duration = Duration::from_secs(1);
const PAGE: u32 = 500;
/// So many changes at most are told at once.
const TOGETHER: usize = 1024;
const END_OF_LIST: &str = "k8s.io/initial-events-end";

/// What was heard.
#[derive(Debug, PartialEq)]
pub(super) enum News<K> {
    /// These are all there are.
    All(Vec<K>),
    /// One is new, or other than it was.
    Changed(K),
    /// One is there no more; as it was last.
    Gone(K),
}

/// A watch over objects that match a field selector.
pub(super) struct Watch<K> {
    api: Api<K>,
    fields: String,
    state: State<K>,
    /// Whether the API server streams lists, as far as is known.
    streams: bool,
    failures: u32,
}

enum State<K> {
    /// Nothing is known.
    Fresh,
    /// Everything is known up to a version.
    Until(String),
    /// More is being told.
    Open(Telling<K>),
}

/// An open watch.
struct Telling<K> {
    events: Events<K>,
    version: String,
    since: Instant,
    /// It should have ended by itself after so long.
    lasts: Duration,
    silent: bool,
}

type Events<K> = BoxStream<'static, kube::Result<WatchEvent<K>>>;

/// Why a watch cannot go on as it was.
#[derive(Debug, thiserror::Error)]
enum Trouble {
    #[error("{}", error::in_full(.0))]
    Failed(#[from] kube::Error),
    #[error("{} ({})", .0.message, .0.code)]
    Ended(Box<Status>),
    #[error("no answer within {PATIENCE:?}")]
    Silent,
    #[error("a list that has no version")]
    NoVersion,
    #[error("it ended as soon as it had begun")]
    Short,
}

impl<K> Watch<K>
where
    K: Resource<DynamicType = ()> + Clone + DeserializeOwned + Debug + Send + 'static,
{
    pub(super) fn new(api: Api<K>, fields: String) -> Self {
        Self { api, fields, state: State::Fresh, streams: true, failures: 0 }
    }

    /// What is new, in order: waits for the first, and takes along what has come by then.
    pub(super) async fn next(&mut self) -> Vec<News<K>> {
        loop {
            match self.step().await {
                Ok(None) => {}
                Ok(Some(first)) => {
                    let mut news = vec![first];
                    self.take_along(&mut news);
                    return news;
                }
                Err(trouble) => self.pause(&trouble).await,
            }
        }
    }

    async fn step(&mut self) -> Result<Option<News<K>>, Trouble> {
        match &mut self.state {
            State::Fresh => self.list().await.map(|all| Some(News::All(all))),
            State::Until(version) => {
                let version = version.clone();
                self.resume(version).await?;
                Ok(None)
            }
            State::Open(telling) => {
                let limit = telling.lasts + GRACE;
                let heard = timeout(limit, telling.events.next()).await;
                if heard.is_err() {
                    tracing::info!(
                        fields = self.fields,
                        "a watch said nothing for {limit:?} and is renewed"
                    );
                }
                self.take(heard.ok().flatten())
            }
        }
    }

    /// What is there already, without waiting.
    fn take_along(&mut self, news: &mut Vec<News<K>>) {
        while news.len() < TOGETHER
            && let State::Open(telling) = &mut self.state
            && let Some(heard) = telling.events.next().now_or_never()
        {
            match self.take(heard) {
                Ok(more) => news.extend(more),
                // It will show again when the watch is resumed.
                Err(trouble) => tracing::debug!(fields = self.fields, %trouble, "a watch ended"),
            }
        }
    }

    /// Takes in what an open watch said; nothing when it ended.
    fn take(
        &mut self,
        heard: Option<kube::Result<WatchEvent<K>>>,
    ) -> Result<Option<News<K>>, Trouble> {
        let State::Open(telling) = &mut self.state else { return Ok(None) };
        let Some(heard) = heard else {
            let short = telling.silent && telling.since.elapsed() < SHORT;
            self.state = State::Until(std::mem::take(&mut telling.version));
            return if short { Err(Trouble::Short) } else { Ok(None) };
        };
        telling.silent = false;
        match heard {
            Ok(WatchEvent::Added(object) | WatchEvent::Modified(object)) => {
                telling.came_to(&object);
                self.failures = 0;
                Ok(Some(News::Changed(object)))
            }
            Ok(WatchEvent::Deleted(object)) => {
                telling.came_to(&object);
                self.failures = 0;
                Ok(Some(News::Gone(object)))
            }
            Ok(WatchEvent::Bookmark(mark)) => {
                telling.version = mark.metadata.resource_version;
                self.failures = 0;
                Ok(None)
            }
            Ok(WatchEvent::Error(status)) => {
                let version = std::mem::take(&mut telling.version);
                self.state = if status.code == 410 { State::Fresh } else { State::Until(version) };
                Err(Trouble::Ended(status))
            }
            Err(error) => {
                self.state = State::Until(std::mem::take(&mut telling.version));
                Err(error.into())
            }
        }
    }

    /// Opens a watch from a version on.
    async fn resume(&mut self, version: String) -> Result<(), Trouble> {
        match self.open(&version, false).await {
            Ok((events, lasts)) => {
                self.state = State::Open(Telling::new(events, version, lasts));
                Ok(())
            }
            // What happened since then is not remembered any more.
            Err(Trouble::Failed(error)) if error::code(&error) == Some(410) => {
                self.state = State::Fresh;
                Err(error.into())
            }
            Err(trouble) => Err(trouble),
        }
    }

    async fn list(&mut self) -> Result<Vec<K>, Trouble> {
        if !self.streams {
            return self.list_by_page().await;
        }
        match self.list_by_stream().await {
            Err(Trouble::Failed(error)) if matches!(error::code(&error), Some(400 | 422)) => {
                tracing::info!(
                    fields = self.fields,
                    "the API server streams no lists: they are read in pages"
                );
                self.streams = false;
                self.list_by_page().await
            }
            Err(Trouble::Silent) => {
                // An old one does not understand the question, and tells only of what changes. Should it merely have been away,
                // pages serve as well.
                self.streams = false;
                Err(Trouble::Silent)
            }
            listed => listed,
        }
    }

    /// The whole list as the beginning of a watch. It is as new as the moment it was asked for.
    async fn list_by_stream(&mut self) -> Result<Vec<K>, Trouble> {
        let (mut events, lasts) = self.open("", true).await?;
        let mut all = Vec::new();
        loop {
            let heard = timeout(PATIENCE, events.next()).await.map_err(|_| Trouble::Silent)?;
            match heard.ok_or(Trouble::Short)?? {
                WatchEvent::Added(object) | WatchEvent::Modified(object) => all.push(object),
                WatchEvent::Bookmark(mark)
                    if mark.metadata.annotations.contains_key(END_OF_LIST) =>
                {
                    let version = mark.metadata.resource_version;
                    self.state = State::Open(Telling::new(events, version, lasts));
                    return Ok(all);
                }
                WatchEvent::Bookmark(_) => {}
                // It does not stream lists: this is a change to something that was not told.
                WatchEvent::Deleted(_) => return Err(Trouble::Silent),
                WatchEvent::Error(status) => return Err(Trouble::Ended(status)),
            }
        }
    }

    async fn list_by_page(&mut self) -> Result<Vec<K>, Trouble> {
        let mut all = Vec::new();
        let mut ask = ListParams::default().fields(&self.fields).limit(PAGE);
        loop {
            let page =
                timeout(PATIENCE, self.api.list(&ask)).await.map_err(|_| Trouble::Silent)??;
            all.extend(page.items);
            ask.continue_token = page.metadata.continue_.filter(|token| !token.is_empty());
            if ask.continue_token.is_none() {
                let version = page.metadata.resource_version.filter(|version| !version.is_empty());
                self.state = State::Until(version.ok_or(Trouble::NoVersion)?);
                return Ok(all);
            }
        }
    }

    async fn open(&mut self, version: &str, whole: bool) -> Result<(Events<K>, Duration), Trouble> {
        let lasts = jitter::between(OPEN.0, OPEN.1);
        let seconds = u32::try_from(lasts.as_secs()).unwrap_or(u32::MAX);
        let ask = WatchParams {
            send_initial_events: whole,
            ..WatchParams::default().fields(&self.fields).timeout(seconds)
        };
        let opened = timeout(PATIENCE, self.api.watch(&ask, version)).await;
        Ok((opened.map_err(|_| Trouble::Silent)??.boxed(), lasts))
    }

    async fn pause(&mut self, trouble: &Trouble) {
        self.failures = self.failures.saturating_add(1);
        let wait = jitter::after(self.failures);
        // One that has been away for long need not be told of every few seconds.
        if self.failures.is_power_of_two() {
            tracing::warn!(fields = self.fields, %trouble, "a watch failed and is renewed in {wait:?}");
        }
        sleep(wait).await;
    }
}

impl<K: Resource> Telling<K> {
    fn new(events: Events<K>, version: String, lasts: Duration) -> Self {
        Self { events, version, since: Instant::now(), lasts, silent: true }
    }

    fn came_to(&mut self, object: &K) {
        if let Some(version) = object.resource_version() {
            self.version = version;
        }
    }
}
