//! `/pods` and `/runningpods`: the pods of this node.

use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;
use k8s_openapi::api::core::v1::ContainerStatus;
use oarsman_core::active_pods::ActivePod;
use serde_json::{Value, json};

use super::{EndpointState, as_json};

/// Every pod with its spec, and its status as computed here.
pub(super) async fn all(State(endpoint_state): State<Arc<EndpointState>>) -> Response {
    let items: Vec<Value> = endpoint_state.host.pods().iter().map(|pod| with_status(pod)).collect();
    as_json(&list(&items))
}

/// Pods with running containers: no more than names and images.
pub(super) async fn running(State(endpoint_state): State<Arc<EndpointState>>) -> Response {
    let items: Vec<Value> =
        endpoint_state.host.pods().iter().filter_map(running_containers).collect();
    as_json(&list(&items))
}

fn list(items: &[Value]) -> Value {
    json!({ "kind": "PodList", "apiVersion": "v1", "metadata": {}, "items": items })
}

fn with_status(pod: &ActivePod) -> Value {
    let mut shown = json!(*pod.pod);
    if let Some(status) = pod.status() {
        shown["status"] = json!(status);
    }
    shown
}

fn running_containers(pod: &Arc<ActivePod>) -> Option<Value> {
    let status = pod.status()?;
    let all = [
        &status.init_container_statuses,
        &status.container_statuses,
        &status.ephemeral_container_statuses,
    ];
    let runs =
        |it: &&ContainerStatus| it.state.as_ref().is_some_and(|state| state.running.is_some());
    let containers: Vec<Value> = all
        .into_iter()
        .flatten()
        .flatten()
        .filter(runs)
        .map(|it| json!({ "name": it.name, "image": it.image, "resources": {} }))
        .collect();
    let name = &pod.pod.metadata;
    (!containers.is_empty()).then(|| {
        json!({
            "metadata": { "name": name.name, "namespace": name.namespace, "uid": name.uid },
            "spec": { "containers": containers },
            "status": {},
        })
    })
}
