//! A watch: all objects of a selection, and then every change to them; it does not end.
//!
//! The list comes as a stream where the API server serves that, and in pages where it does not. A connection that died silently is
//! noticed when a watch has said nothing for a little longer than it was asked to stay open. TCP's own probes would find a dead
//! connection too, but not a proxy that swallows what should come through.

mod manner;
mod trouble;

use std::fmt::Debug;
use std::time::Duration;

use futures::stream::BoxStream;
use futures::{FutureExt, StreamExt};
use k8s_openapi::serde::de::DeserializeOwned;
use kube::api::{ListParams, WatchEvent, WatchParams};
use kube::{Api, Resource, ResourceExt};
use tokio::time::{Instant, sleep_until, timeout};

use super::error;
use super::jitter::{self, Waits};
use crate::ClusterError;
use trouble::Trouble;

pub(super) use manner::Manner;

/// A watch that says nothing for this much longer than it should be open is dead.
const GRACE: Duration = Duration::from_secs(5);
/// The deadline of a page, of the next object of a streamed list, and of the start of a watch.
const PATIENCE: Duration = Duration::from_secs(20);
/// A watch that ends sooner than this without having said anything was not served.
const SHORT: Duration = Duration::from_secs(1);
const PAGE: u32 = 500;
/// The largest number of updates that are returned at once.
const TOGETHER: usize = 1024;
const END_OF_LIST: &str = "k8s.io/initial-events-end";

/// An update of a watch.
#[derive(Debug, PartialEq)]
pub(super) enum News<K> {
    /// The full list.
    All(Vec<K>),
    /// An object is new or has changed.
    Changed(K),
    /// An object was deleted; its last state.
    Gone(K),
}

/// A watch over objects that match a field selector.
pub(super) struct Watch<K> {
    api: Api<K>,
    fields: String,
    /// What they are, for errors.
    object: String,
    manner: Manner,
    state: State<K>,
    /// Whether there has ever been a list.
    answered: bool,
    failures: u32,
    /// No request is made before.
    due: Option<Instant>,
}

enum State<K> {
    /// There was no list yet.
    Fresh,
    /// Everything is known up to this version; no watch is open.
    Until(String),
    /// A watch is open.
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

impl<K> Watch<K>
where
    K: Resource<DynamicType = ()> + Clone + DeserializeOwned + Debug + Send + 'static,
{
    /// A watch over what these fields select; `object` is what errors call it.
    pub(super) fn new(api: Api<K>, fields: String, object: String, manner: Manner) -> Self {
        Self {
            api,
            fields,
            object,
            manner,
            state: State::Fresh,
            answered: false,
            failures: 0,
            due: None,
        }
    }

    /// The next updates, in order: waits for the first, and returns all that have arrived by then.
    pub(super) async fn next(&mut self) -> Vec<News<K>> {
        loop {
            match self.try_next().await {
                Ok(news) => return news,
                // The failures of a long outage are logged less and less often.
                Err(error) if self.failures.is_power_of_two() => {
                    tracing::warn!(object = self.object, attempt = self.failures, %error, "watch failed, will retry");
                }
                Err(_) => {}
            }
        }
    }

    /// The next updates, or why there are none at the moment. After an error the next call waits, longer each time.
    pub(super) async fn try_next(&mut self) -> Result<Vec<News<K>>, ClusterError> {
        if let Some(due) = self.due {
            sleep_until(due).await;
            self.due = None;
        }
        loop {
            let call = if matches!(self.state, State::Fresh) { "list" } else { "watch" };
            match self.step().await {
                Ok(None) => {}
                Ok(Some(first)) => {
                    let mut news = vec![first];
                    self.take_along(&mut news);
                    return Ok(news);
                }
                Err(trouble) => {
                    let error = trouble.told(call, &self.object);
                    self.put_off();
                    return Err(error);
                }
            }
        }
    }

    async fn step(&mut self) -> Result<Option<News<K>>, Trouble> {
        match &mut self.state {
            State::Fresh => {
                let all = self.list().await?;
                self.answered = true;
                Ok(Some(News::All(all)))
            }
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
                        object = self.object,
                        seconds = limit.as_secs(),
                        "watch did not end in time, will be renewed"
                    );
                }
                self.take(heard.ok().flatten())
            }
        }
    }

    /// Appends the updates that have arrived already, without waiting.
    fn take_along(&mut self, news: &mut Vec<News<K>>) {
        while news.len() < TOGETHER
            && let State::Open(telling) = &mut self.state
            && let Some(heard) = telling.events.next().now_or_never()
        {
            match self.take(heard) {
                Ok(more) => news.extend(more),
                // It will show again when the watch is resumed.
                Err(trouble) => {
                    tracing::debug!(object = self.object, error = %trouble, "watch ended, will be renewed")
                }
            }
        }
    }

    /// Handles an event of an open watch; `None` when the watch ended.
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
        if !self.manner.streams {
            return self.list_by_page().await;
        }
        match self.list_by_stream().await {
            Err(trouble) if trouble.is_no_streams() || trouble.is_server_error() => {
                // A server in trouble may stream the next one.
                self.manner.streams = !trouble.is_no_streams();
                tracing::info!(object = self.object, error = %trouble, "streaming list failed, listing in pages");
                self.list_by_page().await
            }
            Err(Trouble::Silent) => {
                // An old one does not understand the question, and tells only of what changes. Should it merely have been away,
                // pages serve as well.
                self.manner.streams = false;
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
                // It does not stream lists: this is a change to an object that was not listed.
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
        let lasts = jitter::between(self.manner.open.0, self.manner.open.1);
        let seconds = u32::try_from(lasts.as_secs()).unwrap_or(u32::MAX);
        let ask = WatchParams {
            send_initial_events: whole,
            ..WatchParams::default().fields(&self.fields).timeout(seconds)
        };
        let opened = timeout(PATIENCE, self.api.watch(&ask, version)).await;
        Ok((opened.map_err(|_| Trouble::Silent)??.boxed(), lasts))
    }

    fn put_off(&mut self) {
        self.failures = self.failures.saturating_add(1);
        let waits = if self.answered { self.manner.waits } else { Waits::FOR_A_FIRST_ANSWER };
        self.due = Some(Instant::now() + waits.after(self.failures));
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
