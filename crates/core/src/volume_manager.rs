//! Which volumes of a pod to set up, to refresh and to tear down: the desired state of world against the actual one.

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use k8s_openapi::api::core::v1::{Pod, Volume};

use crate::cri_spec::{Payload, Payloads, volume_plugin};
use crate::pod::PodExt;

/// The volumes that one pod should have, by name: those that a container mounts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DesiredStateOfWorld(BTreeMap<String, VolumeToMount>);

/// The volumes that one pod has, by name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ActualStateOfWorld(BTreeMap<String, MountedVolume>);

/// A volume that a pod should have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VolumeToMount {
    /// Its name in the pod.
    pub name: String,
    /// The plugin that it is of, such as `kubernetes.io/empty-dir`.
    pub plugin: String,
    /// The files of a volume that is made of objects and fields; none while they are unknown: then it stays as it is.
    pub payload: Option<Arc<Payload>>,
}

/// A volume that a pod has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MountedVolume {
    /// Its name in the pod.
    pub name: String,
    /// The plugin that it is of.
    pub plugin: String,
    /// What its files were when it was set up last; none when that is unknown, as after a restart of the agent. Only the hash is
    /// kept: files may be large, and secret.
    payload: Option<u64>,
}

/// What to do to the volumes of a pod.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reconciliation {
    /// Volumes that the pod should have and that are not set up.
    pub set_up: Vec<VolumeToMount>,
    /// There, with other files than they should have.
    pub refresh: Vec<VolumeToMount>,
    /// There, and not wanted.
    pub tear_down: Vec<MountedVolume>,
}

impl DesiredStateOfWorld {
    /// The volumes that a container of the pod mounts, with these files.
    pub fn of(pod: &Pod, payloads: Payloads) -> Self {
        let mut payloads = payloads;
        let mounted = pod.mounted_volumes();
        let volumes = pod.spec().and_then(|spec| spec.volumes.as_deref()).unwrap_or_default();
        let wanted = |volume: &Volume| {
            let (name, plugin) = (volume.name.clone(), volume_plugin(volume));
            let payload = payloads.remove(&name).map(Arc::new);
            (name.clone(), VolumeToMount { name, plugin, payload })
        };
        // An image is mounted by the runtime.
        let is_ours = |volume: &&Volume| mounted.contains(&volume.name) && volume.image.is_none();
        Self(volumes.iter().filter(is_ours).map(wanted).collect())
    }
}

impl ActualStateOfWorld {
    /// Volumes that were found on disk after a restart; when they were set up is unknown.
    pub fn found(volumes: impl IntoIterator<Item = MountedVolume>) -> Self {
        Self(volumes.into_iter().map(|volume| (volume.name.clone(), volume)).collect())
    }

    /// These volumes have been set up.
    pub fn mark_as_mounted(&mut self, volumes: impl IntoIterator<Item = VolumeToMount>) {
        for VolumeToMount { name, plugin, payload } in volumes {
            let before = self.0.remove(&name).and_then(|volume| volume.payload);
            let payload = payload.as_deref().map(hash).or(before);
            self.0.insert(name.clone(), MountedVolume { name, plugin, payload });
        }
    }
}

impl MountedVolume {
    /// A volume that was found on disk.
    pub fn found(name: String, plugin: String) -> Self {
        Self { name, plugin, payload: None }
    }
}

/// What makes the actual state the desired one.
pub fn reconcile(desired: &DesiredStateOfWorld, actual: &ActualStateOfWorld) -> Reconciliation {
    let is_there = |volume: &&VolumeToMount| actual.0.contains_key(&volume.name);
    let (there, missing): (Vec<_>, Vec<_>) = desired.0.values().partition(is_there);
    let has_other_files = |volume: &&VolumeToMount| {
        let is = actual.0.get(&volume.name).and_then(|mounted| mounted.payload);
        volume.payload.as_deref().is_some_and(|wanted| is != Some(hash(wanted)))
    };
    let unwanted = actual.0.values().filter(|volume| !desired.0.contains_key(&volume.name));
    Reconciliation {
        set_up: missing.into_iter().cloned().collect(),
        refresh: there.into_iter().filter(has_other_files).cloned().collect(),
        tear_down: unwanted.cloned().collect(),
    }
}

/// Parts volumes into what is worked on at the same time. Directories of our own and what is in memory do not hang, so that all of
/// them are one piece of work; every other volume is one for itself and holds up nothing but itself.
pub fn side_by_side<V>(volumes: Vec<V>, plugin: impl Fn(&V) -> &str) -> Vec<Vec<V>> {
    let (local, others): (Vec<V>, Vec<V>) =
        volumes.into_iter().partition(|volume| is_local(plugin(volume)));
    let local = Some(local).filter(|local| !local.is_empty());
    local.into_iter().chain(others.into_iter().map(|volume| vec![volume])).collect()
}

/// Whether volumes of a plugin lie where nothing hangs.
pub fn is_local(plugin: &str) -> bool {
    LOCAL.contains(&plugin)
}

/// The plugins whose volumes lie below the root directory or in memory.
const LOCAL: [&str; 5] = [
    "kubernetes.io/empty-dir",
    "kubernetes.io/configmap",
    "kubernetes.io/secret",
    "kubernetes.io/projected",
    "kubernetes.io/downward-api",
];

fn hash(payload: &Payload) -> u64 {
    let mut hasher = DefaultHasher::new();
    payload.hash(&mut hasher);
    hasher.finish()
}
