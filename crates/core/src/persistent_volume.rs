//! Persistent volumes: what the claims of a pod are bound to, and whether the pod may use that on this node.

mod claim_mount;
mod claimed;
mod exclusive;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use k8s_openapi::api::core::v1::{PersistentVolume, PersistentVolumeClaim, Pod};

pub use claim_mount::{ClaimMount, claim_mounts};
pub use claimed::{ClaimedVolume, ClaimedVolumes, PersistentVolumePlugin};
pub use exclusive::{ExclusiveVolumes, VolumeInUse};

use crate::admission::AdmissionNode;
use crate::cri_spec::{ClaimError, Lookup, VolumeFault};
use crate::ids::FullName;
use crate::pod::PodExt;
use crate::references::{ClaimReference, claims};

/// The phase of a claim that has its volume.
const BOUND: &str = "Bound";
/// The volumeMode of devices; any other is that of directories.
const BLOCK: &str = "Block";

/// What else decides whether a pod may use a volume.
#[derive(Clone, Copy, Debug)]
pub struct ClaimContext<'a> {
    /// The node, if its labels are known.
    pub node: Option<&'a AdmissionNode>,
    /// Whether something of the pod runs: what it has it keeps.
    pub pod_runs: bool,
}

/// The persistent volumes that a pod uses through claims, and the volumes that it cannot have.
pub fn claimed_volumes(
    pod: &Pod,
    lookup: &Lookup,
    context: ClaimContext<'_>,
) -> (ClaimedVolumes, Vec<VolumeFault>) {
    let (mut volumes, mut faults) = (ClaimedVolumes::new(), Vec::new());
    for reference in claims(pod) {
        match claimed_volume(pod, &reference, lookup, context) {
            Ok(volume) => drop(volumes.insert(reference.volume, Arc::new(volume))),
            Err(why) => {
                faults.push(VolumeFault { volume: reference.volume, why: why.into() });
            }
        }
    }
    (volumes, faults)
}

/// Whether a claim and its volume are bound to each other for good: then neither has to be read again for the same pod.
pub fn is_settled(claim: &PersistentVolumeClaim, volume: &PersistentVolume) -> bool {
    let is_deleting = claim.metadata.deletion_timestamp.is_some();
    !is_deleting && bound_name(claim).is_some() && is_bound_to(volume, claim)
}

/// The volume that a claim is bound to.
pub fn bound_name(claim: &PersistentVolumeClaim) -> Option<&str> {
    let phase = claim.status.as_ref().and_then(|status| status.phase.as_deref());
    let volume = claim.spec.as_ref().and_then(|spec| spec.volume_name.as_deref());
    volume.filter(|name| !name.is_empty() && phase == Some(BOUND))
}

fn claimed_volume(
    pod: &Pod,
    reference: &ClaimReference,
    lookup: &Lookup,
    context: ClaimContext<'_>,
) -> Result<ClaimedVolume, ClaimError> {
    let name = || text(&reference.claim);
    let claim = lookup.claims.get(&reference.claim);
    let claim = claim.ok_or_else(|| ClaimError::NotFound { claim: name() })?;
    if reference.is_ephemeral && !is_controlled_by(claim, pod) {
        return Err(ClaimError::NotOwned { claim: name(), pod: text(&pod.full_name()) });
    }
    if claim.metadata.deletion_timestamp.is_some() && !context.pod_runs {
        return Err(ClaimError::BeingDeleted { claim: name() });
    }
    let volume = bound_volume(name(), claim, lookup)?;
    check_mode(pod, reference, &volume)?;
    check_node(&volume, context.node)?;
    ClaimedVolume::new(volume, reference.read_only)
}

fn bound_volume(
    name: String,
    claim: &PersistentVolumeClaim,
    lookup: &Lookup,
) -> Result<Arc<PersistentVolume>, ClaimError> {
    let Some(bound) = bound_name(claim) else {
        return Err(ClaimError::NotBound { claim: name });
    };
    let Some(volume) = lookup.persistent_volumes.get(bound) else {
        return Err(ClaimError::NoVolume { claim: name, volume: bound.to_owned() });
    };
    if !is_bound_to(volume, claim) {
        return Err(ClaimError::BoundToAnother {
            claim: name,
            volume: bound.to_owned(),
            bound: claim_uid(volume).unwrap_or_default().to_owned(),
            uid: claim.metadata.uid.clone().unwrap_or_default(),
        });
    }
    Ok(Arc::clone(volume))
}

/// A claim that was deleted and made again under its name has another UID, and the data are not its own.
fn is_bound_to(volume: &PersistentVolume, claim: &PersistentVolumeClaim) -> bool {
    claim_uid(volume).is_some_and(|uid| Some(uid) == claim.metadata.uid.as_deref())
}

fn claim_uid(volume: &PersistentVolume) -> Option<&str> {
    volume.spec.as_ref()?.claim_ref.as_ref()?.uid.as_deref()
}

fn is_controlled_by(claim: &PersistentVolumeClaim, pod: &Pod) -> bool {
    let owners = claim.metadata.owner_references.iter().flatten();
    let uid = pod.uid();
    owners.into_iter().any(|owner| owner.controller == Some(true) && owner.uid == uid.as_str())
}

fn check_mode(
    pod: &Pod,
    reference: &ClaimReference,
    volume: &PersistentVolume,
) -> Result<(), ClaimError> {
    let mode = volume.spec.as_ref().and_then(|spec| spec.volume_mode.as_deref());
    let is_device = uses_device(pod, &reference.volume);
    let claim = || text(&reference.claim);
    match (mode == Some(BLOCK), is_device) {
        (false, false) => Ok(()),
        (true, false) => {
            Err(ClaimError::WrongMode { claim: claim(), mode: BLOCK, field: "volumeMounts" })
        }
        (false, true) => Err(ClaimError::WrongMode {
            claim: claim(),
            mode: "Filesystem",
            field: "volumeDevices",
        }),
        (true, true) => Err(ClaimError::BlockVolume { volume: claimed::name(volume) }),
    }
}

fn uses_device(pod: &Pod, volume: &str) -> bool {
    let containers = pod.all_containers();
    let mut devices =
        containers.iter().flat_map(|wanted| wanted.spec.volume_devices.iter().flatten());
    devices.any(|device| device.name == volume)
}

/// Pods of checkpoints start while the labels of the node are not known; they were checked before.
fn check_node(volume: &PersistentVolume, node: Option<&AdmissionNode>) -> Result<(), ClaimError> {
    let affinity = volume.spec.as_ref().and_then(|spec| spec.node_affinity.as_ref());
    let required = affinity.and_then(|affinity| affinity.required.as_ref());
    match node.zip(required) {
        Some((node, required)) if !node.is_selected_by(required) => {
            let (volume, node) = (claimed::name(volume), node.name.clone());
            Err(ClaimError::NodeAffinity { volume, node })
        }
        Some(_) | None => Ok(()),
    }
}

/// As the Go kubelet writes names of claims.
fn text(name: &FullName) -> String {
    format!("{}/{}", name.namespace, name.name)
}
