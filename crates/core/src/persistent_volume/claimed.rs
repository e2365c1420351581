//! A persistent volume that a pod uses through a claim.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use k8s_openapi::api::core::v1::{PersistentVolume, PersistentVolumeSpec};

use crate::cri_spec::{ClaimError, PodPaths, VolumePath};

/// The group that the files of a volume belong to.
const GROUP_ANNOTATION: &str = "pv.beta.kubernetes.io/gid";
/// The access mode of a volume that one pod uses at a time.
const ONE_POD: &str = "ReadWriteOncePod";
/// Fields of a spec beside the one that says what the volume is.
const OTHER_FIELDS: [&str; 9] = [
    "accessModes",
    "capacity",
    "claimRef",
    "mountOptions",
    "nodeAffinity",
    "persistentVolumeReclaimPolicy",
    "storageClassName",
    "volumeAttributesClassName",
    "volumeMode",
];

/// The persistent volumes of a pod, by the names that the pod has for them.
pub type ClaimedVolumes = BTreeMap<String, Arc<ClaimedVolume>>;

/// A persistent volume that a pod uses through a claim.
#[derive(Clone, Debug, PartialEq)]
pub struct ClaimedVolume {
    /// The volume as the API server has it.
    pub volume: Arc<PersistentVolume>,
    /// What mounts it.
    pub plugin: PersistentVolumePlugin,
    /// Whether the pod only reads it.
    pub read_only: bool,
}

/// The plugins that mount persistent volumes here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PersistentVolumePlugin {
    /// A path of the node as it is.
    HostPath,
    /// A directory of the node.
    Local,
    /// A directory of a server.
    Nfs,
}

impl PersistentVolumePlugin {
    /// As Kubernetes calls it; directories on disk carry the name.
    pub fn name(self) -> &'static str {
        match self {
            Self::HostPath => "kubernetes.io/host-path",
            Self::Local => "kubernetes.io/local-volume",
            Self::Nfs => "kubernetes.io/nfs",
        }
    }

    fn of(spec: &PersistentVolumeSpec) -> Option<Self> {
        let kinds = [
            (spec.host_path.is_some(), Self::HostPath),
            (spec.local.is_some(), Self::Local),
            (spec.nfs.is_some(), Self::Nfs),
        ];
        kinds.into_iter().find(|(is, _)| *is).map(|(_, plugin)| plugin)
    }
}

impl ClaimedVolume {
    /// Fails for a volume of a type that no plugin mounts.
    pub(super) fn new(volume: Arc<PersistentVolume>, read_only: bool) -> Result<Self, ClaimError> {
        let plugin = volume.spec.as_ref().and_then(PersistentVolumePlugin::of);
        match plugin {
            Some(plugin) => Ok(Self { volume, plugin, read_only }),
            None => Err(ClaimError::NoPlugin { kind: kind(&volume), volume: name(&volume) }),
        }
    }

    /// The name of the persistent volume; directories on disk carry it.
    pub fn name(&self) -> String {
        name(&self.volume)
    }

    /// Where it is found by the pod's containers.
    pub fn path(&self, paths: &PodPaths) -> VolumePath {
        let (plugin, read_only) = (self.plugin, self.read_only);
        let host_path = self.volume.spec.as_ref().and_then(|spec| spec.host_path.as_ref());
        let path = match host_path {
            Some(source) => PathBuf::from(&source.path),
            None => paths.volume(plugin.name(), &self.name()),
        };
        // Only what is ours alone gets the pod's label.
        VolumePath { path, read_only, relabel: plugin == PersistentVolumePlugin::Local }
    }

    /// The group that its files belong to: all containers of the pod get it.
    pub fn group(&self) -> Option<i64> {
        let annotations = self.volume.metadata.annotations.as_ref()?;
        let group: i64 = annotations.get(GROUP_ANNOTATION)?.parse().ok()?;
        u32::try_from(group).is_ok().then_some(group)
    }

    /// Whether one pod uses it at a time.
    pub fn is_exclusive(&self) -> bool {
        let modes = self.volume.spec.as_ref().and_then(|spec| spec.access_modes.as_deref());
        modes.is_some_and(|modes| modes.iter().any(|mode| mode == ONE_POD))
    }
}

pub(super) fn name(volume: &PersistentVolume) -> String {
    volume.metadata.name.clone().unwrap_or_default()
}

/// What the field of the spec is called that says what the volume is.
fn kind(volume: &PersistentVolume) -> String {
    let fields = serde_json::to_value(&volume.spec).unwrap_or_default();
    let mut names = fields.as_object().into_iter().flat_map(|fields| fields.keys());
    let named = names.find(|name| !OTHER_FIELDS.contains(&name.as_str()));
    named.cloned().unwrap_or_else(|| "unknown".to_owned())
}
