//! Defaults of volumes.

use k8s_openapi::api::core::v1::{
    AzureDiskVolumeSource, DownwardAPIVolumeFile, EmptyDirVolumeSource, ImageVolumeSource,
    PersistentVolumeClaimTemplate, ProjectedVolumeSource, RBDVolumeSource, ScaleIOVolumeSource,
    Volume,
};

use super::containers::{pull_policy, set_field_ref, set_resource_field_ref};
use super::set_text;

/// Files are readable by all and writable by their owner.
const FILE_MODE: i32 = 0o644;
const TOKEN_SECONDS: i64 = 3600;

pub(super) fn set_defaults(volume: &mut Volume) {
    if has_no_source(volume) {
        volume.empty_dir = Some(EmptyDirVolumeSource::default());
    }
    set_local(volume);
    set_remote(volume);
    volume.projected.as_mut().map(set_projected);
    volume.image.as_mut().map(set_image);
    if let Some(ephemeral) = &mut volume.ephemeral {
        ephemeral.volume_claim_template.as_mut().map(set_claim_template);
    }
}

/// Everything but the name is a source.
fn has_no_source(volume: &Volume) -> bool {
    *volume == Volume { name: volume.name.clone(), ..Volume::default() }
}

fn set_local(volume: &mut Volume) {
    if let Some(host_path) = &mut volume.host_path {
        set_text(&mut host_path.type_, "");
    }
    if let Some(secret) = &mut volume.secret {
        secret.default_mode.get_or_insert(FILE_MODE);
    }
    if let Some(config_map) = &mut volume.config_map {
        config_map.default_mode.get_or_insert(FILE_MODE);
    }
    if let Some(downward) = &mut volume.downward_api {
        downward.default_mode.get_or_insert(FILE_MODE);
        downward.items.iter_mut().flatten().for_each(set_downward_file);
    }
}

fn set_downward_file(file: &mut DownwardAPIVolumeFile) {
    file.field_ref.as_mut().map(set_field_ref);
    file.resource_field_ref.as_mut().map(set_resource_field_ref);
}

fn set_projected(projected: &mut ProjectedVolumeSource) {
    projected.default_mode.get_or_insert(FILE_MODE);
    for source in projected.sources.iter_mut().flatten() {
        if let Some(downward) = &mut source.downward_api {
            downward.items.iter_mut().flatten().for_each(set_downward_file);
        }
        if let Some(token) = &mut source.service_account_token {
            token.expiration_seconds.get_or_insert(TOKEN_SECONDS);
        }
    }
}

fn set_remote(volume: &mut Volume) {
    if let Some(iscsi) = &mut volume.iscsi {
        set_text(&mut iscsi.iscsi_interface, "default");
    }
    volume.rbd.as_mut().map(set_rbd);
    volume.azure_disk.as_mut().map(set_azure_disk);
    volume.scale_io.as_mut().map(set_scale_io);
}

fn set_rbd(rbd: &mut RBDVolumeSource) {
    set_text(&mut rbd.pool, "rbd");
    set_text(&mut rbd.user, "admin");
    set_text(&mut rbd.keyring, "/etc/ceph/keyring");
}

fn set_azure_disk(disk: &mut AzureDiskVolumeSource) {
    set_text(&mut disk.caching_mode, "ReadWrite");
    set_text(&mut disk.fs_type, "ext4");
    set_text(&mut disk.kind, "Shared");
    disk.read_only.get_or_insert(false);
}

fn set_scale_io(scale_io: &mut ScaleIOVolumeSource) {
    set_text(&mut scale_io.storage_mode, "ThinProvisioned");
    set_text(&mut scale_io.fs_type, "xfs");
}

fn set_image(image: &mut ImageVolumeSource) {
    let policy = pull_policy(image.reference.as_deref().unwrap_or_default());
    set_text(&mut image.pull_policy, policy);
}

fn set_claim_template(template: &mut PersistentVolumeClaimTemplate) {
    template.metadata.get_or_insert_default();
    template.spec.resources.get_or_insert_default();
    set_text(&mut template.spec.volume_mode, "Filesystem");
}
