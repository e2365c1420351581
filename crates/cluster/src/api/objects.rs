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
mod pod_certificate_states;
mod pod_certificates;
mod pod_key;
mod provider_tokens;
mod services;
#[cfg(test)]
mod tests;
mod token_request;
mod tokens;
mod trust_bundles;
mod watched_set;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::{ConfigMap, Pod, Secret, ServiceAccount};
use k8s_openapi::api::node::v1::RuntimeClass;
use kube::Client;
use oarsman_clock::Clock;
use oarsman_core::cri_spec::Lookup;
use oarsman_core::ids::{FullName, PodUid};
use oarsman_core::pod::PodExt;
use oarsman_core::pod_certificate::{POD_CERTIFICATE_GATE, certificate_sources};
use oarsman_core::references::{ObjectKind, references, runtime_class};
use oarsman_sync::TaskPanics;

pub use freshness::Freshness;
pub use pod_certificate_states::PodCertificateStates;

use super::rate_limit::{RequestRate, limited};
use crate::{ObjectChanges, Result};
use change_feed::ChangeFeed;
use claims::ClaimReader;
use object_cache::ObjectCache;
use pod_certificates::{PodCertificateManager, PodCertificates};
use provider_tokens::ProviderTokens;
use services::ServiceCache;
use tokens::TokenManager;
use trust_bundles::TrustBundleCache;

/// The deadline of a single call.
const CALL: Duration = Duration::from_secs(10);

/// How what pods refer to is kept.
#[derive(Clone, Debug, Default)]
pub struct ObjectSettings {
    /// How ConfigMaps and Secrets are kept up to date.
    pub freshness: Freshness,
    /// How often the API server may be asked.
    pub rate: RequestRate,
    /// Which sources of projected volumes are on.
    pub projections: ProjectionGates,
    /// Where panics of the refreshing tasks are counted.
    pub panics: TaskPanics,
    /// Where the states of pods' certificates are told.
    pub certificate_states: PodCertificateStates,
}

/// Sources of projected volumes that have gates.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ProjectionGates {
    /// `ClusterTrustBundleProjection`.
    pub trust_bundles: bool,
    /// `PodCertificateRequest`.
    pub pod_certificates: bool,
}

/// What pods of this node refer to.
pub(crate) struct ObjectManager {
    config_maps: Arc<ObjectCache<ConfigMap>>,
    secrets: Arc<ObjectCache<Secret>>,
    classes: Arc<ObjectCache<RuntimeClass>>,
    services: ServiceCache,
    tokens: TokenManager,
    /// Accounts and tokens that credential providers are shown.
    provider_tokens: ProviderTokens,
    trust_bundles: TrustBundleCache,
    /// None if the gate is off.
    pod_certificates: Option<PodCertificateManager>,
    claims: ClaimReader,
    changes: ChangeFeed,
}

impl ObjectManager {
    /// Makes no request yet.
    pub(crate) fn new(
        client: Client,
        node: &str,
        clock: Arc<dyn Clock>,
        settings: ObjectSettings,
    ) -> Self {
        let ObjectSettings { freshness, rate, projections, panics, certificate_states } = settings;
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
            trust_bundles: TrustBundleCache::new(
                client.clone(),
                projections.trust_bundles,
                changes.clone(),
                panics.clone(),
            ),
            pod_certificates: projections.pod_certificates.then(|| {
                let (client, changes) = (client.clone(), changes.clone());
                let panics = panics.clone();
                PodCertificateManager::new(client, node, clock, changes, panics, certificate_states)
            }),
            provider_tokens: ProviderTokens::new(client.clone()),
            tokens: TokenManager::new(client, changes.clone(), panics),
            changes,
        }
    }

    /// All that a pod refers to. The first question about an object waits for an answer, though not for long; that there is no such
    /// object is one.
    pub(crate) async fn lookup(&self, pod: &Pod) -> Result<Lookup> {
        let uid = pod.uid();
        let class = runtime_class(pod).map(kinds::cluster_scoped_name).into_iter().collect();
        let (config_maps, secrets, classes, tokens, services, claims, bundles, certificates) = futures::join!(
            self.config_maps.get_objects(named(pod, ObjectKind::ConfigMap), &uid),
            self.secrets.get_objects(named(pod, ObjectKind::Secret), &uid),
            self.classes.get_objects(class, &uid),
            self.tokens.get_service_account_tokens(pod),
            self.services.for_pod(pod),
            self.claims.get_claims(pod),
            self.trust_bundles.get_trust_bundles(pod),
            self.get_pod_certificates(pod),
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
            trust_bundles: bundles?,
            pod_certificates: certificates?,
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
        self.provider_tokens.forget(pod);
        self.pod_certificates.iter().for_each(|certificates| certificates.forget(pod));
    }

    async fn get_pod_certificates(&self, pod: &Pod) -> Result<PodCertificates> {
        match &self.pod_certificates {
            Some(certificates) => certificates.get_certificates(pod).await,
            None => {
                let off = |(source, _)| (source, Err(gate_is_off(POD_CERTIFICATE_GATE)));
                Ok(certificate_sources(pod).into_iter().map(off).collect())
            }
        }
    }

    /// A service account as it is now.
    pub(crate) async fn service_account(&self, name: &FullName) -> Result<ServiceAccount> {
        self.provider_tokens.service_account(name).await
    }

    /// A token of the pod's service account, if that has this UID.
    pub(crate) async fn provider_token(
        &self,
        pod: &Pod,
        account: &str,
        audience: &str,
    ) -> Result<String> {
        self.provider_tokens.token(pod, account, audience).await
    }

    /// Changes from now on.
    pub(crate) fn changes(&self) -> ObjectChanges {
        self.changes.subscribe()
    }
}

/// Why there is nothing of a kind whose gate is off.
fn gate_is_off(gate: &str) -> String {
    format!(
        "the feature gate {gate} is off on this node: switch it on in the kubelet's featureGates"
    )
}

/// The objects of one kind that a pod refers to.
fn named(pod: &Pod, kind: ObjectKind) -> BTreeSet<FullName> {
    let namespace = pod.full_name().namespace;
    let of_kind = references(pod).into_iter().filter(|reference| reference.kind == kind);
    of_kind.map(|found| FullName { name: found.name, namespace: namespace.clone() }).collect()
}
