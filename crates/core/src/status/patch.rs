//! What to send so that the API server's copy of a status becomes ours: a strategic merge patch of what differs.
//!
//! The API merges conditions by type and addresses by address, so that what is to go must be named; the lists of containers it takes
//! as a whole. What others set is equal on both sides after [`super::merge::merge`], and therefore never sent.

use k8s_openapi::api::core::v1::PodStatus;
use serde_json::{Map, Value, json};

use super::normalise;

#[cfg(test)]
mod tests;

type Fields = Map<String, Value>;

/// Lists that the API merges by `ip`, each with the field that repeats its first entry. The API server wants the two to agree, so
/// they are said together.
const ADDRESSES: [(&str, &str); 2] = [("hostIPs", "hostIP"), ("podIPs", "podIP")];

/// The `status` of a patch that makes `known` into `wanted`; none when there is nothing to change.
///
/// # Errors
/// When a status cannot be said in JSON.
pub fn patch(known: &PodStatus, wanted: &PodStatus) -> serde_json::Result<Option<Value>> {
    let (known, wanted) = (fields(known)?, fields(wanted)?);
    let mut patch = Fields::new();
    let keys = known.keys().chain(wanted.keys().filter(|key| !known.contains_key(*key)));
    for key in keys.filter(|key| known.get(*key) != wanted.get(*key)) {
        patch.insert(key.clone(), wanted.get(key).cloned().unwrap_or(Value::Null));
    }
    for (list, first) in ADDRESSES {
        if patch.contains_key(list) || patch.contains_key(first) {
            patch.insert(first.to_owned(), wanted.get(first).cloned().unwrap_or(Value::Null));
            patch.insert(list.to_owned(), wanted.get(list).map_or(Value::Null, replaced));
        }
    }
    if patch.remove("conditions").is_some() {
        let changed = conditions(entries(&known), entries(&wanted));
        if !changed.is_empty() {
            patch.insert("conditions".to_owned(), Value::Array(changed));
        }
    }
    Ok(Some(patch).filter(|patch| !patch.is_empty()).map(Value::Object))
}

/// A status as the API server keeps it: whole seconds, and nothing empty.
fn fields(status: &PodStatus) -> serde_json::Result<Fields> {
    let mut status = status.clone();
    normalise::truncate_times(&mut status);
    let Value::Object(mut fields) = serde_json::to_value(&status)? else {
        return Ok(Fields::new());
    };
    fields.retain(|_, value| !is_empty(value));
    Ok(fields)
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::String(text) => text.is_empty(),
        Value::Array(list) => list.is_empty(),
        Value::Bool(_) | Value::Number(_) | Value::Object(_) => false,
    }
}

/// The list instead of what is there, whatever that is.
fn replaced(list: &Value) -> Value {
    let entries = list.as_array().into_iter().flatten().cloned();
    Value::Array(std::iter::once(json!({ "$patch": "replace" })).chain(entries).collect())
}

fn entries(status: &Fields) -> &[Value] {
    status.get("conditions").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
}

/// Conditions that are new or others than they were, then those that go.
fn conditions(known: &[Value], wanted: &[Value]) -> Vec<Value> {
    let find = |list: &'_ [Value], like: &Value| {
        list.iter().find(|entry| entry.get("type") == like.get("type")).cloned()
    };
    let news = wanted.iter().filter_map(|new| {
        let old = find(known, new);
        (old.as_ref() != Some(new)).then(|| over(old.as_ref(), new))
    });
    let gone = known.iter().filter(|old| find(wanted, old).is_none());
    let gone = gone.map(|old| json!({ "$patch": "delete", "type": old.get("type") }));
    news.chain(gone).collect()
}

/// A condition over the one that is there: what it had and has no more is said to be nothing.
fn over(old: Option<&Value>, new: &Value) -> Value {
    let mut patched = new.clone();
    if let (Some(old), Some(patched)) = (old.and_then(Value::as_object), patched.as_object_mut()) {
        for key in old.keys() {
            patched.entry(key.clone()).or_insert(Value::Null);
        }
    }
    patched
}
