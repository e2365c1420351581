//! All objects of a selection, watched from their first use on.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::{Arc, OnceLock};

use k8s_openapi::serde::de::DeserializeOwned;
use kube::{Api, Client, Resource, ResourceExt};
use oarsman_core::ids::FullName;
use oarsman_sync::{TaskName, TaskPanics, restarted};
use tokio_util::task::AbortOnDropHandle;

use super::super::watch::{Watch, WatchProfile, WatchUpdate};
use super::cached_value::CachedValue;

/// Objects by namespace and name; a reader keeps its snapshot.
pub(super) type ObjectSet<K> = Arc<BTreeMap<FullName, Arc<K>>>;

/// Called with every object that is new, is not as it was, or is gone.
type OnChange<K> = Arc<dyn Fn(&K) + Send + Sync>;

/// What is watched, and how.
pub(super) struct WatchedSet<K> {
    pub(super) client: Client,
    pub(super) panics: TaskPanics,
    pub(super) task: TaskName,
    /// The field selector.
    pub(super) fields: String,
    /// What they are, for errors.
    pub(super) object: &'static str,
    pub(super) on_change: OnChange<K>,
    /// Started with the first use.
    pub(super) watch: OnceLock<(CachedValue<ObjectSet<K>>, AbortOnDropHandle<()>)>,
}

impl<K> WatchedSet<K>
where
    K: Resource<DynamicType = ()>
        + Clone
        + DeserializeOwned
        + Debug
        + PartialEq
        + Send
        + Sync
        + 'static,
{
    /// The objects.
    pub(super) fn all(&self) -> &CachedValue<ObjectSet<K>> {
        let (cached_value, _) = self.watch.get_or_init(|| {
            let cached_value = CachedValue::new();
            let (client, fields, object) = (self.client.clone(), self.fields.clone(), self.object);
            let (value, on_change) = (cached_value.clone(), Arc::clone(&self.on_change));
            let task = restarted(self.task, self.panics.clone(), move || {
                let api: Api<K> = Api::all(client.clone());
                let profile = WatchProfile::LONG_LIVED;
                let watch = Watch::new(api, fields.clone(), object.to_owned(), profile);
                keep_up_to_date(watch, value.clone(), Arc::clone(&on_change))
            });
            (cached_value, AbortOnDropHandle::new(tokio::spawn(task)))
        });
        cached_value
    }
}

async fn keep_up_to_date<K>(
    mut watch: Watch<K>,
    value: CachedValue<ObjectSet<K>>,
    on_change: OnChange<K>,
) where
    K: Resource<DynamicType = ()> + Clone + DeserializeOwned + Debug + PartialEq + Send + 'static,
{
    loop {
        let heard = match watch.try_next().await {
            Ok(heard) => heard,
            Err(error) => {
                value.set_failed(error);
                continue;
            }
        };
        let before = value.get().unwrap_or_default();
        let mut now = BTreeMap::clone(&before);
        for update in heard {
            match update {
                WatchUpdate::Listed(objects) => now = objects.into_iter().map(named).collect(),
                WatchUpdate::Changed(object) => now.extend([named(object)]),
                WatchUpdate::Deleted(object) => drop(now.remove(&named(object).0)),
            }
        }
        // Pods that are told of a change read the value at once.
        value.set(Arc::new(now.clone()));
        let changed = now.iter().filter(|(name, object)| before.get(*name) != Some(*object));
        let gone = before.iter().filter(|(name, _)| !now.contains_key(*name));
        changed.chain(gone).for_each(|(_, object)| on_change(object));
    }
}

/// An object by its name, without metadata that is not used.
fn named<K: Resource<DynamicType = ()>>(mut object: K) -> (FullName, Arc<K>) {
    let metadata = object.meta_mut();
    (metadata.managed_fields, metadata.annotations) = (None, None);
    let name =
        FullName { name: object.name_any(), namespace: object.namespace().unwrap_or_default() };
    (name, Arc::new(object))
}
