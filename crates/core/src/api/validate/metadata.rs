//! Name, namespace, labels, annotations, owners and finalizers.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};

use super::{labels, names};
use crate::api::error::Errors;
use crate::api::path::Path;

const ANNOTATIONS_MAX_BYTES: usize = 256 * 1024;
/// Finalizers that may stand without a domain.
const STANDARD_FINALIZERS: [&str; 3] = ["foregroundDeletion", "kubernetes", "orphan"];

pub(super) fn check(at: &Path, metadata: &ObjectMeta, errors: &mut Errors) {
    check_name(at, metadata, errors);
    let namespace = metadata.namespace.as_deref().unwrap_or_default();
    check_namespace(&at.child("namespace"), namespace, errors);
    if let Some(generation) = metadata.generation.filter(|generation| *generation < 0) {
        errors.invalid(&at.child("generation"), generation, "must not be negative");
    }
    labels::check_labels(&at.child("labels"), metadata.labels.as_ref(), errors);
    check_annotations(&at.child("annotations"), metadata.annotations.as_ref(), errors);
    check_owners(&at.child("ownerReferences"), metadata, errors);
    check_finalizers(&at.child("finalizers"), metadata, errors);
}

fn check_name(at: &Path, metadata: &ObjectMeta, errors: &mut Errors) {
    if let Some(prefix) = &metadata.generate_name {
        let complaints = names::dns_subdomain(&without_trailing_dash(prefix));
        errors.invalid_for(&at.child("generateName"), prefix, complaints);
    }
    match metadata.name.as_deref().unwrap_or_default() {
        "" => errors.required(&at.child("name"), "name or generateName is required"),
        name => errors.invalid_for(&at.child("name"), name, names::dns_subdomain(name)),
    }
}

/// A prefix may end in a dash, since something will follow.
fn without_trailing_dash(prefix: &str) -> String {
    match prefix.strip_suffix('-') {
        Some(rest) if !rest.is_empty() => {
            let mut masked: String = rest.to_owned();
            masked.pop();
            masked + "a"
        }
        _ => prefix.to_owned(),
    }
}

fn check_namespace(at: &Path, namespace: &str, errors: &mut Errors) {
    if namespace.is_empty() {
        errors.required(at, "");
    } else {
        errors.invalid_for(at, namespace, names::dns_label(namespace));
    }
}

/// Keys of annotations may have upper case; together they have a size.
pub(super) fn check_annotations(
    at: &Path,
    annotations: Option<&BTreeMap<String, String>>,
    errors: &mut Errors,
) {
    for key in annotations.into_iter().flat_map(BTreeMap::keys) {
        errors.invalid_for(at, key, names::qualified_name(&key.to_lowercase()));
    }
    check_annotations_size(at, annotations, errors);
}

/// How large annotations may be together.
pub(super) fn check_annotations_size(
    at: &Path,
    annotations: Option<&BTreeMap<String, String>>,
    errors: &mut Errors,
) {
    let size: usize = annotations.into_iter().flatten().map(|(k, v)| k.len() + v.len()).sum();
    if size > ANNOTATIONS_MAX_BYTES {
        errors.too_long(at, ANNOTATIONS_MAX_BYTES);
    }
}

fn check_owners(at: &Path, metadata: &ObjectMeta, errors: &mut Errors) {
    let owners = metadata.owner_references.as_deref().unwrap_or_default();
    let mut controllers = 0;
    for owner in owners {
        check_owner(at, owner, errors);
        if owner.controller == Some(true) {
            controllers += 1;
            if controllers > 1 {
                errors.invalid(at, owner.name.as_str(), "only one owner may be the controller");
            }
        }
    }
}

fn check_owner(at: &Path, owner: &OwnerReference, errors: &mut Errors) {
    let (_group, version) = owner.api_version.split_once('/').unwrap_or(("", &owner.api_version));
    let texts = [
        ("apiVersion", if version.contains('/') { "" } else { version }),
        ("kind", owner.kind.as_str()),
        ("name", owner.name.as_str()),
        ("uid", owner.uid.as_str()),
    ];
    for (field, text) in texts {
        if text.is_empty() {
            errors.invalid(&at.child(field), "", "must not be empty");
        }
    }
    if owner.api_version == "v1" && owner.kind == "Event" {
        errors.invalid(at, owner.name.as_str(), "an Event cannot own anything");
    }
}

fn check_finalizers(at: &Path, metadata: &ObjectMeta, errors: &mut Errors) {
    let finalizers = metadata.finalizers.as_deref().unwrap_or_default();
    for (i, finalizer) in finalizers.iter().enumerate() {
        errors.invalid_for(at, finalizer, names::qualified_name(finalizer));
        if !finalizer.contains('/') && !STANDARD_FINALIZERS.contains(&finalizer.as_str()) {
            let detail = "a finalizer of your own needs a domain, as in example.com/cleanup";
            errors.invalid(&at.index(i), finalizer.as_str(), detail);
        }
    }
    let has = |name: &str| finalizers.iter().any(|finalizer| finalizer == name);
    if has("orphan") && has("foregroundDeletion") {
        errors.invalid(at, finalizers, "orphan and foregroundDeletion exclude each other");
    }
}
