//! Applies a strategic merge patch to a Node object.

use k8s_openapi::api::core::v1::Node;
use serde_json::{Map, Value, json};

/// Lists of a status that are merged by the type of their items; all others are replaced.
const BY_TYPE: [&str; 2] = ["addresses", "conditions"];

/// The object after the patch.
pub(super) fn patched(node: &Node, patch: &Value) -> Result<Node, String> {
    let mut object = json!(node);
    merge(&mut object, patch);
    serde_json::from_value(object).map_err(|error| error.to_string())
}

fn merge(target: &mut Value, patch: &Value) {
    let Value::Object(patch) = patch else {
        *target = patch.clone();
        return;
    };
    if !target.is_object() {
        *target = Map::new().into();
    }
    let Value::Object(target) = target else { return };
    for (key, value) in patch {
        let old = target.entry(key.clone()).or_insert(Value::Null);
        match value {
            Value::Array(items) if BY_TYPE.contains(&key.as_str()) => merge_list(old, items),
            value => merge(old, value),
        }
    }
    target.retain(|_, value| !value.is_null());
}

/// Items of the same type are merged, each in turn; `$patch: replace` drops the old items.
fn merge_list(target: &mut Value, items: &[Value]) {
    let is_order = |item: &&Value| item.get("$patch").is_some();
    let replaces = items.iter().any(|item| is_order(&item));
    let mut list = target.as_array().cloned().filter(|_| !replaces).unwrap_or_default();
    for item in items.iter().filter(|item| !is_order(item)) {
        let same = |old: &&mut Value| !replaces && old.get("type") == item.get("type");
        match list.iter_mut().find(same) {
            Some(old) => merge(old, item),
            None => list.push(item.clone()),
        }
    }
    *target = list.into();
}
