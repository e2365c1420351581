//! The cache of objects of one kind, each kept up to date for as long as a pod refers to it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Weak};
use std::time::Duration;

use futures::future::try_join_all;
use kube::Client;
use oarsman_core::ids::{FullName, PodUid};
use oarsman_sync::{Guarded, TaskName, TaskPanics, restarted};
use tokio::sync::watch;
use tokio::time::{sleep, timeout};
use tokio_util::task::AbortOnDropHandle;

use super::super::error::failed;
use super::super::jitter::JitteredBackoff;
use super::super::watch::{self as watching, Watch, WatchProfile};
use super::CALL;
use super::cached_value::CachedValue;
use super::change_feed::ChangeFeed;
use super::freshness::Freshness;
use super::kinds::ApiObject;
use crate::{ClusterError, Result};

/// How long an object stays cached after the last pod that referred to it: another pod may follow.
const UNUSED_TTL: Duration = Duration::from_secs(60);
/// How often an object that is not watched is read.
const POLL_PERIOD: Duration = Duration::from_secs(60);

/// The pods that refer to an object.
type Users = BTreeSet<PodUid>;

/// Objects of one kind.
pub(super) struct ObjectCache<K> {
    client: Client,
    freshness: Freshness,
    changes: ChangeFeed,
    panics: TaskPanics,
    /// Never held over an await.
    objects: Guarded<BTreeMap<FullName, CachedObject<K>>>,
}

/// One object; none when there is none of its name.
type ObjectValue<K> = CachedValue<Option<Arc<K>>>;

struct CachedObject<K> {
    value: ObjectValue<K>,
    users: watch::Sender<Users>,
    /// Keeps it up to date; ends with it.
    _refresher: AbortOnDropHandle<()>,
}

impl<K: ApiObject> ObjectCache<K> {
    pub(super) fn new(
        client: Client,
        freshness: Freshness,
        changes: ChangeFeed,
        panics: TaskPanics,
    ) -> Arc<Self> {
        Arc::new(Self { client, freshness, changes, panics, objects: Guarded::default() })
    }

    /// Those objects that exist, for a pod that refers to these and to no other.
    pub(super) async fn get_objects(
        self: &Arc<Self>,
        names: BTreeSet<FullName>,
        user: &PodUid,
    ) -> Result<BTreeMap<FullName, Arc<K>>> {
        let wanted = self.claim(names, user);
        let answers = wanted.into_iter().map(|(name, value)| async move {
            if self.freshness == Freshness::Get {
                self.read(&name, &value).await;
            }
            let late =
                |limit| unavailable::<K>("list", &name, format!("no answer within {limit:?}"));
            Ok(value.wait(late).await?.map(|object| (name, object)))
        });
        Ok(try_join_all(answers).await?.into_iter().flatten().collect())
    }

    /// A pod refers to nothing any more.
    pub(super) fn forget(&self, user: &PodUid) {
        self.objects.lock().values().for_each(|objects| objects.drop_user(user));
    }

    fn claim(
        self: &Arc<Self>,
        names: BTreeSet<FullName>,
        user: &PodUid,
    ) -> Vec<(FullName, ObjectValue<K>)> {
        let mut objects = self.objects.lock();
        let others = objects.iter().filter(|(name, _)| !names.contains(name));
        others.for_each(|(_, other)| other.drop_user(user));
        let claim = |name: FullName| {
            let entry =
                objects.entry(name.clone()).or_insert_with(|| self.start_refresh(name.clone()));
            entry.users.send_if_modified(|users| users.insert(user.clone()));
            (name, entry.value.clone())
        };
        names.into_iter().map(claim).collect()
    }

    /// Begins to keep an object up to date.
    fn start_refresh(self: &Arc<Self>, name: FullName) -> CachedObject<K> {
        let (value, users) = (CachedValue::new(), watch::Sender::new(Users::new()));
        let refresher = ObjectRefresher { value: value.clone(), users: users.subscribe(), name };
        let (refresher, object_cache) = (Arc::new(refresher), Arc::downgrade(self));
        let task = restarted(TaskName::ObjectRefresh, self.panics.clone(), move || {
            refresh_while_used(Weak::clone(&object_cache), Arc::clone(&refresher))
        });
        CachedObject { value, users, _refresher: AbortOnDropHandle::new(tokio::spawn(task)) }
    }

    /// Removes an object from the cache, unless a pod refers to it again.
    fn remove_if_unused(&self, name: &FullName) -> bool {
        let mut objects = self.objects.lock();
        let is_unused = objects.get(name).is_none_or(|entry| entry.users.borrow().is_empty());
        if is_unused {
            objects.remove(name);
        }
        is_unused
    }

    /// Reads an object once. A failure does not replace a known value.
    async fn read(&self, name: &FullName, value: &ObjectValue<K>) {
        if read(&self.client, name, value).await {
            self.changes.publish(&K::change(name.clone()));
        }
    }

    /// How many objects are kept.
    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.objects.lock().len()
    }
}

impl<K> CachedObject<K> {
    fn drop_user(&self, user: &PodUid) {
        self.users.send_if_modified(|users| users.remove(user));
    }
}

/// Keeps an object up to date until no pod refers to it, and removes it from the cache then.
async fn refresh_while_used<K: ApiObject>(
    object_cache: Weak<ObjectCache<K>>,
    refresher: Arc<ObjectRefresher<K>>,
) {
    loop {
        // A cache that is gone has dropped its refreshers.
        let Some(strong) = object_cache.upgrade() else { return };
        let (client, changes, freshness) =
            (strong.client.clone(), strong.changes.clone(), strong.freshness);
        drop(strong);
        tokio::select! {
            biased;
            () = refresher.wait_until_unused() => {}
            () = refresher.refresh(client, &changes, freshness) => {}
        }
        let cache = object_cache.upgrade();
        if cache.is_none_or(|cache| cache.remove_if_unused(&refresher.name)) {
            return;
        }
    }
}

/// Keeps one object up to date.
struct ObjectRefresher<K> {
    name: FullName,
    value: ObjectValue<K>,
    users: watch::Receiver<Users>,
}

impl<K: ApiObject> ObjectRefresher<K> {
    /// Ends when no pod has referred to the object for `UNUSED_TTL`.
    async fn wait_until_unused(&self) {
        let mut users = self.users.clone();
        loop {
            // The entry has been dropped.
            if users.wait_for(Users::is_empty).await.is_err() {
                return;
            }
            tokio::select! {
                biased;
                _ = users.wait_for(|users| !users.is_empty()) => {}
                () = sleep(UNUSED_TTL) => return,
            }
        }
    }

    /// Keeps the object up to date; does not end.
    async fn refresh(&self, client: Client, changes: &ChangeFeed, freshness: Freshness) {
        match freshness {
            Freshness::Watch => self.watch(client, changes).await,
            Freshness::Cache | Freshness::Get => self.poll(client, changes).await,
        }
        // An immutable object needs no refresh.
        std::future::pending::<()>().await;
    }

    async fn watch(&self, client: Client, changes: &ChangeFeed) {
        let api = K::api(client, &self.name.namespace);
        let fields = format!("metadata.name={}", self.name.name);
        let mut watch = Watch::new(api, fields, object::<K>(&self.name), WatchProfile::LONG_LIVED);
        loop {
            let heard = match watch.try_next().await {
                Ok(heard) => heard,
                Err(error) => {
                    let object = object::<K>(&self.name);
                    tracing::debug!(object, %error, "object watch failed, known object stays in use");
                    self.value.set_failed(error);
                    continue;
                }
            };
            for heard in heard {
                let now = match heard {
                    watching::WatchUpdate::Listed(found) => {
                        found.into_iter().next().map(ApiObject::without_extra_metadata)
                    }
                    watching::WatchUpdate::Changed(object) => Some(object.without_extra_metadata()),
                    watching::WatchUpdate::Deleted(_) => None,
                };
                let is_final = now.as_ref().is_some_and(ApiObject::is_immutable);
                if self.value.set(now.map(Arc::new)) {
                    changes.publish(&K::change(self.name.clone()));
                }
                if is_final {
                    return;
                }
            }
        }
    }

    async fn poll(&self, client: Client, changes: &ChangeFeed) {
        let mut failures = 0;
        loop {
            if read(&client, &self.name, &self.value).await {
                changes.publish(&K::change(self.name.clone()));
            }
            let wait = match self.value.get() {
                Some(_) => POLL_PERIOD,
                None => {
                    failures += 1;
                    JitteredBackoff::FIRST_ANSWER.after(failures)
                }
            };
            sleep(wait).await;
        }
    }
}

/// Reads an object; tells whether it changed.
async fn read<K: ApiObject>(client: &Client, name: &FullName, value: &ObjectValue<K>) -> bool {
    let api = K::api(client.clone(), &name.namespace);
    match timeout(CALL, api.get_opt(&name.name)).await {
        Ok(Ok(found)) => {
            return value.set(found.map(|found| Arc::new(found.without_extra_metadata())));
        }
        Ok(Err(error)) => value.set_failed(failed("get", &object::<K>(name), &error)),
        Err(_) => {
            value.set_failed(unavailable::<K>("get", name, format!("no answer within {CALL:?}")));
        }
    }
    false
}

fn object<K: ApiObject>(name: &FullName) -> String {
    match name.namespace.as_str() {
        "" => format!("{} {}", K::RESOURCE_NAME, name.name),
        namespace => format!("{} {namespace}/{}", K::RESOURCE_NAME, name.name),
    }
}

fn unavailable<K: ApiObject>(call: &'static str, name: &FullName, why: String) -> ClusterError {
    ClusterError::Unavailable { call, object: object::<K>(name), why }
}
