//! Volumes that come from the node, the pod or the API.

use k8s_openapi::api::core::v1::{
    ConfigMapVolumeSource, DownwardAPIVolumeFile, DownwardAPIVolumeSource, EmptyDirVolumeSource,
    GitRepoVolumeSource, HostPathVolumeSource, ImageVolumeSource, KeyToPath, SecretVolumeSource,
};

use crate::api::error::Errors;
use crate::api::path::Path;
use crate::api::validate::{containers, paths, references};
use crate::quantity::Quantity;

const HOST_PATH_TYPES: [&str; 8] = [
    "",
    "BlockDevice",
    "CharDevice",
    "Directory",
    "DirectoryOrCreate",
    "File",
    "FileOrCreate",
    "Socket",
];

pub(super) fn check_empty_dir(at: &Path, source: &EmptyDirVolumeSource, errors: &mut Errors) {
    let limit = source.size_limit.as_ref().map(Quantity::try_from);
    if limit.is_some_and(|limit| limit.is_ok_and(|limit| limit.is_negative())) {
        errors.forbidden(&at.child("sizeLimit"), "must not be negative");
    }
}

pub(super) fn check_host_path(at: &Path, source: &HostPathVolumeSource, errors: &mut Errors) {
    if source.path.is_empty() {
        return errors.required(&at.child("path"), "");
    }
    paths::check_no_dots(&at.child("path"), &source.path, errors);
    let kind = source.type_.as_deref().unwrap_or_default();
    errors.check_supported(&at.child("type"), kind, &HOST_PATH_TYPES);
}

pub(super) fn check_git_repo(at: &Path, source: &GitRepoVolumeSource, errors: &mut Errors) {
    errors.check_present(&at.child("repository"), &source.repository);
    let directory = source.directory.as_deref().unwrap_or_default();
    paths::check_descending(&at.child("directory"), directory, errors);
}

pub(super) fn check_secret(at: &Path, source: &SecretVolumeSource, errors: &mut Errors) {
    let name = source.secret_name.as_deref().unwrap_or_default();
    errors.check_present(&at.child("secretName"), name);
    paths::check_mode(&at.child("defaultMode"), source.default_mode, errors);
    check_items(&at.child("items"), source.items.as_deref(), errors);
}

pub(super) fn check_config_map(at: &Path, source: &ConfigMapVolumeSource, errors: &mut Errors) {
    errors.check_present(&at.child("name"), &source.name);
    paths::check_mode(&at.child("defaultMode"), source.default_mode, errors);
    check_items(&at.child("items"), source.items.as_deref(), errors);
}

/// Keys and the files they become.
pub(super) fn check_items(at: &Path, items: Option<&[KeyToPath]>, errors: &mut Errors) {
    for (i, item) in items.into_iter().flatten().enumerate() {
        let at = at.index(i);
        errors.check_present(&at.child("key"), &item.key);
        errors.check_present(&at.child("path"), &item.path);
        paths::check_unreserved(&at.child("path"), &item.path, errors);
        paths::check_mode(&at.child("mode"), item.mode, errors);
    }
}

pub(super) fn check_downward_api(at: &Path, source: &DownwardAPIVolumeSource, errors: &mut Errors) {
    paths::check_mode(&at.child("defaultMode"), source.default_mode, errors);
    for file in source.items.iter().flatten() {
        check_downward_file(at, file, errors);
    }
}

/// One file about the pod. The API server reports it without its index.
pub(super) fn check_downward_file(at: &Path, file: &DownwardAPIVolumeFile, errors: &mut Errors) {
    errors.check_present(&at.child("path"), &file.path);
    paths::check_unreserved(&at.child("path"), &file.path, errors);
    match (&file.field_ref, &file.resource_field_ref) {
        (Some(field), resource) => {
            references::check_field(&at.child("fieldRef"), field, &references::IN_FILES, errors);
            if resource.is_some() {
                errors.invalid(at, "resource", "say one of fieldRef and resourceFieldRef");
            }
        }
        (None, Some(resource)) => {
            references::check_resource_of(&at.child("resourceFieldRef"), resource, errors);
        }
        (None, None) => errors.required(at, "say fieldRef or resourceFieldRef"),
    }
    paths::check_mode(&at.child("mode"), file.mode, errors);
}

pub(super) fn check_image(at: &Path, source: &ImageVolumeSource, errors: &mut Errors) {
    let reference = source.reference.as_deref().unwrap_or_default();
    errors.check_present(&at.child("reference"), reference);
    let policy = source.pull_policy.as_deref().unwrap_or_default();
    containers::check_pull_policy(&at.child("pullPolicy"), policy, errors);
}
