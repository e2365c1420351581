//! The checkpoint of one pod.

use std::collections::BTreeMap;
use std::sync::Arc;

use k8s_openapi::api::core::v1::{ConfigMap, Pod, PodStatus, Secret, Service};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use oarsman_core::cri_spec::Lookup;
use oarsman_core::ids::FullName;
use oarsman_core::pod::PodExt;
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
    /// None until it has been looked up.
    pub(super) objects: Option<CheckpointedObjects>,
}

/// What a pod refers to. Services are kept apart: they are the same for all. Tokens are not kept: a reader of them could act as the
/// pod elsewhere, and the API server gives out new ones.
#[derive(Clone, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct CheckpointedObjects {
    config_maps: Vec<ConfigMap>,
    secrets: Vec<Secret>,
    runtime_classes: BTreeMap<String, String>,
}

/// Shows no content: Secrets must not reach a log.
impl std::fmt::Debug for CheckpointedObjects {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} config maps, {} secrets", self.config_maps.len(), self.secrets.len())
    }
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

impl CheckpointedObjects {
    pub(super) fn of(pod: &Pod, lookup: &Lookup) -> Self {
        let Lookup { config_maps, secrets, runtime_classes, .. } = lookup;
        let is_its = |name: &FullName| name.namespace == pod.full_name().namespace;
        let config_maps = config_maps.iter().filter(|(name, _)| is_its(name));
        let secrets = secrets.iter().filter(|(name, _)| is_its(name));
        Self {
            config_maps: config_maps.map(|(_, map)| map.clone()).collect(),
            secrets: secrets.map(|(_, secret)| secret.clone()).collect(),
            runtime_classes: runtime_classes.clone(),
        }
    }

    pub(super) fn lookup(&self, services: Option<Vec<Service>>) -> Lookup {
        let config_maps =
            self.config_maps.iter().map(|map| (object_name(&map.metadata), map.clone()));
        let secrets = self.secrets.iter().map(|it| (object_name(&it.metadata), it.clone()));
        Lookup {
            config_maps: config_maps.collect(),
            secrets: secrets.collect(),
            services: services.or_else(|| Some(Vec::new())),
            files: BTreeMap::new(),
            runtime_classes: self.runtime_classes.clone(),
            tokens: BTreeMap::new(),
            tokens_later: true,
        }
    }
}

fn object_name(metadata: &ObjectMeta) -> FullName {
    FullName {
        name: metadata.name.clone().unwrap_or_default(),
        namespace: metadata.namespace.clone().unwrap_or_default(),
    }
}
