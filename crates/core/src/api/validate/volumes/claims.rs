//! Claims of volumes, by name or made for the pod.

use std::collections::BTreeSet;

use k8s_openapi::api::core::v1::{
    EphemeralVolumeSource, PersistentVolumeClaimSpec, PersistentVolumeClaimVolumeSource,
    TypedLocalObjectReference, TypedObjectReference, Volume,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde_json::Value;

use crate::api::error::Errors;
use crate::api::path::Path;
use crate::api::validate::{labels, metadata, names, resources};
use crate::quantity::Quantity;

const ACCESS_MODES: [&str; 4] =
    ["ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod"];
const VOLUME_MODES: [&str; 2] = ["Block", "Filesystem"];

pub(super) fn check_claim(
    at: &Path,
    source: &PersistentVolumeClaimVolumeSource,
    errors: &mut Errors,
) {
    errors.check_present(&at.child("claimName"), &source.claim_name);
}

/// A claim that is made for this pod is not there to be named.
pub(super) fn check_not_made(
    at: &Path,
    volume: &Volume,
    made: &BTreeSet<String>,
    errors: &mut Errors,
) {
    let Some(claim) = &volume.persistent_volume_claim else { return };
    if made.contains(&claim.claim_name) {
        let at = at.child("persistentVolumeClaim").child("claimName");
        let detail = "this claim is made for another volume of the pod";
        errors.invalid(&at, claim.claim_name.as_str(), detail);
    }
}

/// A claim made for a pod is named after pod and volume.
pub(super) fn check_claim_name(at: &Path, volume: &Volume, pod_name: &str, errors: &mut Errors) {
    if pod_name.is_empty() || volume.name.is_empty() {
        return;
    }
    let complaints = names::dns_subdomain(&format!("{pod_name}-{}", volume.name));
    errors.invalid_for(at, &volume.name, complaints);
}

pub(super) fn check_ephemeral(at: &Path, source: &EphemeralVolumeSource, errors: &mut Errors) {
    let at = at.child("volumeClaimTemplate");
    let Some(template) = &source.volume_claim_template else { return errors.required(&at, "") };
    if let Some(metadata) = &template.metadata {
        check_template_metadata(&at.child("metadata"), metadata, errors);
    }
    check_spec(&at.child("spec"), &template.spec, errors);
}

/// Only labels and annotations are passed on to the claim.
fn check_template_metadata(at: &Path, metadata: &ObjectMeta, errors: &mut Errors) {
    metadata::check_annotations(&at.child("annotations"), metadata.annotations.as_ref(), errors);
    labels::check_labels(&at.child("labels"), metadata.labels.as_ref(), errors);
    let fields = serde_json::to_value(metadata).unwrap_or_default();
    for field in fields.as_object().into_iter().flatten().map(|(field, _)| field) {
        if field != "annotations" && field != "labels" {
            errors.forbidden(&at.child(field), "a template has labels and annotations only");
        }
    }
}

fn check_spec(at: &Path, spec: &PersistentVolumeClaimSpec, errors: &mut Errors) {
    check_access_modes(&at.child("accessModes"), spec.access_modes.as_deref(), errors);
    labels::check_selector(&at.child("selector"), spec.selector.as_ref(), errors);
    check_size(&at.child("resources").key("storage"), spec, errors);
    let classes = [
        ("storageClassName", &spec.storage_class_name),
        ("volumeAttributesClassName", &spec.volume_attributes_class_name),
    ];
    for (field, class) in classes {
        if let Some(class) = class.as_ref().filter(|class| !class.is_empty()) {
            errors.invalid_for(&at.child(field), class, names::dns_subdomain(class));
        }
    }
    if let Some(mode) = &spec.volume_mode {
        errors.check_supported(&at.child("volumeMode"), mode, &VOLUME_MODES);
    }
    check_data_sources(at, spec, errors);
}

fn check_access_modes(at: &Path, modes: Option<&[String]>, errors: &mut Errors) {
    let modes = modes.unwrap_or_default();
    if modes.is_empty() {
        errors.required(at, "say at least one");
    }
    for mode in modes {
        errors.check_supported(at, mode, &ACCESS_MODES);
    }
    let (alone, shared): (Vec<&str>, Vec<&str>) =
        modes.iter().map(String::as_str).partition(|mode| *mode == "ReadWriteOncePod");
    if !alone.is_empty() && shared.iter().any(|mode| ACCESS_MODES.contains(mode)) {
        errors.forbidden(at, "ReadWriteOncePod stands alone");
    }
}

fn check_size(at: &Path, spec: &PersistentVolumeClaimSpec, errors: &mut Errors) {
    let requests = spec.resources.as_ref().and_then(|resources| resources.requests.as_ref());
    match requests.and_then(|requests| requests.get("storage")).map(Quantity::try_from) {
        None => errors.required(at, "say how much"),
        Some(Err(error)) => errors.invalid(at, Value::Null, error.to_string()),
        Some(Ok(size)) if size <= Quantity::ZERO => {
            errors.invalid(at, size.to_string(), "must be more than nothing");
        }
        Some(Ok(size)) => resources::check_amount(at, "storage", &size, errors),
    }
}

fn check_data_sources(at: &Path, spec: &PersistentVolumeClaimSpec, errors: &mut Errors) {
    if let Some(source) = &spec.data_source {
        let TypedLocalObjectReference { api_group, kind, name } = source;
        check_source(&at.child("dataSource"), api_group.as_deref(), kind, name, errors);
    }
    let Some(reference) = &spec.data_source_ref else { return };
    let TypedObjectReference { api_group, kind, name, namespace } = reference;
    let reference_at = at.child("dataSourceRef");
    check_source(&reference_at, api_group.as_deref(), kind, name, errors);
    let namespace = namespace.as_ref().filter(|namespace| !namespace.is_empty());
    if let Some(namespace) = namespace {
        let complaints = names::dns_label(namespace);
        errors.invalid_for(&reference_at.child("namespace"), namespace, complaints);
    }
    let Some(source) = &spec.data_source else { return };
    let same = source.api_group == *api_group && source.kind == *kind && source.name == *name;
    if namespace.is_some() {
        errors.invalid(at, "dataSource", "does not go with a dataSourceRef elsewhere");
    } else if !same {
        errors.invalid(at, "dataSource", "must be the same as dataSourceRef");
    }
}

fn check_source(at: &Path, group: Option<&str>, kind: &str, name: &str, errors: &mut Errors) {
    errors.check_present(&at.child("name"), name);
    errors.check_present(&at.child("kind"), kind);
    match group.unwrap_or_default() {
        "" if kind != "PersistentVolumeClaim" => {
            errors.invalid(at, kind, "without an apiGroup it is a PersistentVolumeClaim");
        }
        "" => {}
        group => {
            errors.invalid_for(&at.child("apiGroup"), group, names::dns_subdomain(group));
        }
    }
}
