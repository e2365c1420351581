//! What a document says it is, and what to do with one that is something else.

use serde_json::Value;

use crate::sources::manifest_reader::with_kind;

/// What can be run, or used by what runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ManifestKind {
    Pod,
    ConfigMap,
    Secret,
}

/// Kinds that hold a pod to be copied, and where.
const WORKLOADS: [(&str, &str); 7] = [
    ("CronJob", "spec.jobTemplate.spec.template"),
    ("DaemonSet", "spec.template"),
    ("Deployment", "spec.template"),
    ("Job", "spec.template"),
    ("ReplicaSet", "spec.template"),
    ("ReplicationController", "spec.template"),
    ("StatefulSet", "spec.template"),
];

/// Which kind a document is.
pub(super) fn of(document: &Value) -> Result<ManifestKind, String> {
    let text = |field: &str| document.get(field).and_then(Value::as_str).unwrap_or_default();
    let (api_version, name) = (text("apiVersion"), text("kind"));
    let kind = match name {
        "" if document.is_object() => return Err(required_field("kind")),
        "" => {
            let start = "apiVersion: v1, kind: Pod, metadata and spec";
            return Err(format!("it is not a map of fields: a manifest begins with {start}"));
        }
        "Pod" => ManifestKind::Pod,
        "ConfigMap" => ManifestKind::ConfigMap,
        "Secret" => ManifestKind::Secret,
        other => return Err(misspelled_kind(other).unwrap_or_else(|| unsupported_kind(other))),
    };
    match api_version {
        "v1" => Ok(kind),
        "" => Err(required_field("apiVersion")),
        other => Err(format!("apiVersion: a {name} has v1, not {other:?}: write apiVersion: v1")),
    }
}

fn required_field(field: &str) -> String {
    let value = if field == "kind" { "Pod (or ConfigMap, Secret)" } else { "v1" };
    format!("{field}: Required value: write {field}: {value}")
}

fn misspelled_kind(kind: &str) -> Option<String> {
    let meant = ["Pod", "ConfigMap", "Secret"];
    let meant = meant.into_iter().find(|meant| {
        kind.eq_ignore_ascii_case(meant) || kind.eq_ignore_ascii_case(&format!("{meant}s"))
    });
    meant.map(|meant| format!("kind: it is spelled {meant}, not {kind:?}: write kind: {meant}"))
}

fn unsupported_kind(kind: &str) -> String {
    match WORKLOADS.iter().find(|(workload, _)| *workload == kind) {
        Some((_, template)) => format!(
            "kind: a {kind} makes pods by way of a cluster, and only Pods are run here: copy its {template} into a Pod (apiVersion: v1, kind: Pod, with a metadata.name)"
        ),
        None => format!(
            "kind: {kind:?} is nothing that is run here, only Pods with their ConfigMaps and Secrets are: take it out"
        ),
    }
}

/// Every document with its place; items of lists one by one.
pub(super) fn unfold(place: &str, documents: Vec<Value>) -> Vec<(String, Value)> {
    let several = documents.len() > 1;
    let mut found = Vec::new();
    for (number, document) in (1..).zip(documents) {
        let place = if several { format!("{place}, document {number}") } else { place.to_owned() };
        found.extend(items(&place, document));
    }
    found
}

fn items(place: &str, mut document: Value) -> Vec<(String, Value)> {
    let item_kind = document["kind"].as_str().and_then(|kind| kind.strip_suffix("List"));
    let Some(item_kind) = item_kind.filter(|_| document["apiVersion"] == "v1") else {
        return vec![(place.to_owned(), document)];
    };
    let item_kind = item_kind.to_owned();
    let Some(Value::Array(items)) = document.get_mut("items").map(Value::take) else {
        return Vec::new();
    };
    let numbered = |(number, item): (usize, Value)| {
        // Items of a plain List have their own kind.
        let item = if item_kind.is_empty() { item } else { with_kind(item, &item_kind) };
        (format!("{place}, item {number}"), item)
    };
    (1..).zip(items).map(numbered).collect()
}
