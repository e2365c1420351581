//! What pods refer to: ConfigMaps, Secrets, runtime classes, services, tokens and claims of volumes, kept up to date so that most questions are
//! answered from memory.
//!
//! An object is asked for when the first pod refers to it and kept until no pod does that still runs: [`ObjectManager::forget`] tells of
//! a pod's end. Going by age instead would lose sight of pods that are at rest, since nothing polls here, and their files would grow
//! stale. While the API server is away, what was known counts.

mod cached_value;
mod change_feed;
mod claims;
mod freshness;
mod kinds;
mod object_cache;
mod services;
#[cfg(test)]
mod tests;
mod tokens;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::{ConfigMap, Pod, Secret};
use k8s_openapi::api::node::v1::RuntimeClass;
use kube::Client;
use oarsman_core::cri_spec::Lookup;
use oarsman_core::ids::{FullName, PodUid};
use oarsman_core::pod::PodExt;
use oarsman_core::references::{ObjectKind, references, runtime_class};
use oarsman_sync::TaskPanics;

pub use freshness::Freshness;

use super::rate_limit::{RequestRate, limited};
use crate::{ObjectChanges, Result};
use change_feed::ChangeFeed;
use claims::ClaimReader;
use object_cache::ObjectCache;
use services::ServiceCache;
use tokens::TokenManager;

/// The deadline of a single call.
const CALL: Duration = Duration::from_secs(10);

/// How what pods refer to is kept.
#[derive(Clone, Debug, Default)]
pub struct ObjectSettings {
    /// How ConfigMaps and Secrets are kept up to date.
    pub freshness: Freshness,
    /// How often the API server may be asked.
    pub rate: RequestRate,
    /// Where panics of the refreshing tasks are counted.
    pub panics: TaskPanics,
}

/// What pods of this node refer to.
pub(crate) struct ObjectManager {
    config_maps: Arc<ObjectCache<ConfigMap>>,
    secrets: Arc<ObjectCache<Secret>>,
    classes: Arc<ObjectCache<RuntimeClass>>,
    services: ServiceCache,
    tokens: TokenManager,
    claims: ClaimReader,
    changes: ChangeFeed,
}

impl ObjectManager {
    /// Makes no request yet.
    pub(crate) fn new(client: Client, settings: ObjectSettings) -> Self {
        let ObjectSettings { freshness, rate, panics } = settings;
        let changes = ChangeFeed::default();
        // Of its own: what pods refer to must not delay their statuses.
        let client = limited(client, rate);
        Self {
            config_maps: ObjectCache::new(
                client.clone(),
                freshness,
                changes.clone(),
                panics.clone(),
            ),
            secrets: ObjectCache::new(client.clone(), freshness, changes.clone(), panics.clone()),
            // Only these two may be had in other ways.
            classes: ObjectCache::new(
                client.clone(),
                Freshness::Watch,
                changes.clone(),
                panics.clone(),
            ),
            services: ServiceCache::new(client.clone(), panics.clone()),
            claims: ClaimReader::new(client.clone()),
            tokens: TokenManager::new(client, changes.clone(), panics),
            changes,
        }
    }

    /// All that a pod refers to. The first question about an object waits for an answer, though not for long; that there is no such
    /// object is one.
    pub(crate) async fn lookup(&self, pod: &Pod) -> Result<Lookup> {
        let uid = pod.uid();
        let class = runtime_class(pod).map(kinds::cluster_scoped_name).into_iter().collect();
        let (config_maps, secrets, classes, tokens, services, claims) = futures::join!(
            self.config_maps.get_objects(named(pod, ObjectKind::ConfigMap), &uid),
            self.secrets.get_objects(named(pod, ObjectKind::Secret), &uid),
            self.classes.get_objects(class, &uid),
            self.tokens.get_service_account_tokens(pod),
            self.services.for_pod(pod),
            self.claims.get_claims(pod),
        );
        let claims = claims?;
        let handler =
            |(name, class): (FullName, Arc<RuntimeClass>)| (name.name, class.handler.clone());
        Ok(Lookup {
            config_maps: config_maps?,
            secrets: secrets?,
            runtime_classes: classes?.into_iter().map(handler).collect(),
            tokens: tokens?,
            services: services?,
            claims: claims.claims,
            persistent_volumes: claims.volumes,
            ..Lookup::default()
        })
    }

    /// The pod needs its objects no longer.
    pub(crate) fn forget(&self, pod: &PodUid) {
        self.config_maps.forget(pod);
        self.secrets.forget(pod);
        self.classes.forget(pod);
        self.tokens.forget(pod);
        self.claims.forget(pod);
    }

    /// Changes from now on.
    pub(crate) fn changes(&self) -> ObjectChanges {
        self.changes.subscribe()
    }
}

/// The objects of one kind that a pod refers to.
fn named(pod: &Pod, kind: ObjectKind) -> BTreeSet<FullName> {
    let namespace = pod.full_name().namespace;
    let of_kind = references(pod).into_iter().filter(|reference| reference.kind == kind);
    of_kind.map(|found| FullName { name: found.name, namespace: namespace.clone() }).collect()
}
