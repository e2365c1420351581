//! `/pods` and `/runningpods`: the pods of this node.
//!
//! A list may be long and its client slow: each pod is written as JSON when the client takes it, and nothing of the list is held but
//! that one.

use std::io;
use std::sync::Arc;

use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::header;
use axum::response::{IntoResponse, Response};
use futures::stream::{self, StreamExt};
use k8s_openapi::api::core::v1::ContainerStatus;
use oarsman_core::active_pods::ActivePod;
use serde_json::json;

use super::EndpointState;
use super::list_limit::ListPermit;

/// Writes a pod as JSON, if it is in the list.
type WritePod = fn(&ActivePod) -> serde_json::Result<Option<Vec<u8>>>;

/// Every pod with its spec, and its status as computed here.
pub(super) async fn all(
    State(endpoint_state): State<Arc<EndpointState>>,
    permit: ListPermit,
) -> Response {
    list(&endpoint_state, permit, with_status)
}

/// Pods with running containers: no more than names and images.
pub(super) async fn running(
    State(endpoint_state): State<Arc<EndpointState>>,
    permit: ListPermit,
) -> Response {
    list(&endpoint_state, permit, running_containers)
}

fn list(endpoint_state: &EndpointState, permit: ListPermit, write: WritePod) -> Response {
    // Held until the whole list is sent or given up.
    let end = stream::once(async move {
        drop(permit);
        Ok(Bytes::from_static(b"]}"))
    });
    let body = Body::from_stream(parts(endpoint_state.host.pods(), write).chain(Box::pin(end)));
    ([(header::CONTENT_TYPE, "application/json")], body).into_response()
}

/// The text of a list without its end, in parts of one pod at most.
fn parts(
    pods: Vec<Arc<ActivePod>>,
    write: WritePod,
) -> impl stream::Stream<Item = io::Result<Bytes>> + Send {
    let begin =
        Bytes::from_static(br#"{"kind":"PodList","apiVersion":"v1","metadata":{},"items":["#);
    let mut separator: &[u8] = b"";
    let pods = pods.into_iter().filter_map(move |pod| {
        let text = write(&pod).map_err(io::Error::other).transpose()?;
        Some(
            text.map(|text| Bytes::from([std::mem::replace(&mut separator, b","), &text].concat())),
        )
    });
    stream::iter([Ok(begin)].into_iter().chain(pods))
}

fn with_status(pod: &ActivePod) -> serde_json::Result<Option<Vec<u8>>> {
    let fields = [
        serde_json::to_vec(&pod.pod.metadata)?,
        serde_json::to_vec(&pod.pod.spec)?,
        serde_json::to_vec(&pod.status())?,
    ];
    let [metadata, spec, status] = &fields;
    let begin: &[u8] = br#"{"kind":"Pod","apiVersion":"v1","metadata":"#;
    let parts = [begin, metadata, br#","spec":"#, spec, br#","status":"#, status, b"}"];
    Ok(Some(parts.concat()))
}

fn running_containers(pod: &ActivePod) -> serde_json::Result<Option<Vec<u8>>> {
    let Some(status) = pod.status() else { return Ok(None) };
    let all = [
        &status.init_container_statuses,
        &status.container_statuses,
        &status.ephemeral_container_statuses,
    ];
    let runs =
        |it: &&ContainerStatus| it.state.as_ref().is_some_and(|state| state.running.is_some());
    let running = all.into_iter().flatten().flatten().filter(runs);
    let containers: Vec<_> =
        running.map(|it| json!({ "name": it.name, "image": it.image, "resources": {} })).collect();
    if containers.is_empty() {
        return Ok(None);
    }
    let name = &pod.pod.metadata;
    let shown = json!({
        "metadata": { "name": name.name, "namespace": name.namespace, "uid": name.uid },
        "spec": { "containers": containers },
        "status": {},
    });
    serde_json::to_vec(&shown).map(Some)
}

#[cfg(test)]
mod tests {
    use oarsman_core::active_pods::{ActivePods, PodStage};
    use oarsman_core::lifecycle::Stage;
    use serde_json::Value;

    use super::*;

    fn pods(count: usize, annotation: usize) -> Vec<Arc<ActivePod>> {
        let mut pods = ActivePods::default();
        for number in 0..count {
            let pod = serde_json::from_value(json!({
                "metadata": {
                    "name": format!("web-{number}"), "namespace": "default", "uid": number.to_string(),
                    "annotations": { "long": "x".repeat(annotation) },
                },
                "spec": { "containers": [{ "name": "c" }] },
                "status": { "phase": "Running" },
            }));
            pods.set_pod(&Arc::new(pod.unwrap()), PodStage::Worker(Stage::Syncing));
        }
        pods.all().cloned().collect()
    }

    #[tokio::test]
    async fn a_list_is_written_pod_by_pod() {
        for count in [0, 1, 20] {
            let all: Vec<_> = parts(pods(count, 1 << 16), with_status).collect().await;
            let all: Vec<Bytes> = all.into_iter().map(Result::unwrap).collect();
            assert_eq!(all.len(), count + 1);
            assert!(all.iter().all(|part| part.len() < (1 << 16) + 1024));
            let list: Value =
                serde_json::from_slice(&[&all.concat(), &b"]}"[..]].concat()).unwrap();
            let items = list["items"].as_array().unwrap();
            assert_eq!((&list["kind"], items.len()), (&json!("PodList"), count));
            for item in items {
                assert_eq!((&item["kind"], &item["apiVersion"]), (&json!("Pod"), &json!("v1")));
                assert_eq!(item["spec"]["containers"][0]["name"], "c");
                assert_eq!(item["status"]["phase"], "Running");
            }
        }
    }

    #[tokio::test]
    async fn pods_of_which_nothing_runs_are_left_out_of_the_running_ones() {
        let all: Vec<_> = parts(pods(3, 0), running_containers).collect().await;
        assert_eq!(all.len(), 1);
    }
}
