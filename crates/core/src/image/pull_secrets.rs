//! The credentials that a pod brings along for the pulls of its images.

#[cfg(test)]
mod tests;

use k8s_openapi::api::core::v1::Pod;

use super::credentials::{CredentialSource, SecretCoordinates};
use super::keyring::{Keyring, KeyringError};
use crate::cri_spec::Lookup;
use crate::event::PodEvent;
use crate::ids::FullName;
use crate::pod::PodExt;
use crate::references::ObjectKind;

/// The types of Secrets that hold credentials, and the key under which each has them.
const TYPES: [(&str, &str); 2] = [
    ("kubernetes.io/dockerconfigjson", ".dockerconfigjson"),
    ("kubernetes.io/dockercfg", ".dockercfg"),
];

/// Why a Secret that a pod names for its pulls opens nothing.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
enum PullSecretError {
    #[error("it does not exist")]
    Missing,
    #[error("its type is {0:?}: make it kubernetes.io/dockerconfigjson or kubernetes.io/dockercfg")]
    Type(String),
    #[error("it has no key {0}")]
    NoKey(&'static str),
    #[error(transparent)]
    Malformed(#[from] KeyringError),
}

/// The credentials of a pod, and what its owner should know about those that are not to be had. The pull goes on without them.
pub fn pull_secrets(pod: &Pod, lookup: &Lookup) -> (Keyring, Vec<PodEvent>) {
    let named = pod.spec().and_then(|spec| spec.image_pull_secrets.as_deref()).unwrap_or_default();
    let namespace = pod.full_name().namespace;
    let (mut found, mut missing, mut events) = (Vec::new(), Vec::new(), Vec::new());
    for name in
        named.iter().map(|reference| reference.name.as_str()).filter(|name| !name.is_empty())
    {
        match open(lookup, &namespace, name) {
            Ok(keyring) => found.push(keyring),
            Err(PullSecretError::Missing) => missing.push(name),
            Err(why) => {
                events.push(warning(format!("Unable to use image pull secret {name}: {why}")));
            }
        }
    }
    if !missing.is_empty() {
        let names = missing.join(", ");
        let message = format!(
            "Unable to retrieve some image pull secrets ({names}); attempting to pull the image may not succeed."
        );
        events.insert(0, warning(message));
    }
    (found.into_iter().collect(), events)
}

fn warning(message: String) -> PodEvent {
    PodEvent::warning("FailedToRetrieveImagePullSecret", message)
}

fn open(lookup: &Lookup, namespace: &str, name: &str) -> Result<Keyring, PullSecretError> {
    let full = FullName { name: name.to_owned(), namespace: namespace.to_owned() };
    let secret = lookup.secrets.get(&full).ok_or(PullSecretError::Missing)?;
    let kind = secret.type_.as_deref().unwrap_or_default();
    let known = TYPES.into_iter().find(|(known, _)| *known == kind);
    let (_, key) = known.ok_or_else(|| PullSecretError::Type(kind.to_owned()))?;
    let bytes = lookup
        .value(ObjectKind::Secret, namespace, name, key)
        .ok_or(PullSecretError::NoKey(key))?;
    let text = String::from_utf8(bytes);
    let text = text.map_err(|error| KeyringError::Malformed(error.utf8_error().to_string()))?;
    let source = CredentialSource::Secret(SecretCoordinates {
        uid: secret.metadata.uid.clone().unwrap_or_default(),
        namespace: namespace.to_owned(),
        name: name.to_owned(),
    });
    Ok(Keyring::parse(&text)?.from_source(&source))
}
