//! The checkpoint of one pod.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use k8s_openapi::api::core::v1::{PersistentVolume, PersistentVolumeClaim, Pod, PodStatus};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use oarsman_core::cri_spec::Lookup;
use oarsman_core::ids::FullName;
use oarsman_core::pod::PodExt;
use oarsman_core::references::{ObjectKind, ObjectName};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A pod and what it refers to.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct PodCheckpoint {
    /// Usually shared with the other users of the pod: a copy for every pod would cost much memory.
    #[serde(serialize_with = "serialize_pod", deserialize_with = "deserialize_pod")]
    pub(super) pod: Arc<Pod>,
    /// The version of the API server's copy that was taken in last.
    #[serde(skip)]
    pub(super) version: Option<String>,
    /// What it refers to; none until that has been looked up.
    #[serde(default)]
    pub(super) found: Option<FoundObjects>,
}

/// What a pod refers to. The objects themselves are kept apart, since pods share them and they do not change with a pod's status;
/// services likewise. Tokens are not kept: a reader of them could act as the pod elsewhere, and the API server gives out new ones.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct FoundObjects {
    /// Names in the pod's namespace.
    pub(super) config_maps: BTreeSet<String>,
    pub(super) secrets: BTreeSet<String>,
    pub(super) runtime_classes: BTreeMap<String, String>,
    /// Claims in the pod's namespace, by name, and the volumes that they are bound to.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(super) claims: BTreeMap<String, PersistentVolumeClaim>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(super) persistent_volumes: BTreeMap<String, PersistentVolume>,
}

impl PodCheckpoint {
    /// Stores the API server's copy of the pod. A terminal status that we published is kept if the copy is older than that. Tells
    /// whether anything changed.
    pub(super) fn update_pod(&mut self, pod: &Arc<Pod>) -> bool {
        let mut pod = Arc::clone(pod);
        if self.pod.has_terminal_phase() && !pod.has_terminal_phase() {
            Arc::make_mut(&mut pod).status.clone_from(&self.pod.status);
        }
        let before = std::mem::replace(&mut self.pod, pod);
        let after = &self.pod;
        before.status != after.status
            || before.spec != after.spec
            || metadata(&before) != metadata(after)
    }

    /// Stores a published status. Tells whether it changed.
    pub(super) fn update_status(&mut self, status: &PodStatus) -> bool {
        let new = self.pod.status.as_ref() != Some(status);
        if new {
            Arc::make_mut(&mut self.pod).status = Some(status.clone());
        }
        new
    }
}

/// Writes a pod without `managedFields` and `resourceVersion`, which change often and are not needed to run it.
fn serialize_pod<S: Serializer>(pod: &Arc<Pod>, serializer: S) -> Result<S::Ok, S::Error> {
    let Pod { spec, status, .. } = pod.as_ref();
    Pod { metadata: metadata(pod), spec: spec.clone(), status: status.clone() }
        .serialize(serializer)
}

fn deserialize_pod<'a, D: Deserializer<'a>>(deserializer: D) -> Result<Arc<Pod>, D::Error> {
    Pod::deserialize(deserializer).map(Arc::new)
}

fn metadata(pod: &Pod) -> ObjectMeta {
    ObjectMeta { managed_fields: None, resource_version: None, ..pod.metadata.clone() }
}

impl FoundObjects {
    pub(super) fn of(namespace: &str, lookup: &Lookup) -> Self {
        Self {
            config_maps: names_in(namespace, lookup.config_maps.keys()),
            secrets: names_in(namespace, lookup.secrets.keys()),
            runtime_classes: lookup.runtime_classes.clone(),
            claims: copied(lookup.claims.iter().map(|(name, claim)| (&name.name, claim))),
            persistent_volumes: copied(&lookup.persistent_volumes),
        }
    }

    /// The claims by their full names.
    pub(super) fn full_claims(
        &self,
        namespace: &str,
    ) -> BTreeMap<FullName, Arc<PersistentVolumeClaim>> {
        let full = |name: &String| FullName { name: name.clone(), namespace: namespace.to_owned() };
        self.claims.iter().map(|(name, claim)| (full(name), Arc::new(claim.clone()))).collect()
    }

    /// The volumes that the claims are bound to.
    pub(super) fn shared_volumes(&self) -> BTreeMap<String, Arc<PersistentVolume>> {
        let volumes = self.persistent_volumes.iter();
        volumes.map(|(name, volume)| (name.clone(), Arc::new(volume.clone()))).collect()
    }

    /// Their full names.
    pub(super) fn names(&self, namespace: &str) -> impl Iterator<Item = ObjectName> {
        let maps = self.config_maps.iter().map(|name| (ObjectKind::ConfigMap, name));
        let secrets = self.secrets.iter().map(|name| (ObjectKind::Secret, name));
        maps.chain(secrets).map(move |(kind, name)| {
            let name = FullName { name: name.clone(), namespace: namespace.to_owned() };
            ObjectName { kind, name }
        })
    }
}

fn copied<'a, T: Clone + 'a>(
    objects: impl IntoIterator<Item = (&'a String, &'a Arc<T>)>,
) -> BTreeMap<String, T> {
    objects.into_iter().map(|(name, object)| (name.clone(), T::clone(object))).collect()
}

fn names_in<'a>(namespace: &str, names: impl Iterator<Item = &'a FullName>) -> BTreeSet<String> {
    names.filter(|name| name.namespace == namespace).map(|name| name.name.clone()).collect()
}
