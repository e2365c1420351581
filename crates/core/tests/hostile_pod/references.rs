//! Row C16: a pod that refers to more objects than anyone should watch.

use std::sync::Arc;

use oarsman_core::cri_spec::{Lookup, check_object_bytes, check_references};
use serde_json::json;

use super::{object, pod};

#[test]
fn a_pod_refers_to_so_many_objects_and_no_more() {
    let told = |count: usize| {
        let from = |n: usize| json!({ "configMapRef": { "name": format!("m{}", n % count), "optional": true } });
        let all: Vec<_> = (0..count * 2).map(from).collect();
        check_references(&pod(&json!({ "containers": [{ "name": "app", "envFrom": all }] })))
    };
    assert_eq!(told(512), Ok(()), "each is counted once");
    let refused = told(15_000).unwrap_err().to_string();
    assert!(refused.contains("15000") && refused.contains("512"), "{refused}");
}

/// Row H2 of docs/security.md.
#[test]
fn the_objects_of_a_pod_hold_so_much_and_no_more() {
    let refer = |n: usize| json!({ "configMapRef": { "name": format!("m{n}"), "optional": true } });
    let all: Vec<_> = (0..65).map(refer).collect();
    let pod = pod(&json!({ "containers": [{ "name": "app", "envFrom": all }] }));
    let data = |bytes: usize| serde_json::from_value(json!({ "data": { "k": "x".repeat(bytes) } }));
    let (whole, larger) = (Arc::new(data(1_000_000).unwrap()), Arc::new(data(5_000_000).unwrap()));
    let mut lookup = Lookup::default();
    for n in 0..65 {
        lookup.config_maps.insert(object(&format!("m{n}")), Arc::clone(&whole));
    }
    assert_eq!(check_object_bytes(&pod, &lookup), Ok(()));
    lookup.config_maps.insert(object("m7"), larger);
    let told = check_object_bytes(&pod, &lookup).unwrap_err().to_string();
    assert!(told.contains("ConfigMap \"m7\"") && told.contains("envFrom"), "{told}");
    lookup.config_maps.remove(&object("m7"));
    lookup.config_maps.insert(object("of-others"), Arc::new(data(60_000_000).unwrap()));
    assert_eq!(check_object_bytes(&pod, &lookup), Ok(()), "what it does not refer to");
}
