//! What a pod refers to outside itself, as far as the agent has it.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

use k8s_openapi::api::core::v1::{
    ConfigMap, PersistentVolume, PersistentVolumeClaim, Secret, Service,
};

use super::object_data::ObjectData;
use crate::ids::FullName;
use crate::pod_certificate::{CertificateSource, PodCertificate};
use crate::references::{ObjectKind, ObjectName};
use crate::token::TokenRequestKey;
use crate::trust_bundle::TrustBundles;

/// The bytes of each variable by its name; not every value is UTF-8.
pub(in crate::cri_spec) type Values = BTreeMap<String, Vec<u8>>;

/// Config maps, secrets, services, files, runtime classes, tokens, claims and their volumes that pods refer to.
#[derive(Clone, PartialEq)]
pub struct Lookup {
    /// By namespace and name. Shared by all pods that refer to them: a copy for each would fill the memory.
    pub config_maps: BTreeMap<FullName, Arc<ConfigMap>>,
    /// By namespace and name, shared.
    pub secrets: BTreeMap<FullName, Arc<Secret>>,
    /// All services; none before the first list of services was received.
    pub services: Option<Vec<Service>>,
    /// The text of files in volumes, by volume and path.
    pub files: BTreeMap<(String, String), String>,
    /// What in the runtime makes the sandboxes of a runtime class, by its name.
    pub runtime_classes: BTreeMap<String, String>,
    /// Tokens of the pod's service account, or why the API server gives out none.
    pub tokens: BTreeMap<TokenRequestKey, Result<String, String>>,
    /// Whether tokens come later: the pod was recalled without an API server, and tokens are not remembered.
    pub tokens_later: bool,
    /// The trust bundles that the pod may have in its volumes, or why the API server gives out none; none where there is no cluster.
    pub trust_bundles: Option<Result<TrustBundles, String>>,
    /// Certificates of the pod, or why it has none.
    pub pod_certificates: BTreeMap<CertificateSource, Result<PodCertificate, String>>,
    /// Claims of persistent volumes, by namespace and name.
    pub claims: BTreeMap<FullName, Arc<PersistentVolumeClaim>>,
    /// The persistent volumes that those claims name, by name.
    pub persistent_volumes: BTreeMap<String, Arc<PersistentVolume>>,
}

/// Everything has been read, and nothing is there.
impl Default for Lookup {
    fn default() -> Self {
        Self {
            config_maps: BTreeMap::new(),
            secrets: BTreeMap::new(),
            services: Some(Vec::new()),
            files: BTreeMap::new(),
            runtime_classes: BTreeMap::new(),
            tokens: BTreeMap::new(),
            tokens_later: false,
            trust_bundles: None,
            pod_certificates: BTreeMap::new(),
            claims: BTreeMap::new(),
            persistent_volumes: BTreeMap::new(),
        }
    }
}

/// Tells what there is, and nothing of what is in it.
impl fmt::Debug for Lookup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lookup")
            .field("config_maps", &self.config_maps.keys())
            .field("secrets", &self.secrets.keys())
            .field("services", &self.services.as_ref().map(Vec::len))
            .field("files", &self.files.keys())
            .field("runtime_classes", &self.runtime_classes.keys())
            .field("tokens", &self.tokens.keys())
            .field("pod_certificates", &self.pod_certificates.keys())
            .field("claims", &self.claims.keys())
            .field("persistent_volumes", &self.persistent_volumes.keys())
            .finish()
    }
}

impl Lookup {
    /// What an object holds; none when it is not there.
    pub(in crate::cri_spec) fn object(
        &self,
        kind: ObjectKind,
        namespace: &str,
        name: &str,
    ) -> Option<ObjectData<'_>> {
        let name = full_name(namespace, name);
        match kind {
            ObjectKind::ConfigMap => {
                self.config_maps.get(&name).map(|map| ObjectData::ConfigMap(map))
            }
            ObjectKind::Secret => self.secrets.get(&name).map(|secret| ObjectData::Secret(secret)),
        }
    }

    /// The bytes that an object holds; none when it is not there.
    pub(in crate::cri_spec) fn bytes_of(&self, kind: ObjectKind, name: &FullName) -> usize {
        let object = self.object(kind, &name.namespace, &name.name);
        let entries = object.map(ObjectData::for_files).unwrap_or_default();
        entries.into_iter().map(|(key, value)| key.len() + value.len()).sum()
    }

    /// The keys of an object; none when it is not there.
    pub fn keys(&self, kind: ObjectKind, namespace: &str, name: &str) -> Option<Vec<String>> {
        let entries = self.object(kind, namespace, name)?.for_files();
        Some(entries.into_keys().map(str::to_owned).collect())
    }

    /// What an object holds under a key; none when it is not there.
    pub fn value(
        &self,
        kind: ObjectKind,
        namespace: &str,
        name: &str,
        key: &str,
    ) -> Option<Vec<u8>> {
        self.object(kind, namespace, name)?.for_file(key).map(<[u8]>::to_vec)
    }

    /// What is not as it was, is new, or is gone.
    pub fn changed_since(&self, before: &Self) -> Vec<ObjectName> {
        let maps = changed(&before.config_maps, &self.config_maps);
        let secrets = changed(&before.secrets, &self.secrets);
        let maps = maps.into_iter().map(|name| ObjectName { kind: ObjectKind::ConfigMap, name });
        maps.chain(secrets.into_iter().map(|name| ObjectName { kind: ObjectKind::Secret, name }))
            .collect()
    }

    /// The namespaces that have an object of this name.
    pub fn namespaces_of(&self, kind: ObjectKind, name: &str) -> Vec<String> {
        let named = |found: &&FullName| found.name == name;
        let namespace = |found: &FullName| found.namespace.clone();
        match kind {
            ObjectKind::ConfigMap => self.config_maps.keys().filter(named).map(namespace).collect(),
            ObjectKind::Secret => self.secrets.keys().filter(named).map(namespace).collect(),
        }
    }
}

fn changed<T: PartialEq>(
    before: &BTreeMap<FullName, T>,
    now: &BTreeMap<FullName, T>,
) -> BTreeSet<FullName> {
    let names = before.keys().chain(now.keys());
    names.filter(|name| before.get(*name) != now.get(*name)).cloned().collect()
}

fn full_name(namespace: &str, name: &str) -> FullName {
    FullName { namespace: namespace.to_owned(), name: name.to_owned() }
}
