//! Listing and watching: all there is, then each change, through every loss of the connection.

use std::fmt::Debug;
use std::ops::ControlFlow;
use std::time::Duration;

use futures::{StreamExt, pin_mut};
use k8s_openapi::serde::de::DeserializeOwned;
use kube::api::{ListParams, WatchEvent, WatchParams};
use kube::{Api, Resource, ResourceExt};
use tokio::time::{Instant, sleep, timeout};

use super::super::error::failed;
use super::CALL;
use super::pause::{Pause, dice};
use crate::{ClusterError, Result};

/// A watch is renewed after this many seconds, give or take, so that those begun together do not end together.
const SHORTEST_WATCH: u32 = 200;
const SPREAD: u32 = 90;
/// A watch on which the API server has said nothing for so long after it should have ended has died silently.
const SILENCE: Duration = Duration::from_secs(10);
/// A watch that ends sooner than this has failed, whatever it says.
const TOO_SHORT: Duration = Duration::from_secs(1);
/// The code of a version that the API server remembers no longer.
const GONE: u16 = 410;

/// What is heard.
#[derive(Debug)]
pub(super) enum Heard<K> {
    /// All there is.
    All(Vec<K>),
    /// One is new, or is not what it was.
    Put(K),
    /// One is gone.
    Gone(K),
    /// Nothing: it will be tried again.
    Failed(ClusterError),
}

/// What is listed and watched.
pub(super) struct Follow<K> {
    pub(super) api: Api<K>,
    /// Which ones, by their fields.
    pub(super) fields: String,
    /// What they are, for errors.
    pub(super) object: String,
}

/// Why a watch is over.
enum Over {
    /// It goes on from where it was.
    Renew,
    /// Everything has to be listed again.
    Relist,
    /// It is tried again in a while.
    Failed(ClusterError),
    /// Nobody wants to hear more.
    Enough,
}

impl<K: Resource<DynamicType = ()> + Clone + Debug + DeserializeOwned + Send + 'static> Follow<K> {
    /// Tells without end, or until whoever hears it has heard enough.
    pub(super) async fn run(&self, mut hear: impl FnMut(Heard<K>) -> ControlFlow<()> + Send) {
        let mut pause = Pause::of_the_impatient();
        loop {
            let version = match self.list().await {
                Ok((items, version)) => {
                    pause = Pause::of_the_patient();
                    if hear(Heard::All(items)).is_break() {
                        return;
                    }
                    version
                }
                Err(error) => {
                    if hear(Heard::Failed(error)).is_break() {
                        return;
                    }
                    sleep(pause.next()).await;
                    continue;
                }
            };
            if self.watch_from(version, &mut hear).await.is_break() {
                return;
            }
        }
    }

    async fn list(&self) -> Result<(Vec<K>, String)> {
        let params = ListParams::default().fields(&self.fields);
        let list = self.within("list", self.api.list(&params)).await?;
        Ok((list.items, list.metadata.resource_version.unwrap_or_default()))
    }

    /// Watches until everything has to be listed again.
    async fn watch_from(
        &self,
        mut version: String,
        hear: &mut (impl FnMut(Heard<K>) -> ControlFlow<()> + Send),
    ) -> ControlFlow<()> {
        let mut pause = Pause::of_the_patient();
        loop {
            let began = Instant::now();
            let mut over = self.watch_once(&mut version, hear).await;
            if matches!(over, Over::Renew) && began.elapsed() < TOO_SHORT {
                over = Over::Failed(self.unavailable("watch", "it ended at once".to_owned()));
            }
            match over {
                Over::Renew => pause = Pause::of_the_patient(),
                Over::Relist => return ControlFlow::Continue(()),
                Over::Enough => return ControlFlow::Break(()),
                Over::Failed(error) => {
                    hear(Heard::Failed(error))?;
                    sleep(pause.next()).await;
                }
            }
        }
    }

    async fn watch_once(
        &self,
        version: &mut String,
        hear: &mut (impl FnMut(Heard<K>) -> ControlFlow<()> + Send),
    ) -> Over {
        let seconds = SHORTEST_WATCH + u32::try_from(dice() % u64::from(SPREAD)).unwrap_or(SPREAD);
        let params = WatchParams::default().fields(&self.fields).timeout(seconds);
        let stream = match self.within("watch", self.api.watch(&params, version)).await {
            Ok(stream) => stream,
            Err(ClusterError::Gone { .. }) => return Over::Relist,
            Err(error) => return Over::Failed(error),
        };
        pin_mut!(stream);
        let longest = Duration::from_secs(u64::from(seconds)) + SILENCE;
        loop {
            let Ok(event) = timeout(longest, stream.next()).await else { return Over::Renew };
            let heard = match event {
                None => return Over::Renew,
                Some(Ok(WatchEvent::Added(object) | WatchEvent::Modified(object))) => {
                    version_of(&object, version);
                    Heard::Put(object)
                }
                Some(Ok(WatchEvent::Deleted(object))) => {
                    version_of(&object, version);
                    Heard::Gone(object)
                }
                Some(Ok(WatchEvent::Bookmark(bookmark))) => {
                    *version = bookmark.metadata.resource_version;
                    continue;
                }
                Some(Ok(WatchEvent::Error(status))) if status.code == GONE => return Over::Relist,
                Some(Ok(WatchEvent::Error(status))) => {
                    return Over::Failed(self.unavailable("watch", status.message));
                }
                Some(Err(error)) => {
                    return Over::Failed(failed("watch", &self.object, &error));
                }
            };
            if hear(heard).is_break() {
                return Over::Enough;
            }
        }
    }

    async fn within<T>(
        &self,
        call: &'static str,
        answer: impl Future<Output = kube::Result<T>>,
    ) -> Result<T> {
        match timeout(CALL, answer).await {
            Ok(Ok(answer)) => Ok(answer),
            Ok(Err(error)) => Err(failed(call, &self.object, &error)),
            Err(_) => Err(self.unavailable(call, format!("no answer within {CALL:?}"))),
        }
    }

    fn unavailable(&self, call: &'static str, why: String) -> ClusterError {
        ClusterError::Unavailable { call, object: self.object.clone(), why }
    }
}

fn version_of<K: Resource>(object: &K, version: &mut String) {
    *version = object.resource_version().unwrap_or_default();
}
