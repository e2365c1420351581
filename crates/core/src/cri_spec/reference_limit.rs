//! How many objects a pod may refer to, and how much they may hold.
//!
//! Each is a watch on the API server for as long as the pod runs, and a spec has room for fifteen thousand optional ones that need not
//! even exist. Each is also held in memory, with up to 1 MiB.

use std::collections::BTreeSet;

use k8s_openapi::api::core::v1::Pod;

use super::env::Lookup;
use super::error::ConfigError;
use crate::ids::FullName;
use crate::pod::PodExt;
use crate::pod_certificate::certificate_sources;
use crate::references::{ObjectKind, references};
use crate::token;

/// ConfigMaps, Secrets, tokens and certificates of one pod.
const MOST_REFERENCES: usize = 512;
/// The bytes of all ConfigMaps and Secrets of one pod: as many as its volumes may hold.
const MOST_BYTES: usize = 64 * 1024 * 1024;

/// Refuses a pod that refers to too many objects, before any of them is asked for.
///
/// # Errors
/// When there are too many, with their number.
pub fn check_references(pod: &Pod) -> Result<(), ConfigError> {
    let references = references(pod);
    let objects: BTreeSet<_> =
        references.iter().map(|reference| (reference.kind, reference.name.as_str())).collect();
    let count = objects.len() + token::token_requests(pod).len() + certificate_sources(pod).len();
    match count > MOST_REFERENCES {
        true => Err(ConfigError::TooManyReferences { count, limit: MOST_REFERENCES }),
        false => Ok(()),
    }
}

/// Refuses a pod whose objects hold too much, so that nothing more is done with them.
///
/// # Errors
/// When they do, with their size and the largest of them.
pub fn check_object_bytes(pod: &Pod, lookup: &Lookup) -> Result<(), ConfigError> {
    let namespace = pod.full_name().namespace;
    let objects: BTreeSet<(ObjectKind, String)> =
        references(pod).into_iter().map(|reference| (reference.kind, reference.name)).collect();
    let sizes = objects.into_iter().map(|(kind, name)| {
        let full = FullName { name: name.clone(), namespace: namespace.clone() };
        (lookup.bytes_of(kind, &full), kind, name)
    });
    let sizes: Vec<_> = sizes.collect();
    let bytes = sizes.iter().map(|(bytes, ..)| bytes).sum();
    match sizes.into_iter().max() {
        Some((_, kind, name)) if bytes > MOST_BYTES => {
            let largest = format!("{} {name:?}", kind.as_str());
            Err(ConfigError::ObjectsTooLarge { bytes, limit: MOST_BYTES, largest })
        }
        Some(_) | None => Ok(()),
    }
}
