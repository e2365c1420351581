//! Describes one pod that has every field, and one that has none.

use oarsman_core::report::PodActivity;
use serde_json::json;

use super::*;

fn node() -> NodeReport {
    let pod = json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {
            "name": "web-node", "namespace": "default", "uid": "u1", "labels": { "app": "web", "tier": "x" },
        },
        "spec": {
            "containers": [{
                "name": "main", "image": "web:1", "args": ["serve", "--all"],
                "ports": [{ "containerPort": 80 }],
                "env": [
                    { "name": "A", "value": "b" },
                    { "name": "P", "valueFrom": { "secretKeyRef": { "name": "s", "key": "k" } } },
                ],
                "resources": { "limits": { "cpu": "1", "memory": "64Mi" } },
                "volumeMounts": [{ "name": "data", "mountPath": "/data", "readOnly": true }],
            }],
            "volumes": [{ "name": "data", "hostPath": { "path": "/srv", "type": "" } }],
            "terminationGracePeriodSeconds": 5,
        },
        "status": {
            "phase": "Running", "podIP": "10.0.0.2", "hostIP": "192.0.2.1", "qosClass": "Burstable",
            "startTime": "2026-01-01T00:00:00Z",
            "conditions": [
                { "type": "Ready", "status": "False", "reason": "ContainersNotReady", "message": "main" },
            ],
            "containerStatuses": [{
                "name": "main", "ready": false, "restartCount": 3, "image": "web:1", "imageID": "sha256:1",
                "containerID": "containerd://c1",
                "state": { "waiting": { "reason": "CrashLoopBackOff", "message": "back-off 40s" } },
                "lastState": { "terminated": {
                    "exitCode": 2, "reason": "Error", "finishedAt": "2026-01-01T00:09:00Z",
                } },
            }],
        },
    });
    let pod = PodReport {
        pod: serde_json::from_value(pod).unwrap(),
        place: Some("/m/web.yaml".to_owned()),
        next_try: Some("2026-01-01T00:10:30Z".parse().unwrap()),
        waits_for: None,
        last_error: None,
        ..PodReport::default()
    };
    let event = EventReport {
        namespace: "default".to_owned(),
        pod: "web-node".to_owned(),
        uid: "u1".to_owned(),
        is_warning: true,
        reason: "BackOff".to_owned(),
        message: "Back-off restarting failed container".to_owned(),
        field_path: Some("spec.containers{main}".to_owned()),
        count: 4,
        first: "2026-01-01T00:05:00Z".parse().unwrap(),
        last: "2026-01-01T00:09:50Z".parse().unwrap(),
    };
    let now = "2026-01-01T00:10:00Z".parse().unwrap();
    NodeReport {
        now,
        node: "node".to_owned(),
        pods: vec![pod],
        events: vec![event],
        ..NodeReport::default()
    }
}

const WANT: &str = "\
Name:               web-node
Namespace:          default
UID:                u1
Manifest:           /m/web.yaml
Node:               node/192.0.2.1
Start Time:         2026-01-01T00:00:00Z
Labels:             app=web
                    tier=x
Status:             CrashLoopBackOff
Phase:              Running
Now:                the next try is in 30s
Grace Period:       5s
IP:                 10.0.0.2
Containers:
  main:
    Container ID:   containerd://c1
    Image:          web:1
    Image ID:       sha256:1
    Ports:          80/TCP
    Args:           serve
                    --all
    State:          Waiting
      Reason:       CrashLoopBackOff
      Message:      back-off 40s
    Last State:     Terminated
      Reason:       Error
      Exit Code:    2
      Finished:     2026-01-01T00:09:00Z
    Ready:          False
    Restart Count:  3
    Limits:         cpu: 1
                    memory: 64Mi
    Environment:    A: b
                    P: <the key k of Secret s>
    Mounts:         /data from data (ro)
Conditions:
  Type    Status   Why
  Ready   False    ContainersNotReady: main
Volumes:
  data:
    Type:           hostPath
    path:           /srv
QoS Class:          Burstable
Events:
  LAST               TYPE      REASON    ABOUT   MESSAGE
  10s (x4 over 5m)   Warning   BackOff   main    Back-off restarting failed container
";

#[test]
fn describe_prints_all_fields_of_a_pod() {
    let node = node();
    let text = anstream::adapter::strip_str(&render(&node, &node.pods[0])).to_string();
    assert_eq!(text, WANT);
}

#[test]
fn the_operation_under_way_is_shown_instead_of_the_next_retry() {
    let mut node = node();
    let since = "2026-01-01T00:09:55Z".parse().unwrap();
    let container = Some("main".to_owned());
    node.pods[0].doing =
        Some(PodActivity { what: Activity::Pulling("web:1".to_owned()), container, since });
    assert_eq!(now(&node, &node.pods[0]), "pulling web:1 (main), for 5s");
    node.pods[0].doing = None;
    node.pods[0].stage = StageReport::Waiting;
    let waits = "waits until the pod of its name before it is gone";
    assert_eq!(now(&node, &node.pods[0]), waits);
}

#[test]
fn a_pod_without_status_can_be_described() {
    let text = render(&NodeReport::default(), &PodReport::default());
    assert!(text.ends_with("Containers:\nEvents:  <none>\n"), "{text}");
}
