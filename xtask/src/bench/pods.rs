//! The pods of the bench, and the statuses that an agent writes for them.

use oarsman_rig::images;
use serde_json::{Value, json};

/// What a pod of the bench has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Shape {
    /// No volume at all.
    Plain,
    /// A token, a ConfigMap, a Secret and an emptyDir.
    Volumes,
    /// No volume; an HTTP readiness probe and a TCP liveness probe, each every second.
    Probed,
}

/// What a container of a probed pod prints for each HTTP probe.
pub(super) const HTTP_PROBE: &str = "http";
/// Where it listens.
const PROBED_PORT: u16 = 8080;

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
    if shape == Shape::Probed {
        add_probes(&mut container);
    }
    spec["containers"] = json!([container]);
    json!({ "apiVersion": "v1", "kind": "Pod", "metadata": { "name": name }, "spec": spec })
}

fn add_probes(container: &mut Value) {
    let probe = |handler: &str, action: Value| json!({ "periodSeconds": 1, handler: action });
    let get = json!({ "port": PROBED_PORT, "path": format!("/print/{HTTP_PROBE}") });
    container["image"] = json!(images::SCRIPT);
    container["args"] = json!([format!("listen:{PROBED_PORT}"), "forever"]);
    container["readinessProbe"] = probe("httpGet", get);
    container["livenessProbe"] = probe("tcpSocket", json!({ "port": PROBED_PORT }));
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
