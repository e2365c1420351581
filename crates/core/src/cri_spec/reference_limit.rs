//! How many objects a pod may refer to.
//!
//! Each is a watch on the API server for as long as the pod runs, and a spec has room for fifteen thousand optional ones that need not
//! even exist.

use std::collections::BTreeSet;

use k8s_openapi::api::core::v1::Pod;

use super::error::ConfigError;
use crate::references::references;
use crate::token;

/// ConfigMaps, Secrets and tokens of one pod.
const MOST_REFERENCES: usize = 512;

/// Refuses a pod that refers to too many objects, before any of them is asked for.
///
/// # Errors
/// When there are too many, with their number.
pub fn check_references(pod: &Pod) -> Result<(), ConfigError> {
    let references = references(pod);
    let objects: BTreeSet<_> =
        references.iter().map(|reference| (reference.kind, reference.name.as_str())).collect();
    let count = objects.len() + token::token_requests(pod).len();
    match count > MOST_REFERENCES {
        true => Err(ConfigError::TooManyReferences { count, limit: MOST_REFERENCES }),
        false => Ok(()),
    }
}
