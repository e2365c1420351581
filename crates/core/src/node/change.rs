//! What differs between the object that the API server has and the one it should have.

use k8s_openapi::api::core::v1::{Node, NodeCondition};
use serde_json::{Map, Value, json};

use super::conditions;

/// Whether there is something to tell besides that the node still lives.
pub fn differs(before: &Node, after: &Node) -> bool {
    comparable(before) != comparable(after)
}

/// The object without what changes by itself, lists of conditions in one order.
fn comparable(node: &Node) -> Node {
    let mut node = node.clone();
    node.metadata.managed_fields = None;
    let status = node.status.get_or_insert_default();
    let conditions = status.conditions.get_or_insert_default();
    conditions.sort_by(|one, other| one.type_.cmp(&other.type_));
    for condition in conditions {
        condition.last_heartbeat_time = None;
    }
    for handler in status.runtime_handlers.iter_mut().flatten() {
        handler.name.get_or_insert_default();
    }
    for image in status.images.iter_mut().flatten() {
        image.names = image.names.take().filter(|names| !names.is_empty());
    }
    for map in [&mut node.metadata.labels, &mut node.metadata.annotations] {
        *map = map.take().filter(|map| !map.is_empty());
    }
    node
}

/// The patch, as a strategic merge patch of `nodes/status`, that makes the one into the other. It always holds the node's own
/// conditions whole: the API server may have others by now than those we know of.
pub fn patch(before: &Node, after: &Node) -> Value {
    let mut metadata = Map::new();
    let pairs = [
        ("labels", &before.metadata.labels, &after.metadata.labels),
        ("annotations", &before.metadata.annotations, &after.metadata.annotations),
    ];
    for (name, before, after) in pairs {
        let difference = difference(&json!(before.as_ref()), &json!(after.as_ref()));
        metadata.extend(difference.filter(Value::is_object).map(|map| (name.to_owned(), map)));
    }
    let mut patch = Map::from_iter([("status".to_owned(), status(before, after))]);
    if !metadata.is_empty() {
        patch.insert("metadata".to_owned(), metadata.into());
    }
    patch.into()
}

fn status(before: &Node, after: &Node) -> Value {
    let of = |node: &Node| {
        let mut status = node.status.clone().unwrap_or_default();
        let addresses = status.addresses.take().unwrap_or_default();
        (status.conditions.take().unwrap_or_default(), addresses, json!(status))
    };
    let ((_, addresses_before, before), (conditions, addresses, after)) = (of(before), of(after));
    let mut patch = match difference(&before, &after) {
        Some(Value::Object(map)) => map,
        _ => Map::new(),
    };
    patch.insert("conditions".to_owned(), json!(ours(conditions)));
    if addresses != addresses_before {
        let mut list: Vec<Value> = addresses.iter().map(|address| json!(address)).collect();
        // The list is merged by type, so that two addresses of one type could not be told apart.
        if !addresses_before.is_empty() {
            list.push(json!({"$patch": "replace"}));
        }
        patch.insert("addresses".to_owned(), list.into());
    }
    patch.into()
}

fn ours(conditions: Vec<NodeCondition>) -> Vec<NodeCondition> {
    let is_ours =
        |condition: &NodeCondition| conditions::types().any(|type_| type_ == condition.type_);
    conditions.into_iter().filter(is_ours).collect()
}

/// What has to be said to make the one into the other: maps key by key, all else whole, and nothing for what is gone.
fn difference(before: &Value, after: &Value) -> Option<Value> {
    match (before, after) {
        (Value::Object(before), Value::Object(after)) => {
            let gone = before.keys().filter(|key| !after.contains_key(*key));
            let gone = gone.map(|key| (key.clone(), Value::Null));
            let changed = after.iter().filter_map(|(key, value)| {
                let old = before.get(key).unwrap_or(&Value::Null);
                difference(old, value).map(|value| (key.clone(), value))
            });
            let map: Map<String, Value> = gone.chain(changed).collect();
            (!map.is_empty()).then_some(Value::Object(map))
        }
        (before, after) => (before != after).then(|| after.clone()),
    }
}
