//! Rows of pod states and their lines.

use jiff::SignedDuration;
use k8s_openapi::api::core::v1::Pod;
use oarsman_core::report::{PodActivity, TrafficObstacle};
use serde_json::{Value, json};

use super::*;

fn node() -> NodeReport {
    let now = Timestamp::UNIX_EPOCH + SignedDuration::from_secs(1_000);
    NodeReport { now, is_run_mode: true, ..NodeReport::default() }
}

fn pod(stage: StageReport, what: Option<Activity>, status: &Value) -> PodReport {
    let spec = json!({ "containers": [{ "name": "main", "image": "i" }] });
    let metadata = json!({ "name": "web", "namespace": "default" });
    let pod = json!({ "metadata": metadata, "spec": spec, "status": status });
    let pod: Pod = serde_json::from_value(pod).unwrap();
    let since = node().now - SignedDuration::from_secs(3);
    let doing = what.map(|what| PodActivity { what, container: None, since });
    PodReport { pod, stage, doing, ..PodReport::default() }
}

fn container(state: &Value, restarts: i32) -> Value {
    json!({ "name": "main", "image": "i", "imageID": "", "ready": state.get("running").is_some(),
        "started": true, "restartCount": restarts, "state": state })
}

fn running(restarts: i32) -> Value {
    let state = json!({ "running": { "startedAt": "1970-01-01T00:10:00Z" } });
    json!({ "phase": "Running", "podIP": "10.0.0.2", "containerStatuses": [container(&state, restarts)],
        "conditions": [{ "type": "Ready", "status": "True" }] })
}

#[test]
fn a_line_has_the_operation_under_way_or_the_state() {
    use StageReport::{Finished, Syncing, Terminating, Waiting};
    let pulling = || Some(Activity::Pulling("busybox".to_owned()));
    let none = json!({ "phase": "Pending" });
    let rows = [
        (
            pod(Waiting, None, &none),
            "waiting until the pod of its name is gone",
            PodCondition::InProgress,
        ),
        (pod(Syncing, pulling(), &none), "pulling busybox for 3 s", PodCondition::InProgress),
        (
            pod(Syncing, Some(Activity::MakingSandbox), &none),
            "starting for 3 s",
            PodCondition::InProgress,
        ),
        (pod(Syncing, None, &none), "starting", PodCondition::InProgress),
        (pod(Syncing, None, &running(0)), "running at 10.0.0.2", PodCondition::Healthy),
        (
            pod(Syncing, None, &running(2)),
            "running at 10.0.0.2, after 2 restarts",
            PodCondition::Healthy,
        ),
        (
            pod(Terminating, Some(Activity::PreStop), &running(0)),
            "stopping: its preStop hook runs for 3 s",
            PodCondition::InProgress,
        ),
        (pod(Finished, None, &json!({ "phase": "Succeeded" })), "done", PodCondition::Healthy),
    ];
    for (pod, want, condition) in rows {
        let line = line(&node(), &pod);
        assert_eq!((line.text.as_str(), line.condition), (want, condition), "{pod:?}");
        assert_eq!(line.pod, "web");
    }
}

#[test]
fn a_pod_that_runs_has_its_address_with_the_ports_that_it_names() {
    let with_ports = |ip: &str, ports: &Value| {
        let mut status = running(0);
        status["podIP"] = ip.into();
        let mut pod = pod(StageReport::Syncing, None, &status);
        let spec = json!({ "containers": [{ "name": "main", "image": "i", "ports": ports }] });
        pod.pod.spec = serde_json::from_value(spec).unwrap();
        pod
    };
    let http = json!([{ "containerPort": 8080 }, { "containerPort": 53, "protocol": "UDP" }]);
    let two = json!([{ "containerPort": 80 }, { "containerPort": 443 }]);
    for (ip, ports, want) in [
        ("10.0.0.2", &http, "running at 10.0.0.2:8080"),
        ("fd00::2", &http, "running at [fd00::2]:8080"),
        ("10.0.0.2", &two, "running at 10.0.0.2, ports 80, 443"),
        ("10.0.0.2", &json!([]), "running at 10.0.0.2"),
    ] {
        assert_eq!(line(&node(), &with_ports(ip, ports)).text, want);
    }
}

#[test]
fn a_firewall_that_drops_is_told_beside_the_address() {
    let mut node = node();
    let (problem, fix) = ("a firewall drops".to_owned(), "allow".to_owned());
    node.runtime.traffic_obstacle = Some(TrafficObstacle { problem, fix });
    let line = line(&node, &pod(StageReport::Syncing, None, &running(0)));
    assert_eq!(line.condition, PodCondition::Failing);
    let want = "running at 10.0.0.2; a firewall drops its packets: oarsman explain web";
    assert_eq!(line.stable_text, want);
}

#[test]
fn a_remaining_wait_is_printed_once_and_a_restart_again() {
    let crashed = |restarts| {
        let state =
            json!({ "waiting": { "reason": "CrashLoopBackOff", "message": "back-off 10s" } });
        let mut container = container(&state, restarts);
        container["lastState"] = json!({ "terminated": { "exitCode": 3,
            "finishedAt": "1970-01-01T00:16:00Z", "startedAt": "1970-01-01T00:16:00Z" } });
        let status = json!({ "phase": "Running", "containerStatuses": [container] });
        let next_try = Some(node().now + SignedDuration::from_secs(9));
        PodReport { next_try, ..pod(StageReport::Syncing, None, &status) }
    };
    let later = NodeReport { now: node().now + SignedDuration::from_secs(2), ..node() };
    let (first, second) = (line(&node(), &crashed(1)), line(&later, &crashed(1)));
    assert_eq!(first.condition, PodCondition::Failing);
    assert!(first.text.contains("exit code 3"), "{}", first.text);
    assert_ne!(first.text, second.text, "the seconds are counted");
    assert_eq!(first.key, second.key);
    assert_ne!(first.key, line(&node(), &crashed(2)).key);
}
