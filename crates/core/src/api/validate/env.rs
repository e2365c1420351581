//! Environment variables and where they come from.

use k8s_openapi::api::core::v1::{
    ConfigMapKeySelector, EnvFromSource, EnvVar, EnvVarSource, FileKeySelector, SecretKeySelector,
};

use super::context::{ContainerPosition, PodValidationContext};
use super::{names, paths, references};
use crate::api::error::Errors;
use crate::api::path::Path;

pub(super) fn check(at: &Path, variables: Option<&[EnvVar]>, errors: &mut Errors) {
    for (i, variable) in variables.into_iter().flatten().enumerate() {
        let at = at.index(i);
        if variable.name.is_empty() {
            errors.required(&at.child("name"), "");
        } else {
            let complaints = names::variable_name(&variable.name);
            errors.invalid_for(&at.child("name"), &variable.name, complaints);
        }
        if let Some(source) = &variable.value_from {
            check_source(&at.child("valueFrom"), variable, source, errors);
        }
    }
}

fn check_source(at: &Path, variable: &EnvVar, source: &EnvVarSource, errors: &mut Errors) {
    if let Some(field) = &source.field_ref {
        references::check_field(&at.child("fieldRef"), field, &references::IN_ENV, errors);
    }
    if let Some(resource) = &source.resource_field_ref {
        references::check_resource(&at.child("resourceFieldRef"), resource, errors);
    }
    if let Some(ConfigMapKeySelector { name, key, .. }) = &source.config_map_key_ref {
        check_key(&at.child("configMapKeyRef"), name, key, errors);
    }
    if let Some(SecretKeySelector { name, key, .. }) = &source.secret_key_ref {
        check_key(&at.child("secretKeyRef"), name, key, errors);
    }
    if let Some(file) = &source.file_key_ref {
        check_file(&at.child("fileKeyRef"), file, errors);
    }
    match count_sources(source) {
        0 => errors.invalid(at, "", "say where the value comes from"),
        _ if variable.value.is_some() => {
            errors.invalid(at, "", "a variable has a value or a source, not both");
        }
        1 => {}
        _ => errors.invalid(at, "", "a value comes from one source only"),
    }
}

fn count_sources(source: &EnvVarSource) -> usize {
    let sources = [
        source.field_ref.is_some(),
        source.resource_field_ref.is_some(),
        source.config_map_key_ref.is_some(),
        source.secret_key_ref.is_some(),
        source.file_key_ref.is_some(),
    ];
    sources.into_iter().filter(|set| *set).count()
}

fn check_key(at: &Path, name: &str, key: &str, errors: &mut Errors) {
    errors.invalid_for(&at.child("name"), name, names::dns_subdomain(name));
    if key.is_empty() {
        errors.required(&at.child("key"), "");
    } else {
        errors.invalid_for(&at.child("key"), key, names::config_key(key));
    }
}

fn check_file(at: &Path, file: &FileKeySelector, errors: &mut Errors) {
    errors.check_present(&at.child("key"), &file.key);
    errors.invalid_for(&at.child("key"), &file.key, names::variable_name(&file.key));
    if file.volume_name.is_empty() {
        errors.required(&at.child("volumeName"), "");
    } else {
        let complaints = names::dns_label(&file.volume_name);
        errors.invalid_for(&at.child("volumeName"), &file.volume_name, complaints);
    }
    errors.check_present(&at.child("path"), &file.path);
    paths::check_no_dots(&at.child("path"), &file.path, errors);
}

/// Whole config maps and secrets as variables.
pub(super) fn check_from(at: &Path, sources: Option<&[EnvFromSource]>, errors: &mut Errors) {
    for (i, source) in sources.into_iter().flatten().enumerate() {
        let item = at.index(i);
        if let Some(prefix) = &source.prefix {
            errors.invalid_for(&item.child("prefix"), prefix, names::variable_name(prefix));
        }
        let config_map = source.config_map_ref.as_ref().map(|config_map| &config_map.name);
        let secret = source.secret_ref.as_ref().map(|secret| &secret.name);
        for (field, name) in [("configMapRef", config_map), ("secretRef", secret)] {
            name.iter().for_each(|name| check_name(&item.child(field).child("name"), name, errors));
        }
        match (config_map, secret) {
            (None, None) => errors.invalid(at, "", "say configMapRef or secretRef"),
            (Some(_), Some(_)) => errors.invalid(at, "", "say one of configMapRef and secretRef"),
            _ => {}
        }
    }
}

fn check_name(at: &Path, name: &str, errors: &mut Errors) {
    if name.is_empty() {
        errors.required(at, "");
    } else {
        errors.invalid_for(at, name, names::dns_subdomain(name));
    }
}

/// A file with variables lies in an empty directory of the pod.
pub(super) fn check_file_volumes(
    container_positions: &[ContainerPosition<'_>],
    around: &PodValidationContext<'_>,
    errors: &mut Errors,
) {
    for place in container_positions {
        for (i, variable) in place.container.env.iter().flatten().enumerate() {
            let source = variable.value_from.as_ref();
            let Some(file) = source.and_then(|source| source.file_key_ref.as_ref()) else {
                continue;
            };
            let at = place.at.child("env").index(i).child("valueFrom").child("fileKeyRef");
            let volumes = around.spec.volumes.as_deref().unwrap_or_default();
            match volumes.iter().rfind(|volume| volume.name == file.volume_name) {
                None => errors.not_found(&at.child("volumeName"), &file.volume_name, ""),
                Some(volume) if volume.empty_dir.is_none() => {
                    let detail = "the volume has to be an emptyDir";
                    errors.invalid(&at.child("volumeName"), file.volume_name.as_str(), detail);
                }
                Some(_) => {}
            }
        }
    }
}
