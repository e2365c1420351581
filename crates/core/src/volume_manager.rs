//! Which volumes of a pod to set up, to refresh and to tear down: the desired state of world against the actual one.

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use k8s_openapi::api::core::v1::{Pod, Volume};

use crate::cri_spec::{Payload, Payloads, volume_plugin};
use crate::persistent_volume::{ClaimedVolume, ClaimedVolumes};
use crate::pod::PodExt;

/// The name of a volume's directory, and its plugin: a persistent volume may have the name of another volume of the pod, in the directory
/// of another plugin, and two volumes of a pod may be the same persistent volume.
type VolumeKey = (String, String);

/// The volumes that one pod should have: those that a container mounts.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DesiredStateOfWorld(BTreeMap<VolumeKey, VolumeToMount>);

/// The volumes that one pod has.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ActualStateOfWorld(BTreeMap<VolumeKey, MountedVolume>);

/// A volume that a pod should have.
#[derive(Clone, Debug, PartialEq)]
pub struct VolumeToMount {
    /// Its name in the pod.
    pub name: String,
    /// The plugin that it is of, such as `kubernetes.io/empty-dir`.
    pub plugin: String,
    /// The files of a volume that is made of objects and fields; none while they are unknown: then it stays as it is.
    pub payload: Option<Arc<Payload>>,
    /// What its claim is bound to, if it is made by one.
    pub claimed: Option<Arc<ClaimedVolume>>,
}

/// A volume that a pod has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MountedVolume {
    /// The name of its directory: its name in the pod, or that of the persistent volume.
    pub name: String,
    /// The plugin that it is of.
    pub plugin: String,
    /// What its files were when it was set up last; none when that is unknown, as after a restart of the agent. Only the hash is
    /// kept: files may be large, and secret.
    payload: Option<u64>,
}

/// What to do to the volumes of a pod.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Reconciliation {
    /// Volumes that the pod should have and that are not set up.
    pub set_up: Vec<VolumeToMount>,
    /// There, with other files than they should have.
    pub refresh: Vec<VolumeToMount>,
    /// There, and not wanted.
    pub tear_down: Vec<MountedVolume>,
}

impl DesiredStateOfWorld {
    /// The volumes that a container of the pod mounts, with these files, and with what its claims are bound to.
    pub fn of(pod: &Pod, payloads: Payloads, claimed: &ClaimedVolumes) -> Self {
        let mut payloads = payloads;
        let mounted = pod.mounted_volumes();
        let volumes = pod.spec().and_then(|spec| spec.volumes.as_deref()).unwrap_or_default();
        let wanted = |volume: &Volume| {
            let (name, claimed) = (volume.name.clone(), claimed.get(&volume.name).cloned());
            let of_claim = claimed.as_ref().map(|claimed| claimed.plugin.name().to_owned());
            let plugin = of_claim.unwrap_or_else(|| volume_plugin(volume));
            let payload = payloads.remove(&name).map(Arc::new);
            let wanted = VolumeToMount { name, plugin, payload, claimed };
            (wanted.key(), wanted)
        };
        // An image is mounted by the runtime.
        let is_ours = |volume: &&Volume| mounted.contains(&volume.name) && volume.image.is_none();
        Self(volumes.iter().filter(is_ours).map(wanted).collect())
    }

    /// The plugin of each volume.
    pub fn plugins(&self) -> impl Iterator<Item = &str> {
        self.0.values().map(|volume| volume.plugin.as_str())
    }
}

impl VolumeToMount {
    /// The name of its directory: that of the persistent volume, if it is one.
    pub fn directory_name(&self) -> String {
        self.claimed.as_ref().map_or_else(|| self.name.clone(), |claimed| claimed.name())
    }

    fn key(&self) -> VolumeKey {
        (self.directory_name(), self.plugin.clone())
    }
}

impl ActualStateOfWorld {
    /// Volumes that were found on disk after a restart; when they were set up is unknown.
    pub fn found(volumes: impl IntoIterator<Item = MountedVolume>) -> Self {
        let key = |volume: &MountedVolume| (volume.name.clone(), volume.plugin.clone());
        Self(volumes.into_iter().map(|volume| (key(&volume), volume)).collect())
    }

    /// The plugin of each volume.
    pub fn plugins(&self) -> impl Iterator<Item = &str> {
        self.0.values().map(|volume| volume.plugin.as_str())
    }

    /// These volumes have been set up.
    pub fn mark_as_mounted(&mut self, volumes: impl IntoIterator<Item = VolumeToMount>) {
        for volume in volumes {
            let (key, payload) = (volume.key(), volume.payload.as_deref().map(hash));
            let before = self.0.remove(&key).and_then(|volume| volume.payload);
            let (name, plugin) = key.clone();
            let mounted = MountedVolume { name, plugin, payload: payload.or(before) };
            self.0.insert(key, mounted);
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
    let is_there = |volume: &&VolumeToMount| actual.0.contains_key(&volume.key());
    let (there, missing): (Vec<_>, Vec<_>) = desired.0.values().partition(is_there);
    let has_other_files = |volume: &&VolumeToMount| {
        let is = actual.0.get(&volume.key()).and_then(|mounted| mounted.payload);
        volume.payload.as_deref().is_some_and(|wanted| is != Some(hash(wanted)))
    };
    let unwanted = actual.0.iter().filter(|(key, _)| !desired.0.contains_key(*key));
    Reconciliation {
        set_up: missing.into_iter().cloned().collect(),
        refresh: there.into_iter().filter(has_other_files).cloned().collect(),
        tear_down: unwanted.map(|(_, volume)| volume.clone()).collect(),
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
