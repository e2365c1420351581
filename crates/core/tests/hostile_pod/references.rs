//! Row C16: a pod that refers to more objects than anyone should watch.

use oarsman_core::cri_spec::check_references;
use serde_json::json;

use super::pod;

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
