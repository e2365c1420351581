//! From a manifest to a pod of this node.

use std::panic::{AssertUnwindSafe, catch_unwind};

use k8s_openapi::api::core::v1::Pod;
use oarsman_core::api::decode::{Decoded, decode_pod};
use oarsman_core::api::defaults::set_defaults;
use oarsman_core::api::validate::validate_pod;
use oarsman_core::static_pod::{Given, Origin, check_references, prepare};
use serde_json::Value;

/// A pod and what its manifest says besides.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Readable {
    pub(super) pod: Pod,
    /// Fields that no pod has.
    pub(super) unknown_fields: Vec<String>,
}

/// Makes a manifest a pod of this node, with defaults, checked; or says why not, and what to do about it.
pub(super) fn pod(manifest: Value, origin: &Origin, node: &str) -> Result<Readable, String> {
    let Decoded { pod, unknown_fields } = decode_pod(manifest).map_err(|e| said(&e))?;
    let mut pod = prepare(pod, origin, node).map_err(|e| said(&e))?;
    set_defaults(&mut pod);
    let wrong: Vec<String> = validate_pod(&pod).iter().map(said).collect();
    if !wrong.is_empty() {
        return Err(format!("the pod is not valid: {}; correct these fields", wrong.join("; ")));
    }
    check_references(&pod, &Given::default())
        .map_err(|e| format!("{e}: only an API server has them; take that out of the pod"))?;
    Ok(Readable { pod, unknown_fields })
}

/// A manifest that makes the reader itself fail is one broken manifest, and the others do not suffer for it.
pub(super) fn unharmed<T>(read: impl FnOnce() -> Result<T, String>) -> Result<T, String> {
    let fallen = |_| Err("reading it failed in an unforeseen way; please report it".to_owned());
    catch_unwind(AssertUnwindSafe(read)).unwrap_or_else(fallen)
}

fn said(error: &impl ToString) -> String {
    error.to_string()
}
