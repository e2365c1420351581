//! The tables of `oarsman top`.

use oarsman_core::stats::StatsSummary;
use serde_json::json;

use super::*;

fn summary() -> StatsSummary {
    let time = "2026-01-01T00:00:00Z";
    let cpu = |nano_cores: u64| json!({ "time": time, "usageNanoCores": nano_cores });
    let memory =
        |bytes: u64| json!({ "time": time, "workingSetBytes": bytes, "availableBytes": 3 * bytes });
    let pod = |name: &str, namespace: &str, containers| {
        json!({
            "podRef": { "name": name, "namespace": namespace, "uid": name }, "containers": containers,
        })
    };
    serde_json::from_value(json!({
        "node": { "nodeName": "n1", "cpu": cpu(1_500_000_001), "memory": memory(3 << 20) },
        "pods": [
            pod("web", "default", json!([
                { "name": "main", "cpu": cpu(0), "memory": memory(1) },
                { "name": "proxy", "cpu": cpu(250_000_000), "memory": memory(64 << 20) },
            ])),
            pod("dns", "kube-system", json!([{ "name": "dns" }])),
        ],
    }))
    .unwrap()
}

#[test]
fn every_container_has_a_line() {
    let pods = summary().pods;
    let expected = "\
NAMESPACE     POD   CONTAINER   CPU(cores)   MEMORY(bytes)
default       web   main        0m           1Mi
default       web   proxy       250m         64Mi
kube-system   dns   dns         <unknown>    <unknown>
";
    assert_eq!(pod_table(&pods), expected);
    let expected = "\
POD   CONTAINER   CPU(cores)   MEMORY(bytes)
web   main        0m           1Mi
web   proxy       250m         64Mi
";
    assert_eq!(pod_table(&pods[..1]), expected);
    assert_eq!(pod_table(&[]), "No pods are here.\n");
}

#[test]
fn the_node_has_one_line() {
    let mut node = summary().node;
    let expected = "\
NODE   CPU(cores)   MEMORY(bytes)   MEMORY(%)
n1     1501m        3Mi             25%
";
    assert_eq!(node_table(&node), expected);
    node.memory = None;
    assert!(node_table(&node).contains("<unknown>"));
}
