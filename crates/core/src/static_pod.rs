//! Pods that come from a file or a URL: what makes a manifest a pod of this node.
//!
//! The order is: decode the manifest, [`prepare`] it, then default and validate it as any pod, then
//! [`check_references`]. The UID is made from the content as it was written, before defaults are filled in, so that
//! a newer Oarsman with newer defaults does not restart what runs.

mod adoption;
mod references;
#[cfg(test)]
mod tests;
mod uid;

use k8s_openapi::api::core::v1::{Pod, Toleration};
use thiserror::Error;

use crate::ids::PodUid;
use crate::pod::{HASH_ANNOTATION, PodExt};
use crate::sources::Source;

pub use adoption::{Adoptions, MADE_UID_ANNOTATION};
pub use references::{ApiReference, ProvidedObjects, check_references};

/// Where a manifest was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ManifestOrigin {
    /// In a file of this path.
    File(String),
    /// The manifest was fetched from this URL.
    Url(String),
}

impl ManifestOrigin {
    /// The source it belongs to.
    pub fn source(&self) -> Source {
        match self {
            Self::File(_) => Source::File,
            Self::Url(_) => Source::Http,
        }
    }
}

/// What a pod from a manifest is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StaticPodNaming {
    /// With the node's name behind its own, so that the same manifest on two nodes of a cluster makes two pods.
    OfNode,
    /// As it is written: without a cluster no other node can have a pod of that name.
    AsWritten,
}

/// Why a manifest cannot become a pod of this node.
#[derive(Debug, Error)]
pub enum PrepareError {
    /// It has no name.
    #[error("the pod in {0} has no name: set metadata.name")]
    Nameless(String),
    /// It cannot be written as JSON, which its UID is made from.
    #[error("no uid can be made for the pod in {origin}: {source}; set metadata.uid")]
    Unwritable {
        /// The path or URL of the manifest.
        origin: String,
        /// What stood in the way.
        source: serde_json::Error,
    },
}

/// Makes a decoded manifest a pod of this node: a UID unless it has one, a name, a namespace, and the marks of a
/// static pod.
pub fn prepare(
    pod: Pod,
    origin: &ManifestOrigin,
    node: &str,
    naming: StaticPodNaming,
) -> Result<Pod, PrepareError> {
    let (ManifestOrigin::File(place) | ManifestOrigin::Url(place)) = origin;
    let nameless = || PrepareError::Nameless(place.clone());
    let name = pod.metadata.name.clone().filter(|n| !n.is_empty()).ok_or_else(nameless)?;
    let uid = uid_of(&pod, origin, node)
        .map_err(|source| PrepareError::Unwritable { origin: place.clone(), source })?;
    let mut pod = with_uid(pod, &uid);
    pod.metadata.name = Some(match naming {
        StaticPodNaming::OfNode => format!("{name}-{}", node.to_lowercase()),
        StaticPodNaming::AsWritten => name,
    });
    pod.metadata.namespace = Some(pod.full_name().namespace);
    pod.spec.get_or_insert_default().node_name = Some(node.to_owned());
    pod.status.get_or_insert_default().phase = Some("Pending".to_owned());
    if origin.source() == Source::File {
        tolerate_taints(&mut pod);
    }
    Ok(pod)
}

/// The UID that the manifest gives, or else one made from all it says, the node and the place.
fn uid_of(pod: &Pod, origin: &ManifestOrigin, node: &str) -> Result<PodUid, serde_json::Error> {
    match pod.metadata.uid.as_deref() {
        Some(given) if !given.is_empty() => Ok(PodUid::from(given)),
        Some(_) | None => uid::uid_from_content(pod, origin, node),
    }
}

/// The same pod under this UID. The hash of a static pod is its UID.
fn with_uid(mut pod: Pod, uid: &PodUid) -> Pod {
    pod.metadata.uid = Some(uid.to_string());
    let annotations = pod.metadata.annotations.get_or_insert_default();
    annotations.insert(HASH_ANNOTATION.to_owned(), uid.to_string());
    pod
}

/// A pod from a file stays when the node has problems.
fn tolerate_taints(pod: &mut Pod) {
    let wanted = Toleration {
        operator: Some("Exists".to_owned()),
        effect: Some("NoExecute".to_owned()),
        ..Default::default()
    };
    let tolerations = pod.spec.get_or_insert_default().tolerations.get_or_insert_default();
    tolerations.retain(|other| !is_same_toleration(other, &wanted));
    tolerations.push(wanted);
}

/// Whether two tolerations differ in nothing but for how long.
fn is_same_toleration(one: &Toleration, other: &Toleration) -> bool {
    let text = |field: &Option<String>| field.clone().unwrap_or_default();
    text(&one.key) == text(&other.key)
        && text(&one.operator) == text(&other.operator)
        && text(&one.value) == text(&other.value)
        && text(&one.effect) == text(&other.effect)
}
