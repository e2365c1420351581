//! Reduces the server's response to what is stored.

use anyhow::{Context, Result, bail};
use serde_json::{Map, Value, json};

use super::server::ServerResponse;

/// A response as it is stored.
pub(super) struct GoldenAnswer {
    pub(super) text: String,
    pub(super) summary: String,
}

/// The defaulted pod, or why it was refused, without what differs from run to run.
pub(super) fn to_golden(said: &ServerResponse) -> Result<GoldenAnswer> {
    let body: Value = serde_json::from_str(&said.body)
        .with_context(|| format!("the server said {} and no JSON", said.status))?;
    let (kept, summary) = match said.status {
        201 => (json!({ "accepted": trim(body) }), "accepted".to_owned()),
        422 => refusal(&body)?,
        400 => undecodable(&body)?,
        other => bail!("the server said {other}: {}", said.body),
    };
    let text = serde_json::to_string_pretty(&kept)? + "\n";
    Ok(GoldenAnswer { text, summary })
}

fn trim(mut pod: Value) -> Value {
    if let Some(metadata) = pod.get_mut("metadata").and_then(Value::as_object_mut) {
        for field in ["uid", "creationTimestamp", "managedFields"] {
            metadata.remove(field);
        }
    }
    let conditions = pod.pointer_mut("/status/conditions").and_then(Value::as_array_mut);
    for condition in conditions.into_iter().flatten().filter_map(Value::as_object_mut) {
        condition.remove("lastTransitionTime");
    }
    remove_nulls(&mut pod);
    pod
}

/// A null means the same as an absent field, and which of them is written depends on the server's own types.
fn remove_nulls(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            fields.retain(|_, field| !field.is_null());
            fields.values_mut().for_each(remove_nulls);
        }
        Value::Array(items) => items.iter_mut().for_each(remove_nulls),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn refusal(body: &Value) -> Result<(Value, String)> {
    let causes = body.pointer("/details/causes").and_then(Value::as_array);
    let mut causes = causes.context("the refusal names no causes")?.clone();
    // The server iterates over maps, so the order of its causes is not the same every time.
    causes.sort_by_key(|cause| cause.to_string());
    let summary = format!("refused, {} causes", causes.len());
    Ok((json!({ "refused": causes }), summary))
}

fn undecodable(body: &Value) -> Result<(Value, String)> {
    let message = body.get("message").and_then(Value::as_str);
    let message = message.context("the refusal has no message")?;
    let kept = Map::from_iter([("undecodable".to_owned(), json!(message))]);
    Ok((Value::Object(kept), "undecodable".to_owned()))
}
