//! What a pod refers to outside itself, wherever in it that is: ConfigMaps and Secrets, its runtime class, tokens of its account.

mod change;
mod claim;

use k8s_openapi::api::core::v1::{
    ConfigMapEnvSource, ConfigMapKeySelector, ConfigMapProjection, ConfigMapVolumeSource,
    Container, EnvFromSource, EnvVarSource, KeyToPath, LocalObjectReference, Pod, PodSpec,
    SecretEnvSource, SecretKeySelector, SecretProjection, SecretVolumeSource, Volume,
    VolumeProjection,
};

use crate::ids::FullName;
use crate::pod::PodExt;

pub use change::ObjectChange;
pub use claim::{ClaimReference, claims};

#[cfg(test)]
mod tests;

/// What may be referred to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ObjectKind {
    /// A ConfigMap.
    ConfigMap,
    /// A Secret.
    Secret,
}

impl ObjectKind {
    /// As the API spells it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::ConfigMap => "ConfigMap",
            Self::Secret => "Secret",
        }
    }
}

/// One thing that a pod refers to, in its own namespace.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Reference {
    /// ConfigMap or Secret.
    pub kind: ObjectKind,
    /// What it is called.
    pub name: String,
    /// Which of its keys is meant, where it is one.
    pub key: Option<String>,
    /// Whether the pod runs without it.
    pub optional: bool,
}

/// A ConfigMap or Secret.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ObjectName {
    /// Which of the two.
    pub kind: ObjectKind,
    /// Its namespace and name.
    pub name: FullName,
}

impl ObjectName {
    /// Whether a pod refers to it.
    pub fn is_used_by(&self, pod: &Pod) -> bool {
        let named =
            |reference: &Reference| reference.kind == self.kind && reference.name == self.name.name;
        pod.full_name().namespace == self.name.namespace && references(pod).iter().any(named)
    }
}

/// The runtime class that a pod names.
pub fn runtime_class(pod: &Pod) -> Option<&str> {
    pod.spec()?.runtime_class_name.as_deref().filter(|class| !class.is_empty())
}

/// Every ConfigMap and Secret that a pod refers to: first for itself, then for its containers, in the order of the spec.
pub fn references(pod: &Pod) -> Vec<Reference> {
    let Some(spec) = pod.spec() else { return Vec::new() };
    let containers = pod.all_containers();
    let of_containers = containers.iter().flat_map(|container| of_container(&container.spec));
    let mut found = of_pod(spec);
    found.extend(of_containers);
    found
}

fn whole(kind: ObjectKind, name: &str, optional: Option<bool>) -> Reference {
    Reference { kind, name: name.to_owned(), key: None, optional: optional == Some(true) }
}

/// The whole of it, or those of its keys that are listed.
fn listed(
    kind: ObjectKind,
    name: &str,
    items: Option<&Vec<KeyToPath>>,
    optional: Option<bool>,
) -> Vec<Reference> {
    let all = whole(kind, name, optional);
    let keys = items.into_iter().flatten();
    let keys = keys.map(|item| Reference { key: Some(item.key.clone()), ..all.clone() });
    std::iter::once(all.clone()).chain(keys).collect()
}

fn of_pod(spec: &PodSpec) -> Vec<Reference> {
    let login = |secret: &LocalObjectReference| whole(ObjectKind::Secret, &secret.name, None);
    let pulls = spec.image_pull_secrets.iter().flatten().map(login);
    pulls.chain(spec.volumes.iter().flatten().flat_map(of_volume)).collect()
}

fn of_volume(volume: &Volume) -> Vec<Reference> {
    let mut found = Vec::new();
    if let Some(ConfigMapVolumeSource { name, items, optional, .. }) = &volume.config_map {
        found.extend(listed(ObjectKind::ConfigMap, name, items.as_ref(), *optional));
    }
    if let Some(SecretVolumeSource { secret_name, items, optional, .. }) = &volume.secret {
        let name = secret_name.as_deref().unwrap_or_default();
        found.extend(listed(ObjectKind::Secret, name, items.as_ref(), *optional));
    }
    let projected = volume.projected.iter().flat_map(|p| p.sources.iter().flatten());
    found.extend(projected.flat_map(of_projection));
    found.extend(logins(volume).into_iter().map(|name| whole(ObjectKind::Secret, name, None)));
    found
}

fn of_projection(source: &VolumeProjection) -> Vec<Reference> {
    let mut found = Vec::new();
    if let Some(ConfigMapProjection { name, items, optional }) = &source.config_map {
        found.extend(listed(ObjectKind::ConfigMap, name, items.as_ref(), *optional));
    }
    if let Some(SecretProjection { name, items, optional }) = &source.secret {
        found.extend(listed(ObjectKind::Secret, name, items.as_ref(), *optional));
    }
    found
}

/// Secrets with which network storage is entered.
fn logins(volume: &Volume) -> Vec<&str> {
    let azure = volume.azure_file.as_ref().map(|azure| azure.secret_name.as_str());
    let named = [
        volume.cephfs.as_ref().and_then(|v| v.secret_ref.as_ref()),
        volume.cinder.as_ref().and_then(|v| v.secret_ref.as_ref()),
        volume.csi.as_ref().and_then(|v| v.node_publish_secret_ref.as_ref()),
        volume.flex_volume.as_ref().and_then(|v| v.secret_ref.as_ref()),
        volume.iscsi.as_ref().and_then(|v| v.secret_ref.as_ref()),
        volume.rbd.as_ref().and_then(|v| v.secret_ref.as_ref()),
        volume.scale_io.as_ref().map(|v| &v.secret_ref),
        volume.storageos.as_ref().and_then(|v| v.secret_ref.as_ref()),
    ];
    azure.into_iter().chain(named.into_iter().flatten().map(|login| login.name.as_str())).collect()
}

fn of_container(container: &Container) -> Vec<Reference> {
    let wholesale = container.env_from.iter().flatten().flat_map(of_env_from);
    let sources = container.env.iter().flatten().filter_map(|env| env.value_from.as_ref());
    wholesale.chain(sources.flat_map(of_env)).collect()
}

fn of_env_from(from: &EnvFromSource) -> Vec<Reference> {
    let map = from.config_map_ref.as_ref();
    let map = map
        .map(|ConfigMapEnvSource { name, optional }| whole(ObjectKind::ConfigMap, name, *optional));
    let secret = from.secret_ref.as_ref();
    let secret =
        secret.map(|SecretEnvSource { name, optional }| whole(ObjectKind::Secret, name, *optional));
    map.into_iter().chain(secret).collect()
}

fn of_env(from: &EnvVarSource) -> Vec<Reference> {
    let keyed = |kind, name, key: &str, optional| Reference {
        key: Some(key.to_owned()),
        ..whole(kind, name, optional)
    };
    let map = from.config_map_key_ref.as_ref();
    let map = map.map(|ConfigMapKeySelector { name, key, optional }| {
        keyed(ObjectKind::ConfigMap, name, key, *optional)
    });
    let secret = from.secret_key_ref.as_ref();
    let secret = secret.map(|SecretKeySelector { name, key, optional }| {
        keyed(ObjectKind::Secret, name, key, *optional)
    });
    map.into_iter().chain(secret).collect()
}
