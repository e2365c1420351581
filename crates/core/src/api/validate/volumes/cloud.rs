//! Disks of clouds and of storage systems.

use k8s_openapi::api::core::v1::{
    AWSElasticBlockStoreVolumeSource, AzureDiskVolumeSource, AzureFileVolumeSource,
    CSIVolumeSource, CinderVolumeSource, FlexVolumeSource, GCEPersistentDiskVolumeSource,
    LocalObjectReference, PhotonPersistentDiskVolumeSource, PortworxVolumeSource,
    ScaleIOVolumeSource, StorageOSVolumeSource, VsphereVirtualDiskVolumeSource,
};

use crate::api::error::Errors;
use crate::api::path::Path;
use crate::api::validate::names;

const CACHING_MODES: [&str; 3] = ["None", "ReadOnly", "ReadWrite"];
const DISK_KINDS: [&str; 3] = ["Dedicated", "Managed", "Shared"];
const MANAGED_URI: &str = "/subscriptions/";
const BLOB_URI: &str = "https://";
const DRIVER_MAX: usize = 63;

pub(super) fn check_gce(at: &Path, source: &GCEPersistentDiskVolumeSource, errors: &mut Errors) {
    errors.check_present(&at.child("pdName"), &source.pd_name);
    check_partition(&at.child("partition"), source.partition, errors);
}

pub(super) fn check_aws(at: &Path, source: &AWSElasticBlockStoreVolumeSource, errors: &mut Errors) {
    errors.check_present(&at.child("volumeID"), &source.volume_id);
    check_partition(&at.child("partition"), source.partition, errors);
}

fn check_partition(at: &Path, partition: Option<i32>, errors: &mut Errors) {
    let partition = partition.unwrap_or_default();
    for complaint in names::in_range(partition.into(), 0, 255) {
        errors.invalid(at, partition, complaint);
    }
}

pub(super) fn check_azure_file(at: &Path, source: &AzureFileVolumeSource, errors: &mut Errors) {
    errors.check_present(&at.child("secretName"), &source.secret_name);
    errors.check_present(&at.child("shareName"), &source.share_name);
}

pub(super) fn check_azure_disk(at: &Path, source: &AzureDiskVolumeSource, errors: &mut Errors) {
    errors.check_present(&at.child("diskName"), &source.disk_name);
    errors.check_present(&at.child("diskURI"), &source.disk_uri);
    if let Some(mode) = &source.caching_mode {
        errors.check_supported(&at.child("cachingMode"), mode, &CACHING_MODES);
    }
    let Some(kind) = &source.kind else { return };
    errors.check_supported(&at.child("kind"), kind, &DISK_KINDS);
    let beginning = if kind == "Managed" { MANAGED_URI } else { BLOB_URI };
    if !source.disk_uri.starts_with(beginning) {
        errors.not_supported(&at.child("diskURI"), &source.disk_uri, &[&format!("{beginning}...")]);
    }
}

pub(super) fn check_cinder(at: &Path, source: &CinderVolumeSource, errors: &mut Errors) {
    errors.check_present(&at.child("volumeID"), &source.volume_id);
    check_secret(&at.child("secretRef"), source.secret_ref.as_ref(), errors);
}

fn check_secret(at: &Path, secret: Option<&LocalObjectReference>, errors: &mut Errors) {
    if let Some(secret) = secret {
        errors.check_present(&at.child("name"), &secret.name);
    }
}

pub(super) fn check_vsphere(
    at: &Path,
    source: &VsphereVirtualDiskVolumeSource,
    errors: &mut Errors,
) {
    errors.check_present(&at.child("volumePath"), &source.volume_path);
}

pub(super) fn check_photon(
    at: &Path,
    source: &PhotonPersistentDiskVolumeSource,
    errors: &mut Errors,
) {
    errors.check_present(&at.child("pdID"), &source.pd_id);
}

pub(super) fn check_portworx(at: &Path, source: &PortworxVolumeSource, errors: &mut Errors) {
    errors.check_present(&at.child("volumeID"), &source.volume_id);
}

pub(super) fn check_scale_io(at: &Path, source: &ScaleIOVolumeSource, errors: &mut Errors) {
    errors.check_present(&at.child("gateway"), &source.gateway);
    errors.check_present(&at.child("system"), &source.system);
    let name = source.volume_name.as_deref().unwrap_or_default();
    errors.check_present(&at.child("volumeName"), name);
}

pub(super) fn check_storageos(at: &Path, source: &StorageOSVolumeSource, errors: &mut Errors) {
    match &source.volume_name {
        Some(name) => errors.invalid_for(&at.child("volumeName"), name, names::dns_label(name)),
        None => errors.required(&at.child("volumeName"), ""),
    }
    if let Some(namespace) = &source.volume_namespace {
        let complaints = names::dns_label(namespace);
        errors.invalid_for(&at.child("volumeNamespace"), namespace, complaints);
    }
    check_secret(&at.child("secretRef"), source.secret_ref.as_ref(), errors);
}

pub(super) fn check_flex(at: &Path, source: &FlexVolumeSource, errors: &mut Errors) {
    errors.check_present(&at.child("driver"), &source.driver);
    for option in source.options.iter().flatten().map(|(option, _)| option) {
        let (domain, _) = option.split_once('/').unwrap_or((option, ""));
        let domain = format!(".{}", domain.to_lowercase());
        if domain.ends_with(".kubernetes.io") || domain.ends_with(".k8s.io") {
            let detail = "kubernetes.io and k8s.io are not yours to use";
            errors.invalid(&at.child("options").key(option), option.as_str(), detail);
        }
    }
}

pub(super) fn check_csi(at: &Path, source: &CSIVolumeSource, errors: &mut Errors) {
    check_driver(&at.child("driver"), &source.driver, errors);
    match source.node_publish_secret_ref.as_ref().map(|secret| secret.name.as_str()) {
        None => {}
        Some("") => errors.required(&at.child("nodePublishSecretRef").child("name"), ""),
        // The API server reports this as the name of the volume's source.
        Some(name) => errors.invalid_for(&at.child("name"), name, names::dns_subdomain(name)),
    }
}

fn check_driver(at: &Path, driver: &str, errors: &mut Errors) {
    if driver.is_empty() {
        return errors.required(at, "");
    }
    if driver.len() > DRIVER_MAX {
        errors.too_long(at, DRIVER_MAX);
    }
    errors.invalid_for(at, driver, names::dns_subdomain(&driver.to_lowercase()));
}
