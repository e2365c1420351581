//! What a pod refers to outside itself, as far as the agent has it.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use k8s_openapi::api::core::v1::{ConfigMap, Secret, Service};

use crate::ids::FullName;
use crate::references::{ObjectKind, ObjectName};
use crate::token::TokenRequestKey;

/// Names and values.
pub(in crate::cri_spec) type Values = BTreeMap<String, Vec<u8>>;

/// Config maps, secrets, services, files, runtime classes and tokens that pods refer to.
#[derive(Clone, PartialEq)]
pub struct Lookup {
    /// By namespace and name.
    pub config_maps: BTreeMap<FullName, ConfigMap>,
    /// By namespace and name.
    pub secrets: BTreeMap<FullName, Secret>,
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
            .finish()
    }
}

impl Lookup {
    pub(super) fn config_map(&self, namespace: &str, name: &str) -> Option<Values> {
        let map = self.config_maps.get(&full_name(namespace, name))?;
        let values = map.data.iter().flatten();
        Some(values.map(|(key, value)| (key.clone(), value.clone().into_bytes())).collect())
    }

    pub(super) fn secret(&self, namespace: &str, name: &str) -> Option<Values> {
        let secret = self.secrets.get(&full_name(namespace, name))?;
        let plain = secret.string_data.iter().flatten();
        let plain = plain.map(|(key, value)| (key.clone(), value.clone().into_bytes()));
        let values =
            secret.data.iter().flatten().map(|(key, value)| (key.clone(), value.0.clone()));
        // The API server converts `stringData` into `data`; a Secret from a manifest may still have `stringData`.
        Some(values.chain(plain).collect())
    }
}

impl Lookup {
    /// The keys of an object; none when it is not there.
    pub fn keys(&self, kind: ObjectKind, namespace: &str, name: &str) -> Option<Vec<String>> {
        self.bytes(kind, namespace, name).map(|values| values.into_keys().collect())
    }

    /// All that an object holds, binary data too; none when it is not there.
    pub(in crate::cri_spec) fn bytes(
        &self,
        kind: ObjectKind,
        namespace: &str,
        name: &str,
    ) -> Option<Values> {
        match kind {
            ObjectKind::Secret => self.secret(namespace, name),
            ObjectKind::ConfigMap => {
                let binary = &self.config_maps.get(&full_name(namespace, name))?.binary_data;
                let binary = binary.iter().flatten();
                let binary = binary.map(|(key, bytes)| (key.clone(), bytes.0.clone()));
                Some(self.config_map(namespace, name)?.into_iter().chain(binary).collect())
            }
        }
    }

    /// What an object holds under a key; none when it is not there.
    pub fn value(
        &self,
        kind: ObjectKind,
        namespace: &str,
        name: &str,
        key: &str,
    ) -> Option<Vec<u8>> {
        self.bytes(kind, namespace, name)?.remove(key)
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
