//! Volumes: their names, and that each has one source.

mod claims;
mod cloud;
mod local;
mod network;
mod projected;

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::core::v1::{Pod, PodSpec, Volume};

use super::names;
use crate::api::error::Errors;
use crate::api::path::Path;

/// Checks the volumes and returns those that are good, by name.
pub(super) fn check<'a>(
    at: &Path,
    pod: &Pod,
    spec: &'a PodSpec,
    errors: &mut Errors,
) -> BTreeMap<&'a str, &'a Volume> {
    let pod_name = pod.metadata.name.as_deref().unwrap_or_default();
    let volumes = spec.volumes.as_deref().unwrap_or_default();
    let made = made_claims(pod_name, volumes);
    let mut good = BTreeMap::new();
    for (i, volume) in volumes.iter().enumerate() {
        let at = at.index(i);
        let before = errors.count();
        check_source(&at, volume, pod_name, errors);
        check_name(&at.child("name"), &volume.name, &good, errors);
        if errors.count() == before {
            good.insert(volume.name.as_str(), volume);
        }
        claims::check_not_made(&at, volume, &made, errors);
    }
    good
}

/// Names of the claims that will be made for the pod.
fn made_claims(pod_name: &str, volumes: &[Volume]) -> BTreeSet<String> {
    if pod_name.is_empty() {
        return BTreeSet::new();
    }
    let made = volumes.iter().filter(|volume| volume.ephemeral.is_some());
    made.map(|volume| format!("{pod_name}-{}", volume.name)).collect()
}

fn check_name(at: &Path, name: &str, good: &BTreeMap<&str, &Volume>, errors: &mut Errors) {
    if name.is_empty() {
        errors.required(at, "");
    } else {
        errors.invalid_for(at, name, names::dns_label(name));
    }
    if good.contains_key(name) {
        errors.duplicate(at, name);
    }
}

type Check<'a> = Box<dyn Fn(&Path, &mut Errors) + 'a>;

/// A source a volume has, and its check.
struct Source<'a> {
    name: &'static str,
    check: Check<'a>,
}

/// A source where the volume has it. It goes by one name when it is one too many and by another
/// in errors of its own, since the API server misspells some; clients know them so.
fn source<'a, T>(
    field: &'a Option<T>,
    name: &'static str,
    inner_name: &'static str,
    check: fn(&Path, &T, &mut Errors),
) -> Option<Source<'a>> {
    let field = field.as_ref()?;
    let check = move |at: &Path, errors: &mut Errors| check(&at.child(inner_name), field, errors);
    Some(Source { name, check: Box::new(check) })
}

/// The sources a volume has, in the order in which the API server looks at them.
fn sources(volume: &Volume) -> Vec<Source<'_>> {
    let all = [
        source(&volume.empty_dir, "emptyDir", "emptyDir", local::check_empty_dir),
        source(&volume.host_path, "hostPath", "hostPath", local::check_host_path),
        source(&volume.git_repo, "gitRepo", "gitRepo", local::check_git_repo),
        source(
            &volume.gce_persistent_disk,
            "gcePersistentDisk",
            "persistentDisk",
            cloud::check_gce,
        ),
        source(
            &volume.aws_elastic_block_store,
            "awsElasticBlockStore",
            "awsElasticBlockStore",
            cloud::check_aws,
        ),
        source(&volume.secret, "secret", "secret", local::check_secret),
        source(&volume.nfs, "nfs", "nfs", network::check_nfs),
        source(&volume.iscsi, "iscsi", "iscsi", network::check_iscsi),
        source(&volume.glusterfs, "glusterfs", "glusterfs", network::check_glusterfs),
        source(&volume.flocker, "flocker", "flocker", network::check_flocker),
        source(
            &volume.persistent_volume_claim,
            "persistentVolumeClaim",
            "persistentVolumeClaim",
            claims::check_claim,
        ),
        source(&volume.rbd, "rbd", "rbd", network::check_rbd),
        source(&volume.cinder, "cinder", "cinder", cloud::check_cinder),
        source(&volume.cephfs, "cephFS", "cephfs", network::check_cephfs),
        source(&volume.quobyte, "quobyte", "quobyte", network::check_quobyte),
        source(&volume.downward_api, "downwarAPI", "downwardAPI", local::check_downward_api),
        source(&volume.fc, "fc", "fc", network::check_fc),
        source(&volume.flex_volume, "flexVolume", "flexVolume", cloud::check_flex),
        source(&volume.config_map, "configMap", "configMap", local::check_config_map),
        source(&volume.azure_file, "azureFile", "azureFile", cloud::check_azure_file),
        source(&volume.vsphere_volume, "vsphereVolume", "vsphereVolume", cloud::check_vsphere),
        source(
            &volume.photon_persistent_disk,
            "photonPersistentDisk",
            "photonPersistentDisk",
            cloud::check_photon,
        ),
        source(&volume.portworx_volume, "portworxVolume", "portworxVolume", cloud::check_portworx),
        source(&volume.azure_disk, "azureDisk", "azureDisk", cloud::check_azure_disk),
        source(&volume.storageos, "storageos", "storageos", cloud::check_storageos),
        source(&volume.projected, "projected", "projected", projected::check),
        source(&volume.scale_io, "scaleIO", "scaleIO", cloud::check_scale_io),
        source(&volume.csi, "csi", "csi", cloud::check_csi),
        source(&volume.ephemeral, "ephemeral", "ephemeral", claims::check_ephemeral),
        source(&volume.image, "image", "image", local::check_image),
    ];
    all.into_iter().flatten().collect()
}

fn check_source(at: &Path, volume: &Volume, pod_name: &str, errors: &mut Errors) {
    let sources = sources(volume);
    let Some((first, others)) = sources.split_first() else {
        return errors.required(at, "say what kind of volume it is");
    };
    (first.check)(at, errors);
    for other in others {
        errors.forbidden(&at.child(other.name), "a volume has one source only");
    }
    network::check_iscsi_name(&at.child("name"), volume, errors);
    if first.name == "ephemeral" {
        claims::check_claim_name(&at.child("name"), volume, pod_name, errors);
    }
}
