//! A static pod must run without an API server, so it may not name anything that only lives there.

use std::collections::BTreeSet;

use k8s_openapi::api::core::v1::{
    Container, LocalObjectReference, Pod, PodSpec, Volume, VolumeProjection,
};
use thiserror::Error;

use crate::pod::PodExt;

/// What was given beside the pod, so that it may be named although there is no API server to ask.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Given {
    /// Names of Secrets in the pod's namespace.
    pub secrets: BTreeSet<String>,
    /// Names of ConfigMaps in the pod's namespace.
    pub config_maps: BTreeSet<String>,
}

/// A static pod names something that only an API server has.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("static pods may not reference {resource}")]
pub struct ApiReference {
    /// The kind of thing, as the API spells it in the plural.
    pub resource: &'static str,
    /// The one that is named, where it is one that could have been given beside the pod.
    pub name: Option<String>,
}

/// Refuses a static pod that names something which is neither given nor on this machine.
pub fn check_references(pod: &Pod, given: &Given) -> Result<(), ApiReference> {
    let Some(spec) = pod.spec() else { return Ok(()) };
    if spec.service_account_name.as_deref().is_some_and(|name| !name.is_empty()) {
        return Err(nameless("serviceaccounts"));
    }
    let containers = pod.all_containers();
    let containers = || containers.iter().map(|container| container.spec.as_ref());
    let secrets = secrets_of_pod(spec).chain(containers().flat_map(secrets_of_container));
    all_given("secrets", secrets, &given.secrets)?;
    let config_maps =
        config_maps_of_pod(spec).chain(containers().flat_map(config_maps_of_container));
    all_given("configmaps", config_maps, &given.config_maps)?;
    match first_other(spec) {
        Some(resource) => Err(nameless(resource)),
        None => Ok(()),
    }
}

fn nameless(resource: &'static str) -> ApiReference {
    ApiReference { resource, name: None }
}

fn all_given<'a>(
    resource: &'static str,
    mut named: impl Iterator<Item = &'a str>,
    given: &BTreeSet<String>,
) -> Result<(), ApiReference> {
    match named.find(|name| !given.contains(*name)) {
        Some(name) => Err(ApiReference { resource, name: Some(name.to_owned()) }),
        None => Ok(()),
    }
}

fn volumes(spec: &PodSpec) -> impl Iterator<Item = &Volume> {
    spec.volumes.iter().flatten()
}

fn projections(volume: &Volume) -> impl Iterator<Item = &VolumeProjection> {
    volume.projected.iter().flat_map(|projected| projected.sources.iter().flatten())
}

fn secrets_of_pod(spec: &PodSpec) -> impl Iterator<Item = &str> {
    let pull = spec.image_pull_secrets.iter().flatten().map(|secret| secret.name.as_str());
    pull.chain(volumes(spec).flat_map(secrets_of_volume))
}

fn secrets_of_volume(volume: &Volume) -> impl Iterator<Item = &str> {
    let azure = volume.azure_file.iter().map(|azure| azure.secret_name.as_str());
    let secret = volume.secret.iter().map(|s| s.secret_name.as_deref().unwrap_or_default());
    let projected = projections(volume).filter_map(|source| source.secret.as_ref());
    let login = logins(volume).into_iter().flatten().map(|secret| secret.name.as_str());
    azure.chain(secret).chain(projected.map(|secret| secret.name.as_str())).chain(login)
}

/// Secrets with which network storage is entered.
fn logins(volume: &Volume) -> [Option<&LocalObjectReference>; 8] {
    [
        volume.cephfs.as_ref().and_then(|v| v.secret_ref.as_ref()),
        volume.cinder.as_ref().and_then(|v| v.secret_ref.as_ref()),
        volume.csi.as_ref().and_then(|v| v.node_publish_secret_ref.as_ref()),
        volume.flex_volume.as_ref().and_then(|v| v.secret_ref.as_ref()),
        volume.iscsi.as_ref().and_then(|v| v.secret_ref.as_ref()),
        volume.rbd.as_ref().and_then(|v| v.secret_ref.as_ref()),
        volume.scale_io.as_ref().map(|v| &v.secret_ref),
        volume.storageos.as_ref().and_then(|v| v.secret_ref.as_ref()),
    ]
}

fn secrets_of_container(container: &Container) -> impl Iterator<Item = &str> {
    let whole = container.env_from.iter().flatten().filter_map(|from| from.secret_ref.as_ref());
    let keys = container.env.iter().flatten().filter_map(|env| env.value_from.as_ref());
    let keys = keys.filter_map(|from| from.secret_key_ref.as_ref());
    whole.map(|secret| secret.name.as_str()).chain(keys.map(|secret| secret.name.as_str()))
}

fn config_maps_of_pod(spec: &PodSpec) -> impl Iterator<Item = &str> {
    let mounted = volumes(spec).filter_map(|volume| volume.config_map.as_ref());
    let projected = volumes(spec).flat_map(projections).filter_map(|s| s.config_map.as_ref());
    mounted.map(|map| map.name.as_str()).chain(projected.map(|map| map.name.as_str()))
}

fn config_maps_of_container(container: &Container) -> impl Iterator<Item = &str> {
    let whole = container.env_from.iter().flatten().filter_map(|from| from.config_map_ref.as_ref());
    let keys = container.env.iter().flatten().filter_map(|env| env.value_from.as_ref());
    let keys = keys.filter_map(|from| from.config_map_key_ref.as_ref());
    whole.map(|map| map.name.as_str()).chain(keys.map(|map| map.name.as_str()))
}

/// The first thing named that nobody can give beside a pod.
fn first_other(spec: &PodSpec) -> Option<&'static str> {
    let claims = spec.resource_claims.as_ref().is_some_and(|claims| !claims.is_empty());
    let claims = claims.then_some("resourceclaims");
    claims.or_else(|| volumes(spec).find_map(other_of_volume))
}

fn other_of_volume(volume: &Volume) -> Option<&'static str> {
    let kinds = [
        (volume.csi.is_some(), "csidrivers (via CSI volumes)"),
        (volume.glusterfs.is_some(), "endpoints (via glusterFS volumes)"),
        (volume.persistent_volume_claim.is_some(), "persistentvolumeclaims"),
        (volume.ephemeral.is_some(), "persistentvolumeclaims (via ephemeral volumes)"),
    ];
    let direct = kinds.into_iter().find_map(|(named, resource)| named.then_some(resource));
    direct.or_else(|| projections(volume).find_map(other_of_projection))
}

fn other_of_projection(source: &VolumeProjection) -> Option<&'static str> {
    let kinds = [
        (source.service_account_token.is_some(), "serviceaccounts (via projected volumes)"),
        (source.cluster_trust_bundle.is_some(), "clustertrustbundles"),
        (source.pod_certificate.is_some(), "podcertificates"),
    ];
    kinds.into_iter().find_map(|(named, resource)| named.then_some(resource))
}
