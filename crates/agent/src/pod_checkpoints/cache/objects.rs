//! Checkpoints of the ConfigMaps and Secrets that pods refer to: one for each, however many pods share it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use oarsman_core::cri_spec::Lookup;
use oarsman_core::ids::FullName;
use oarsman_core::references::{ObjectKind, ObjectName};
use serde::{Deserialize, Serialize};

use super::serialized;

/// What the names of their checkpoints begin with; a number follows. It is no valid UID.
const PREFIX: &str = "object-";

/// The objects, by name and by the number of their checkpoint.
#[derive(Debug, Default)]
pub(super) struct ObjectCheckpoints {
    by_name: BTreeMap<ObjectName, (u64, CheckpointedObject)>,
    names: BTreeMap<u64, ObjectName>,
}

/// An object, shared with the other users of it.
#[derive(Clone)]
enum CheckpointedObject {
    ConfigMap(Arc<ConfigMap>),
    Secret(Arc<Secret>),
}

/// An object as it is written.
#[derive(Serialize)]
enum WrittenObject<'a> {
    ConfigMap(&'a ConfigMap),
    Secret(&'a Secret),
}

/// An object as it is read.
#[derive(Deserialize)]
enum ReadObject {
    ConfigMap(ConfigMap),
    Secret(Secret),
}

/// Shows no content: Secrets must not reach a log.
impl std::fmt::Debug for CheckpointedObject {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::ConfigMap(_) => "ConfigMap",
            Self::Secret(_) => "Secret",
        })
    }
}

impl CheckpointedObject {
    /// The same one is not compared by its content.
    fn is(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::ConfigMap(a), Self::ConfigMap(b)) => Arc::ptr_eq(a, b) || a == b,
            (Self::Secret(a), Self::Secret(b)) => Arc::ptr_eq(a, b) || a == b,
            (Self::ConfigMap(_), Self::Secret(_)) | (Self::Secret(_), Self::ConfigMap(_)) => false,
        }
    }
}

/// Whether a checkpoint is that of an object.
pub(super) fn is_object(checkpoint: &str) -> bool {
    number(checkpoint).is_some()
}

fn number(checkpoint: &str) -> Option<u64> {
    checkpoint.strip_prefix(PREFIX)?.parse().ok()
}

impl ObjectCheckpoints {
    /// Stores what a pod found of these; the names of the checkpoints that changed.
    pub(super) fn set(
        &mut self,
        names: impl Iterator<Item = ObjectName>,
        lookup: &Lookup,
    ) -> Vec<String> {
        let stored = names.filter_map(|name| {
            let object = match name.kind {
                ObjectKind::ConfigMap => {
                    CheckpointedObject::ConfigMap(Arc::clone(lookup.config_maps.get(&name.name)?))
                }
                ObjectKind::Secret => {
                    CheckpointedObject::Secret(Arc::clone(lookup.secrets.get(&name.name)?))
                }
            };
            self.store(name, object)
        });
        stored.collect()
    }

    fn store(&mut self, name: ObjectName, object: CheckpointedObject) -> Option<String> {
        let known = self.by_name.get_mut(&name);
        let number = match known {
            Some((_, known)) if known.is(&object) => {
                // From here on it is shared with the lookups that found it.
                *known = object;
                return None;
            }
            Some((number, _)) => *number,
            None => self.names.last_key_value().map_or(0, |(last, _)| last + 1),
        };
        self.names.insert(number, name.clone());
        self.by_name.insert(name, (number, object));
        Some(format!("{PREFIX}{number}"))
    }

    /// Forgets those that are not used any more; the names of their checkpoints.
    pub(super) fn retain(&mut self, used: &BTreeSet<ObjectName>) -> Vec<String> {
        self.by_name.retain(|name, _| used.contains(name));
        let unused = |number: &u64, name: &mut ObjectName| {
            (!used.contains(name)).then(|| format!("{PREFIX}{number}"))
        };
        let (mut gone, mut names) = (Vec::new(), std::mem::take(&mut self.names));
        names.retain(|number, name| {
            let unused = unused(number, name);
            let is_used = unused.is_none();
            gone.extend(unused);
            is_used
        });
        self.names = names;
        gone
    }

    /// Loads a checkpoint, unless newer data is known; false when it cannot be decoded or is not needed.
    pub(super) fn load(&mut self, checkpoint: &str, bytes: &[u8]) -> bool {
        let (Some(number), Ok(read)) = (number(checkpoint), serde_json::from_slice(bytes)) else {
            return false;
        };
        let (kind, name, object) = match read {
            ReadObject::ConfigMap(map) => {
                let name = full_name(&map.metadata);
                (ObjectKind::ConfigMap, name, CheckpointedObject::ConfigMap(Arc::new(map)))
            }
            ReadObject::Secret(secret) => {
                let name = full_name(&secret.metadata);
                (ObjectKind::Secret, name, CheckpointedObject::Secret(Arc::new(secret)))
            }
        };
        let name = ObjectName { kind, name };
        if self.by_name.contains_key(&name) || self.names.contains_key(&number) {
            return false;
        }
        self.names.insert(number, name.clone());
        self.by_name.insert(name, (number, object));
        true
    }

    /// The content of a checkpoint; none when there is none any more.
    pub(super) fn bytes(&self, checkpoint: &str) -> Option<Vec<u8>> {
        let (_, object) = self.by_name.get(self.names.get(&number(checkpoint)?)?)?;
        serialized(&match object {
            CheckpointedObject::ConfigMap(map) => WrittenObject::ConfigMap(map),
            CheckpointedObject::Secret(secret) => WrittenObject::Secret(secret),
        })
    }

    /// A lookup with these objects; none unless all of them are here.
    pub(super) fn lookup(&self, names: impl Iterator<Item = ObjectName>) -> Option<Lookup> {
        let mut lookup = Lookup::default();
        for name in names {
            match &self.by_name.get(&name)?.1 {
                CheckpointedObject::ConfigMap(map) => {
                    drop(lookup.config_maps.insert(name.name, Arc::clone(map)));
                }
                CheckpointedObject::Secret(secret) => {
                    drop(lookup.secrets.insert(name.name, Arc::clone(secret)));
                }
            }
        }
        Some(lookup)
    }
}

fn full_name(metadata: &ObjectMeta) -> FullName {
    FullName {
        name: metadata.name.clone().unwrap_or_default(),
        namespace: metadata.namespace.clone().unwrap_or_default(),
    }
}
