//! ConfigMaps, Secrets, RuntimeClasses and claims of volumes: written by users, read by agents, which are notified of changes, except for
//! claims, which nodes may not watch.

use std::sync::Arc;

use futures::{StreamExt, stream};
use k8s_openapi::api::certificates::v1beta1::ClusterTrustBundle;
use k8s_openapi::api::core::v1::{ConfigMap, PersistentVolume, PersistentVolumeClaim, Pod, Secret};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use oarsman_cluster::ObjectChanges;
use oarsman_core::cri_spec::Lookup;
use oarsman_core::ids::FullName;
use oarsman_core::persistent_volume::bound_name;
use oarsman_core::references::{ObjectChange, claims};
use oarsman_core::trust_bundle::{TrustBundleName, projections};
use oarsman_sync::ordered_watch;
use tokio::time::sleep;

use super::client::ClusterLink;
use super::watch::PAUSE;
use super::{ApiFailure, FakeCluster};
use crate::faults::EventDelivery;

impl FakeCluster {
    /// Creates or replaces a ConfigMap.
    pub fn put_config_map(&self, map: ConfigMap) {
        self.configure(|config| {
            config.config_maps.insert(full_name(&map.metadata), Arc::new(map));
        });
    }

    /// Creates or replaces a Secret.
    pub fn put_secret(&self, secret: Secret) {
        self.configure(|config| {
            config.secrets.insert(full_name(&secret.metadata), Arc::new(secret));
        });
    }

    /// Creates or replaces a claim.
    pub fn put_claim(&self, claim: PersistentVolumeClaim) {
        self.state().config.claims.insert(full_name(&claim.metadata), Arc::new(claim));
    }

    /// Deletes a claim.
    pub fn delete_claim(&self, name: &FullName) {
        self.state().config.claims.remove(name);
    }

    /// Creates or replaces a persistent volume.
    pub fn put_persistent_volume(&self, volume: PersistentVolume) {
        let name = volume.metadata.name.clone().unwrap_or_default();
        self.state().config.persistent_volumes.insert(name, Arc::new(volume));
    }

    /// All ConfigMaps, Secrets and RuntimeClasses, and the tokens and claims of a pod.
    pub(super) fn config(&self, pod: &Pod) -> Result<Lookup, ApiFailure> {
        self.check_available()?;
        let mut config = self.state().config.clone();
        let claims = claims(pod);
        config.claims.retain(|name, _| claims.iter().any(|reference| reference.claim == *name));
        let bound: Vec<_> = config.claims.values().filter_map(|claim| bound_name(claim)).collect();
        config.persistent_volumes.retain(|name, _| bound.contains(&name.as_str()));
        let has_bundles = !projections(pod).is_empty();
        let trust_bundles = has_bundles.then(|| Ok(self.state().trust_bundles.clone()));
        let pod_certificates = self.pod_certificates(pod);
        Ok(Lookup { tokens: self.tokens(pod), trust_bundles, pod_certificates, ..config })
    }

    /// Creates or replaces a trust bundle.
    pub fn put_trust_bundle(&self, bundle: ClusterTrustBundle) {
        let name = bundle.metadata.name.clone().unwrap_or_default();
        let signer = bundle.spec.signer_name.clone().unwrap_or_default();
        self.state().trust_bundles.insert(name.clone(), Arc::new(bundle));
        self.notify_watchers(ObjectChange::TrustBundle(TrustBundleName { name, signer }));
    }

    /// Creates or replaces a RuntimeClass with this handler.
    pub fn put_runtime_class(&self, name: &str, handler: &str) {
        self.state().config.runtime_classes.insert(name.to_owned(), handler.to_owned());
        self.notify_watchers(ObjectChange::RuntimeClass(name.to_owned()));
    }

    /// Notifies watchers.
    pub(super) fn notify_watchers(&self, change: ObjectChange) {
        self.0.changed.send_modify(|told| told.push(change));
    }

    fn configure(&self, change: impl FnOnce(&mut Lookup)) {
        let mut state = self.state();
        let before = state.config.clone();
        change(&mut state.config);
        let changed = state.config.changed_since(&before);
        drop(state);
        self.0.changed.send_modify(|told| told.extend(changed.into_iter().map(ObjectChange::from)));
    }
}

/// Changes from now on, also those during an outage.
pub(super) fn changes(connection: ClusterLink) -> ObjectChanges {
    let changed = connection.cluster.0.changed.subscribe();
    let heard = changed.get().len();
    let watch = ConfigWatch { connection, changed, heard };
    stream::unfold(watch, |mut watch| async { watch.next().await.map(|object| (object, watch)) })
        .boxed()
}

struct ConfigWatch {
    connection: ClusterLink,
    changed: ordered_watch::Receiver<Vec<ObjectChange>>,
    /// How many changes have been delivered.
    heard: usize,
}

impl ConfigWatch {
    async fn next(&mut self) -> Option<ObjectChange> {
        let heard = self.heard;
        // The sender lives as long as the connection.
        let told = self.changed.wait_for(|told| told.len() > heard).await.ok()?;
        if let EventDelivery::Late(stall) = self.connection.faults.next_event() {
            sleep(stall).await;
        }
        while self.connection.cluster.check_available().is_err() {
            sleep(PAUSE).await;
        }
        self.heard += 1;
        told.get(heard).cloned()
    }
}

fn full_name(metadata: &ObjectMeta) -> FullName {
    FullName {
        name: metadata.name.clone().unwrap_or_default(),
        namespace: metadata.namespace.clone().unwrap_or_else(|| "default".to_owned()),
    }
}
