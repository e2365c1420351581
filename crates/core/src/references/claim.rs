//! The claims of persistent volumes that a pod refers to.

use k8s_openapi::api::core::v1::{Pod, Volume};

use crate::ids::FullName;
use crate::pod::PodExt;

/// A volume of a pod that is made by a claim.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClaimReference {
    /// The name of the volume in the pod.
    pub volume: String,
    /// The claim, in the pod's namespace.
    pub claim: FullName,
    /// Whether the pod only reads it.
    pub read_only: bool,
    /// Whether it is made for this pod alone: the pod owns the claim, then.
    pub is_ephemeral: bool,
}

/// The volumes of a pod that are made by claims, as far as a container uses them.
pub fn claims(pod: &Pod) -> Vec<ClaimReference> {
    let volumes = pod.spec().and_then(|spec| spec.volumes.as_deref()).unwrap_or_default();
    if !volumes.iter().any(is_claim) {
        return Vec::new();
    }
    let used = pod.mounted_volumes();
    let used = volumes.iter().filter(|volume| used.contains(&volume.name));
    used.filter_map(|volume| of_volume(pod, volume)).collect()
}

fn is_claim(volume: &Volume) -> bool {
    volume.persistent_volume_claim.is_some() || volume.ephemeral.is_some()
}

fn of_volume(pod: &Pod, volume: &Volume) -> Option<ClaimReference> {
    let FullName { name: pod, namespace } = pod.full_name();
    let (name, read_only, is_ephemeral) = match &volume.persistent_volume_claim {
        Some(source) => (source.claim_name.clone(), source.read_only == Some(true), false),
        None => (format!("{pod}-{}", volume.name), false, volume.ephemeral.is_some()),
    };
    let claim = FullName { name, namespace };
    is_claim(volume).then(|| ClaimReference {
        volume: volume.name.clone(),
        claim,
        read_only,
        is_ephemeral,
    })
}
