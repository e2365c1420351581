//! Checks the order of modules in `core`: one may use those of lower layers, never one of its own layer or a higher one.

use std::path::Path;

use anyhow::{Context, Result};
use cargo_metadata::Package;

use super::paths;

const CRATE: &str = "oarsman-core";

/// The top-level modules of `core`, lowest layer first. `docs/adr/0013-order-of-modules-in-core.md` says why.
const LAYERS: &[&[&str]] = &[
    // Values: names, numbers, times.
    &[
        "access",
        "duration",
        "exposition",
        "hash",
        "ids",
        "image_reference",
        "node_log_query",
        "pem",
        "quantity",
        "start_error",
        "time",
        "zpages",
    ],
    // What probes find, which reports tell too.
    &["probe"],
    // Single objects and single counters.
    &["certificates", "features", "healthz", "pod", "rate", "report", "requeue", "user_namespace"],
    // Parts of a pod's spec, and records about a pod.
    &[
        "backoff",
        "bandwidth",
        "disk_usage",
        "event",
        "labels",
        "log_request",
        "pod_certificate",
        "qos",
        "streaming_request",
        "token",
        "trust_bundle",
    ],
    // What a pod refers to.
    &["references"],
    // The desired state of a pod, and its state in the runtime.
    &["lifecycle", "queue", "resources", "sources", "view"],
    // Rules about one aspect of both.
    &[
        "active_pods",
        "api",
        "event_queue",
        "gc",
        "grace",
        "handler",
        "mirror",
        "node",
        "restart",
        "static_pod",
        "termination_message",
    ],
    // Actions on a pod's containers, their configuration, and what they use.
    &["actions", "admission", "cri_spec", "hook", "log_rotation", "stats"],
    // What the claims of a pod are bound to.
    &["persistent_volume"],
    // Results of actions, and the probes of what they started.
    &["image", "prober", "status", "volume_manager"],
    // Explanations for users.
    &["explain"],
];

/// Complaints about one source file of `core`; its tests are free.
pub(super) fn check(root: &Path, package: &Package, path: &Path) -> Result<Vec<String>> {
    let src = package.manifest_path.parent().context("a manifest has a directory")?.join("src");
    let Ok(file) = path.strip_prefix(&src) else {
        return Ok(Vec::new());
    };
    if package.name.as_str() != CRATE || paths::is_test(file) {
        return Ok(Vec::new());
    }
    let text = std::fs::read_to_string(path).with_context(|| path.display().to_string())?;
    let shown = path.strip_prefix(root).unwrap_or(path).display().to_string();
    Ok(complaints(&shown, file, &text)?)
}

/// Complaints about the text of one file, which lies at `file` below `src`.
pub(super) fn complaints(shown: &str, file: &Path, text: &str) -> syn::Result<Vec<String>> {
    let Some(own) = top_level(file) else {
        return Ok(Vec::new()); // lib.rs lists modules and uses none
    };
    let Some(own_layer) = layer(&own) else {
        return Ok(vec![format!(
            "{shown}: the module `{own}` has no layer; give it one in xtask/src/tidy/modules.rs"
        )]);
    };
    let mut complaints = Vec::new();
    for named in paths::of(file, text)? {
        let used = named.path.strip_prefix("crate::").and_then(|path| path.split("::").next());
        let Some((used, layer)) = used.and_then(|used| Some((used, layer(used)?))) else {
            continue;
        };
        if used != own && layer >= own_layer {
            complaints.push(format!(
                "{shown}:{}: `{own}` may not use `{used}`, which is not below it; \
                 move what both need further down (xtask/src/tidy/modules.rs has the order)",
                named.line
            ));
        }
    }
    complaints.dedup();
    Ok(complaints)
}

/// The top-level module that a file belongs to; none for the root of the crate.
fn top_level(file: &Path) -> Option<String> {
    let first = file.components().next()?.as_os_str();
    let name = Path::new(first).file_stem()?.to_string_lossy().into_owned();
    (name != "lib").then_some(name)
}

fn layer(module: &str) -> Option<usize> {
    LAYERS.iter().position(|layer| layer.contains(&module))
}
