//! A watch: all objects of a selection, and then every change to them; it does not end.
//!
//! The list comes as a stream where the API server serves that, and in pages where it does not. A connection that died silently is
//! noticed when a watch has said nothing for a little longer than it was asked to stay open. TCP's own probes would find a dead
//! connection too, but not a proxy that swallows what should come through.

mod profile;
mod watch_error;

use std::fmt::Debug;
use std::time::Duration;

use futures::stream::BoxStream;
use futures::{FutureExt, StreamExt};
use k8s_openapi::serde::de::DeserializeOwned;
use kube::api::{ListParams, WatchEvent, WatchParams};
use kube::{Api, Resource, ResourceExt};
use tokio::time::{Instant, sleep_until, timeout};

use super::error;
use super::jitter::{self, JitteredBackoff};
use crate::ClusterError;
use watch_error::WatchError;

pub(super) use profile::WatchProfile;

/// A watch that says nothing for this much longer than it should be open is dead.
const GRACE: Duration = Duration::from_secs(5);
/// The deadline of a page, of the next object of a streamed list, and of the start of a watch.
const PATIENCE: Duration = Duration::from_secs(20);
/// A watch that ends sooner than this without having said anything was not served.
const SHORT: Duration = Duration::from_secs(1);
const PAGE: u32 = 500;
/// The largest number of updates that are returned at once.
const MAX_BATCH: usize = 1024;
const END_OF_LIST: &str = "k8s.io/initial-events-end";

/// An update of a watch.
#[derive(Debug, PartialEq)]
pub(super) enum WatchUpdate<K> {
    /// The full list.
    Listed(Vec<K>),
    /// An object is new or has changed.
    Changed(K),
    /// An object was deleted; its last state.
    Deleted(K),
}

/// A watch over objects that match a field selector.
pub(super) struct Watch<K> {
    api: Api<K>,
    fields: String,
    /// What they are, for errors.
    object: String,
    profile: WatchProfile,
    state: WatchState<K>,
    /// Whether there has ever been a list.
    answered: bool,
    failures: u32,
    /// No request is made before.
    due: Option<Instant>,
}

enum WatchState<K> {
    /// There was no list yet.
    Unlisted,
    /// Everything is known up to this version; no watch is open.
    ListedAt(String),
    /// A watch is open.
    Open(OpenWatch<K>),
}

struct OpenWatch<K> {
    events: WatchEventStream<K>,
    version: String,
    since: Instant,
    /// It should have ended by itself after so long.
    lasts: Duration,
    silent: bool,
}

type WatchEventStream<K> = BoxStream<'static, kube::Result<WatchEvent<K>>>;

impl<K> Watch<K>
where
    K: Resource<DynamicType = ()> + Clone + DeserializeOwned + Debug + Send + 'static,
{
    /// A watch over what these fields select; `object` is what errors call it.
    pub(super) fn new(api: Api<K>, fields: String, object: String, profile: WatchProfile) -> Self {
        Self {
            api,
            fields,
            object,
            profile,
            state: WatchState::Unlisted,
            answered: false,
            failures: 0,
            due: None,
        }
    }

    /// The next updates, in order: waits for the first, and returns all that have arrived by then.
    pub(super) async fn next(&mut self) -> Vec<WatchUpdate<K>> {
        loop {
            match self.try_next().await {
                Ok(updates) => return updates,
                // The failures of a long outage are logged less and less often.
                Err(error) if self.failures.is_power_of_two() => {
                    tracing::warn!(object = self.object, attempt = self.failures, %error, "watch failed, will retry");
                }
                Err(_) => {}
            }
        }
    }

    /// The next updates, or why there are none at the moment. After an error the next call waits, longer each time.
    pub(super) async fn try_next(&mut self) -> Result<Vec<WatchUpdate<K>>, ClusterError> {
        if let Some(due) = self.due {
            sleep_until(due).await;
            self.due = None;
        }
        loop {
            let call = if matches!(self.state, WatchState::Unlisted) { "list" } else { "watch" };
            match self.step().await {
                Ok(None) => {}
                Ok(Some(first)) => {
                    let mut updates = vec![first];
                    self.drain_ready(&mut updates);
                    return Ok(updates);
                }
                Err(failure) => {
                    let error = failure.into_cluster_error(call, &self.object);
                    self.schedule_retry();
                    return Err(error);
                }
            }
        }
    }

    async fn step(&mut self) -> Result<Option<WatchUpdate<K>>, WatchError> {
        match &mut self.state {
            WatchState::Unlisted => {
                let all = self.list().await?;
                self.answered = true;
                Ok(Some(WatchUpdate::Listed(all)))
            }
            WatchState::ListedAt(version) => {
                let version = version.clone();
                self.resume(version).await?;
                Ok(None)
            }
            WatchState::Open(watch) => {
                let limit = watch.lasts + GRACE;
                let heard = timeout(limit, watch.events.next()).await;
                if heard.is_err() {
                    tracing::info!(
                        object = self.object,
                        seconds = limit.as_secs(),
                        "watch did not end in time, will be renewed"
                    );
                }
                self.handle_event(heard.ok().flatten())
            }
        }
    }

    /// Appends the updates that have arrived already, without waiting.
    fn drain_ready(&mut self, updates: &mut Vec<WatchUpdate<K>>) {
        while updates.len() < MAX_BATCH
            && let WatchState::Open(watch) = &mut self.state
            && let Some(heard) = watch.events.next().now_or_never()
        {
            match self.handle_event(heard) {
                Ok(more) => updates.extend(more),
                // It will show again when the watch is resumed.
                Err(failure) => {
                    tracing::debug!(object = self.object, error = %failure, "watch ended, will be renewed");
                }
            }
        }
    }

    /// Handles an event of an open watch; `None` when the watch ended.
    fn handle_event(
        &mut self,
        heard: Option<kube::Result<WatchEvent<K>>>,
    ) -> Result<Option<WatchUpdate<K>>, WatchError> {
        let WatchState::Open(watch) = &mut self.state else { return Ok(None) };
        let Some(heard) = heard else {
            let short = watch.silent && watch.since.elapsed() < SHORT;
            self.state = WatchState::ListedAt(std::mem::take(&mut watch.version));
            return if short { Err(WatchError::Short) } else { Ok(None) };
        };
        watch.silent = false;
        match heard {
            Ok(WatchEvent::Added(object) | WatchEvent::Modified(object)) => {
                watch.set_version(&object);
                self.failures = 0;
                Ok(Some(WatchUpdate::Changed(object)))
            }
            Ok(WatchEvent::Deleted(object)) => {
                watch.set_version(&object);
                self.failures = 0;
                Ok(Some(WatchUpdate::Deleted(object)))
            }
            Ok(WatchEvent::Bookmark(mark)) => {
                watch.version = mark.metadata.resource_version;
                self.failures = 0;
                Ok(None)
            }
            Ok(WatchEvent::Error(status)) => {
                let version = std::mem::take(&mut watch.version);
                self.state = if status.code == 410 {
                    WatchState::Unlisted
                } else {
                    WatchState::ListedAt(version)
                };
                Err(WatchError::Ended(status))
            }
            Err(error) => {
                self.state = WatchState::ListedAt(std::mem::take(&mut watch.version));
                Err(error.into())
            }
        }
    }

    /// Opens a watch from a version on.
    async fn resume(&mut self, version: String) -> Result<(), WatchError> {
        match self.open(&version, false).await {
            Ok((events, lasts)) => {
                self.state = WatchState::Open(OpenWatch::new(events, version, lasts));
                Ok(())
            }
            // What happened since then is not remembered any more.
            Err(WatchError::Failed(error)) if error::code(&error) == Some(410) => {
                self.state = WatchState::Unlisted;
                Err(error.into())
            }
            Err(failure) => Err(failure),
        }
    }

    async fn list(&mut self) -> Result<Vec<K>, WatchError> {
        if !self.profile.streams {
            return self.list_by_page().await;
        }
        match self.list_by_stream().await {
            Err(failure) if failure.is_streaming_unsupported() || failure.is_server_error() => {
                // A server in trouble may stream the next one.
                self.profile.streams = !failure.is_streaming_unsupported();
                tracing::info!(object = self.object, error = %failure, "streaming list failed, listing in pages");
                self.list_by_page().await
            }
            Err(WatchError::Silent) => {
                // An old one does not understand the question, and tells only of what changes. Should it merely have been away,
                // pages serve as well.
                self.profile.streams = false;
                Err(WatchError::Silent)
            }
            listed => listed,
        }
    }

    /// The whole list as the beginning of a watch. It is as new as the moment it was asked for.
    async fn list_by_stream(&mut self) -> Result<Vec<K>, WatchError> {
        let (mut events, lasts) = self.open("", true).await?;
        let mut all = Vec::new();
        loop {
            let heard = timeout(PATIENCE, events.next()).await.map_err(|_| WatchError::Silent)?;
            match heard.ok_or(WatchError::Short)?? {
                WatchEvent::Added(object) | WatchEvent::Modified(object) => all.push(object),
                WatchEvent::Bookmark(mark)
                    if mark.metadata.annotations.contains_key(END_OF_LIST) =>
                {
                    let version = mark.metadata.resource_version;
                    self.state = WatchState::Open(OpenWatch::new(events, version, lasts));
                    return Ok(all);
                }
                WatchEvent::Bookmark(_) => {}
                // It does not stream lists: this is a change to an object that was not listed.
                WatchEvent::Deleted(_) => return Err(WatchError::Silent),
                WatchEvent::Error(status) => return Err(WatchError::Ended(status)),
            }
        }
    }

    async fn list_by_page(&mut self) -> Result<Vec<K>, WatchError> {
        let mut all = Vec::new();
        let mut ask = ListParams::default().fields(&self.fields).limit(PAGE);
        loop {
            let page =
                timeout(PATIENCE, self.api.list(&ask)).await.map_err(|_| WatchError::Silent)??;
            all.extend(page.items);
            ask.continue_token = page.metadata.continue_.filter(|token| !token.is_empty());
            if ask.continue_token.is_none() {
                let version = page.metadata.resource_version.filter(|version| !version.is_empty());
                self.state = WatchState::ListedAt(version.ok_or(WatchError::NoVersion)?);
                return Ok(all);
            }
        }
    }

    async fn open(
        &mut self,
        version: &str,
        whole: bool,
    ) -> Result<(WatchEventStream<K>, Duration), WatchError> {
        let lasts = jitter::between(self.profile.open.0, self.profile.open.1);
        let seconds = u32::try_from(lasts.as_secs()).unwrap_or(u32::MAX);
        let ask = WatchParams {
            send_initial_events: whole,
            ..WatchParams::default().fields(&self.fields).timeout(seconds)
        };
        let opened = timeout(PATIENCE, self.api.watch(&ask, version)).await;
        Ok((opened.map_err(|_| WatchError::Silent)??.boxed(), lasts))
    }

    fn schedule_retry(&mut self) {
        self.failures = self.failures.saturating_add(1);
        let backoff =
            if self.answered { self.profile.backoff } else { JitteredBackoff::FIRST_ANSWER };
        self.due = Some(Instant::now() + backoff.after(self.failures));
    }
}

impl<K: Resource> OpenWatch<K> {
    fn new(events: WatchEventStream<K>, version: String, lasts: Duration) -> Self {
        Self { events, version, since: Instant::now(), lasts, silent: true }
    }

    fn set_version(&mut self, object: &K) {
        if let Some(version) = object.resource_version() {
            self.version = version;
        }
    }
}
