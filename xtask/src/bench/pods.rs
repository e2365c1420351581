//! The pods of the bench, and the statuses that an agent writes for them.

use oarsman_rig::images;
use serde_json::{Value, json};

/// The volumes of a pod of the bench.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Shape {
    /// No volume at all.
    Plain,
    /// A token, a ConfigMap, a Secret and an emptyDir.
    Volumes,
}

/// A pod whose only container waits, and ends at once on SIGTERM.
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

/// The first status that an agent writes for such a pod.
pub(super) fn waiting() -> Value {
    let state = json!({ "waiting": { "reason": "ContainerCreating" } });
    json!({ "phase": "Pending", "conditions": conditions(false), "containerStatuses": [container(false, &state)] })
}

/// The status of such a pod that runs.
pub(super) fn running() -> Value {
    let state = json!({ "running": {} });
    json!({ "phase": "Running", "conditions": conditions(true), "containerStatuses": [container(true, &state)] })
}

/// The status of such a pod that was stopped.
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
