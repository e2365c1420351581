//! The table, the wide table and the JSON list of pods.

use oarsman_core::report::{BrokenManifest, OngoingError, RuntimeReport};
use serde_json::{Value, json};

use super::*;

fn node(pods: &[Value]) -> NodeReport {
    let pods = pods.iter().map(|pod| PodReport {
        pod: serde_json::from_value(pod.clone()).unwrap(),
        place: Some("/m/web.yaml".to_owned()),
        ..PodReport::default()
    });
    let now = "2026-01-01T01:00:00Z".parse().unwrap();
    NodeReport { node: "node".to_owned(), now, pods: pods.collect(), ..NodeReport::default() }
}

fn pod(namespace: &str, name: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": { "name": name, "namespace": namespace, "uid": "0123456789abcdef" },
        "spec": { "containers": [{ "name": "a", "image": "web:1" }] },
        "status": {
            "phase": "Running", "podIP": "10.0.0.2", "startTime": "2026-01-01T00:50:00Z",
            "containerStatuses": [{
                "name": "a", "ready": true, "restartCount": 2, "image": "", "imageID": "",
                "state": { "running": {} },
                "lastState": { "terminated": { "exitCode": 1, "finishedAt": "2026-01-01T00:55:00Z" } },
            }],
        },
    })
}

fn plain(node: &NodeReport, wide: bool) -> String {
    let pods: Vec<&PodReport> = node.pods.iter().collect();
    anstream::adapter::strip_str(&as_table(node, &pods, wide)).to_string()
}

#[test]
fn the_table_of_pods_has_the_columns_of_kubectl() {
    let want = "\
NAME       READY   STATUS    RESTARTS     AGE
web-node   1/1     Running   2 (5m ago)   10m
";
    assert_eq!(plain(&node(&[pod("default", "web-node")]), false), want);
}

#[test]
fn the_namespace_column_is_shown_with_pods_outside_of_default() {
    let text = plain(&node(&[pod("default", "a"), pod("other", "b")]), false);
    assert!(text.starts_with("NAMESPACE   NAME   READY"), "{text}");
    assert!(text.contains("\nother       b      1/1"), "{text}");
}

#[test]
fn the_wide_table_has_more_columns() {
    let text = plain(&node(&[pod("default", "web-node")]), true);
    let rest = text.lines().nth(1).unwrap().split("10m").nth(1).unwrap().to_owned();
    let words: Vec<&str> = rest.split_whitespace().collect();
    assert_eq!(words, ["10.0.0.2", "node", "01234567", "/m/web.yaml", "web:1"]);
}

#[test]
fn problems_of_the_node_are_printed_below_the_table_even_without_pods() {
    let broken = |place: &str, goes_on| BrokenManifest {
        place: place.to_owned(),
        why: "it is none".to_owned(),
        goes_on,
    };
    let trouble =
        OngoingError { since: "2026-01-01T00:59:00Z".parse().unwrap(), why: "gone".to_owned() };
    let runtime = RuntimeReport {
        endpoint: "unix:///r".to_owned(),
        trouble: Some(trouble),
        ..RuntimeReport::default()
    };
    let node = NodeReport {
        broken: vec![broken("/m/a", true), broken("/m/b", false)],
        runtime,
        ..node(&[])
    };
    let want = "\
No pods are here.

The runtime at unix:///r has not answered for 60s: gone

/m/a: it is none (its pod goes on as it was)

/m/b: it is none (no pod comes of it)
";
    assert_eq!(plain(&node, false), want);
}

#[test]
fn programs_read_a_list_of_pods() {
    let node = node(&[pod("default", "web-node")]);
    let pods: Vec<&PodReport> = node.pods.iter().collect();
    let json = list(&pods, OutputFormat::Json).unwrap();
    let read: List<Pod> = serde_json::from_str(&json).unwrap();
    assert_eq!(read.items[0], node.pods[0].pod);
    let fields: Value = serde_json::from_str(&json).unwrap();
    assert_eq!((&fields["kind"], &fields["items"][0]["kind"]), (&json!("PodList"), &json!("Pod")));
    let yaml = list(&pods, OutputFormat::Yaml).unwrap();
    let read: Value = serde_saphyr::from_str(&yaml).unwrap();
    assert_eq!(read, fields);
}
