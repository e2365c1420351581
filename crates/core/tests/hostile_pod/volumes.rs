//! Row C1: files of volumes that are made of one object again and again.

use std::sync::Arc;

use oarsman_core::cri_spec::{Lookup, Payloads, payloads};
use serde_json::{Value, json};

use super::{object, on_a_node, pod};

/// The files of a pod with these volumes, or what is wrong with the first that cannot be made.
fn made(mut volumes: Vec<Value>, bytes: usize) -> Result<Payloads, String> {
    for (n, volume) in volumes.iter_mut().enumerate() {
        volume["name"] = json!(format!("v{n}"));
    }
    let mount = |volume: &Value| json!({ "name": volume["name"], "mountPath": "/v" });
    let mounts: Vec<_> = volumes.iter().map(mount).collect();
    let containers = json!([{ "name": "app", "volumeMounts": mounts }]);
    let pod = pod(&json!({ "containers": containers, "volumes": volumes }));
    let map = json!({ "data": { "key": "x".repeat(bytes) } });
    let mut lookup = Lookup::default();
    lookup.config_maps.insert(object("big"), Arc::new(serde_json::from_value(map).unwrap()));
    let (payloads, faults) = on_a_node(|node| payloads(&pod, &lookup, node));
    faults.first().map_or(Ok(payloads), |fault| Err(fault.to_string()))
}

/// A volume with so many files of one key.
fn items(count: usize) -> Value {
    let item = |n: usize| json!({ "key": "key", "path": format!("file-{n}") });
    let items: Vec<_> = (0..count).map(item).collect();
    json!({ "configMap": { "name": "big", "items": items } })
}

#[test]
fn ten_thousand_items_of_one_key_of_1_mib_are_refused() {
    let told = made(vec![items(10_000)], 1 << 20).unwrap_err();
    assert!(told.contains("\"v0\"") && told.contains("67108864"), "{told}");
}

#[test]
fn ten_thousand_items_of_one_key_cost_one_key() {
    let made = made(vec![items(10_000)], 6 << 10).unwrap();
    let files = &made["v0"];
    let first = files.values().next().unwrap().bytes.as_ptr();
    assert_eq!(files.len(), 10_000);
    assert!(files.values().all(|file| file.bytes.as_ptr() == first));
}

#[test]
fn the_limits_are_those_of_all_volumes_of_a_pod_together() {
    let volumes = vec![items(30); 4];
    let told = made(volumes, 1 << 20).unwrap_err();
    assert!(told.contains("\"v2\"") && told.contains("67108864"), "{told}");
    let source = |n: usize| json!({ "configMap": { "name": "big", "items": [{ "key": "key", "path": format!("f{n}") }] } });
    let sources: Vec<_> = (0..1000).map(source).collect();
    let told = made(vec![json!({ "projected": { "sources": sources } })], 1 << 20).unwrap_err();
    assert!(told.contains("\"v0\"") && told.contains("67108864"), "{told}");
}

#[test]
fn a_pod_has_so_many_files_and_no_more() {
    assert!(made(vec![items(16_384)], 1).is_ok());
    let told = made(vec![items(16_385)], 1).unwrap_err();
    assert!(told.contains("\"v0\"") && told.contains("16384"), "{told}");
}
