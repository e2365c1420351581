//! Row C18: what of a pod goes to the runtime and comes back with every list.

use std::collections::BTreeMap;

use oarsman_core::labels::{
    MESSAGE_PATH_ANNOTATION, PORTS_ANNOTATION, PRE_STOP_ANNOTATION, container_annotations,
    sandbox_annotations, sandbox_labels,
};
use serde_json::json;

use super::pod;

fn size(texts: &BTreeMap<String, String>) -> usize {
    texts.iter().map(|(name, value)| name.len() + value.len()).sum()
}

/// 256 sandboxes of such pods fit into the 16 MiB that a list may have.
#[test]
fn annotations_and_labels_of_a_sandbox_are_bounded_and_the_small_ones_stay() {
    let mut pod = pod(&json!({ "containers": [] }));
    let huge = ["a", "m", "z"].map(|name| (format!("huge/{name}"), "x".repeat(80 << 10)));
    let small = (0..100).map(|n| (format!("small/{n}"), "value".to_owned()));
    pod.metadata.annotations = Some(small.clone().chain(huge).collect());
    let label = |n: usize| (format!("label-{n}"), "y".repeat(63));
    pod.metadata.labels = Some((0..10_000).map(label).collect());

    let annotations = sandbox_annotations(&pod);
    assert!(size(&annotations) <= 32 << 10, "{}", size(&annotations));
    assert!(small.into_iter().all(|(name, value)| annotations.get(&name) == Some(&value)));
    let labels = sandbox_labels(&pod);
    assert!(size(&labels) <= 33 << 10, "{}", size(&labels));
    assert_eq!(labels["io.kubernetes.pod.name"], "hostile");
}

#[test]
fn an_ordinary_pod_keeps_all_of_them() {
    let mut pod = pod(&json!({ "containers": [] }));
    let applied =
        ("kubectl.kubernetes.io/last-applied-configuration".to_owned(), "x".repeat(20_000));
    pod.metadata.annotations = Some([applied, ("a".to_owned(), "b".to_owned())].into());
    assert_eq!(Some(sandbox_annotations(&pod)), pod.metadata.annotations);
}

#[test]
fn annotations_of_a_container_are_bounded() {
    let port = |n: usize| json!({ "containerPort": n, "name": format!("port-{n}") });
    let ports: Vec<_> = (0..5000).map(port).collect();
    let hook = json!({ "exec": { "command": ["sh", "-c", "x".repeat(1 << 20)] } });
    let app = json!({
        "name": "app", "ports": ports, "lifecycle": { "preStop": hook },
        "terminationMessagePath": format!("/{}", "m".repeat(1 << 20)),
    });
    let pod = pod(&json!({ "containers": [app] }));
    let spec = &pod.spec.as_ref().unwrap().containers[0];
    let annotations = container_annotations(&pod, spec, 0, BTreeMap::new());
    assert!(size(&annotations) <= 1 << 10, "{}", size(&annotations));
    for left_out in [PORTS_ANNOTATION, PRE_STOP_ANNOTATION, MESSAGE_PATH_ANNOTATION] {
        assert_eq!(annotations.get(left_out), None, "{left_out}");
    }
}
