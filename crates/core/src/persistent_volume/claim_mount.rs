//! Where the volumes of claims are mounted whose sizes can be told.

use std::path::PathBuf;

use k8s_openapi::api::core::v1::Pod;

use super::claimed::{ClaimedVolumes, PersistentVolumePlugin};
use crate::cri_spec::PodPaths;
use crate::ids::FullName;
use crate::references::{ClaimReference, claims};

/// A volume of a claim, mounted for a pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClaimMount {
    /// Its name in the pod.
    pub volume: String,
    /// The claim that it is of.
    pub claim: FullName,
    /// Where it is mounted.
    pub path: PathBuf,
}

/// The mounts of a pod's claims. A path of the host is none: its file system is the host's, and the Go kubelet tells no size of it either.
pub fn claim_mounts(pod: &Pod, claimed: &ClaimedVolumes, paths: &PodPaths) -> Vec<ClaimMount> {
    let mount = |reference: ClaimReference| {
        let volume = claimed.get(&reference.volume)?;
        let path = match volume.plugin {
            PersistentVolumePlugin::HostPath => return None,
            PersistentVolumePlugin::Local | PersistentVolumePlugin::Nfs => volume.path(paths).path,
        };
        Some(ClaimMount { volume: reference.volume, claim: reference.claim, path })
    };
    claims(pod).into_iter().filter_map(mount).collect()
}
