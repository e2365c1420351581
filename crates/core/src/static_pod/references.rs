//! A static pod must run without an API server, so it may not name anything that only lives there.

use std::collections::BTreeSet;

use k8s_openapi::api::core::v1::{Pod, PodSpec, Volume, VolumeProjection};
use thiserror::Error;

use crate::pod::PodExt;
use crate::references::{ObjectKind, Reference, references};

/// What was given beside the pod, so that it may be named although there is no API server to ask.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProvidedObjects {
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
pub fn check_references(pod: &Pod, given: &ProvidedObjects) -> Result<(), ApiReference> {
    let Some(spec) = pod.spec() else { return Ok(()) };
    if spec.service_account_name.as_deref().is_some_and(|name| !name.is_empty()) {
        return Err(nameless("serviceaccounts"));
    }
    let named = references(pod);
    all_given("secrets", ObjectKind::Secret, &named, &given.secrets)?;
    all_given("configmaps", ObjectKind::ConfigMap, &named, &given.config_maps)?;
    match first_other(spec) {
        Some(resource) => Err(nameless(resource)),
        None => Ok(()),
    }
}

fn nameless(resource: &'static str) -> ApiReference {
    ApiReference { resource, name: None }
}

fn all_given(
    resource: &'static str,
    kind: ObjectKind,
    named: &[Reference],
    given: &BTreeSet<String>,
) -> Result<(), ApiReference> {
    let mut named = named.iter().filter(|reference| reference.kind == kind);
    match named.find(|reference| !given.contains(&reference.name)) {
        Some(missing) => Err(ApiReference { resource, name: Some(missing.name.clone()) }),
        None => Ok(()),
    }
}

fn volumes(spec: &PodSpec) -> impl Iterator<Item = &Volume> {
    spec.volumes.iter().flatten()
}

fn projections(volume: &Volume) -> impl Iterator<Item = &VolumeProjection> {
    volume.projected.iter().flat_map(|projected| projected.sources.iter().flatten())
}

/// The first referenced object that cannot be provided beside a pod.
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
