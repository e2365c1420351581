//! Row C1 of docs/security.md: how much memory the agent takes for a pod whose author wants it to take all.
//!
//! The one test of its own process: the kernel counts the memory of a process, not that of a test.
#![expect(clippy::unwrap_used, reason = "a test may panic, also in its helpers")]

use std::fs;
use std::path::Path;
use std::sync::Arc;

use k8s_openapi::api::core::v1::Pod;
use oarsman_core::cri_spec::{
    ContainerConfigRequest, ContainerHostPaths, ImageUser, Lookup, NameFiles, NodeContext,
    NodeSettings, PodGrants, generate_container_config, payloads,
};
use oarsman_core::ids::FullName;
use oarsman_core::node::NodeFacts;
use serde_json::{Value, json};

const ALLOWED: u64 = 64 << 20;

/// The greatest resident size of this process so far, in bytes.
fn peak() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() * 1024
}

fn doubling() -> Vec<Value> {
    let double =
        |n: usize| json!({ "name": format!("A{n}"), "value": format!("$(A{0})$(A{0})", n - 1) });
    let first = json!({ "name": "A0", "value": "0123456789abcdef" });
    [first].into_iter().chain((1..=40).map(double)).collect()
}

fn hostile_pod() -> Pod {
    let item = |n: usize| json!({ "key": "key", "path": format!("file-{n}") });
    let items: Vec<_> = (0..10_000).map(item).collect();
    let mounts = json!([{ "name": "v", "mountPath": "/v" }]);
    let app = json!({ "name": "app", "env": doubling(), "volumeMounts": mounts });
    let volume = json!({ "name": "v", "configMap": { "name": "big", "items": items } });
    let spec = json!({ "containers": [app], "volumes": [volume] });
    let metadata = json!({ "name": "hostile", "namespace": "tenant", "uid": "u" });
    serde_json::from_value(json!({ "metadata": metadata, "spec": spec })).unwrap()
}

/// A config map `big` with one key of so many bytes.
fn objects(bytes: usize) -> Lookup {
    let map = json!({ "data": { "key": "x".repeat(bytes) } });
    let name = FullName { name: "big".to_owned(), namespace: "tenant".to_owned() };
    let mut lookup = Lookup::default();
    lookup.config_maps.insert(name, Arc::new(serde_json::from_value(map).unwrap()));
    lookup
}

#[test]
fn a_hostile_pod_takes_less_than_64_mib() {
    let (facts, settings) = (NodeFacts::default(), NodeSettings::of_memory(1 << 30));
    let (root, pod_logs) = ("/var/lib/kubelet", Path::new("/var/log/pods"));
    let node = &NodeContext {
        root,
        pod_logs,
        facts: &facts,
        settings: &settings,
        name_files: &NameFiles::default(),
    };
    let (pod, one_mib, small) = (hostile_pod(), objects(1 << 20), objects(6 << 10));
    let before = peak();

    let made = generate_container_config(&ContainerConfigRequest {
        pod: &pod,
        spec: &pod.spec.as_ref().unwrap().containers[0],
        restart_count: 0,
        image: "sha256:0",
        image_user: &ImageUser::default(),
        ips: &[],
        target: None,
        host_paths: &ContainerHostPaths::default(),
        lookup: &one_mib,
        grants: &PodGrants::default(),
        node,
    });
    assert!(made.is_err(), "a value that doubles forty times was expanded");
    let doubled = peak();
    assert!(doubled - before < ALLOWED, "variables took {} MiB", (doubled - before) >> 20);

    let (_, faults) = payloads(&pod, &one_mib, node);
    assert_eq!(faults.len(), 1, "10,000 files of 1 MiB are allowed");
    let (made, _) = payloads(&pod, &small, node);
    assert_eq!(made["v"].len(), 10_000, "60 MiB in 10,000 files are allowed");
    let after = peak();
    assert!(after - doubled < ALLOWED / 4, "files took {} MiB", (after - doubled) >> 20);
}
