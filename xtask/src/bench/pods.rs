//! The pods that are measured.

use oarsman_rig::images;
use serde_json::{Value, json};

/// What a pod of the bench has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Shape {
    /// No volume at all.
    Plain,
    /// A token, a config map, a secret and an empty directory.
    Volumes,
}

/// A pod whose only container waits, and ends at once when asked to.
pub(super) fn pod(name: &str, node: &str, shape: Shape) -> Value {
    let volumes = shape == Shape::Volumes;
    let mut container = json!({ "name": "main", "image": images::PAUSE });
    let mut spec = json!({ "nodeName": node, "automountServiceAccountToken": volumes });
    if volumes {
        container["volumeMounts"] = json!([
            { "name": "config", "mountPath": "/config" },
            { "name": "secret", "mountPath": "/secret" },
            { "name": "empty", "mountPath": "/empty" },
        ]);
        spec["volumes"] = json!([
            { "name": "config", "configMap": { "name": "bench" } },
            { "name": "secret", "secret": { "secretName": "bench" } },
            { "name": "empty", "emptyDir": {} },
        ]);
    }
    spec["containers"] = json!([container]);
    json!({ "apiVersion": "v1", "kind": "Pod", "metadata": { "name": name }, "spec": spec })
}

/// What an agent tells of such a pod as soon as it has heard of it.
pub(super) fn waiting() -> Value {
    let state = json!({ "waiting": { "reason": "ContainerCreating" } });
    json!({ "phase": "Pending", "conditions": conditions(false), "containerStatuses": [container(false, &state)] })
}

/// What an agent tells of such a pod that runs.
pub(super) fn running() -> Value {
    let state = json!({ "running": {} });
    json!({ "phase": "Running", "conditions": conditions(true), "containerStatuses": [container(true, &state)] })
}

/// What an agent tells of such a pod that it has stopped.
pub(super) fn ended() -> Value {
    let state = json!({ "terminated": { "exitCode": 0, "reason": "Completed" } });
    json!({ "phase": "Succeeded", "conditions": conditions(false), "containerStatuses": [container(false, &state)] })
}

fn conditions(ready: bool) -> Value {
    let status = if ready { "True" } else { "False" };
    let of = |name: &str, status: &str| json!({ "type": name, "status": status });
    json!([of("Initialized", "True"), of("Ready", status), of("ContainersReady", status)])
}

fn container(ready: bool, state: &Value) -> Value {
    json!({
        "name": "main",
        "image": images::PAUSE,
        "imageID": "",
        "ready": ready,
        "restartCount": 0,
        "state": state,
    })
}
