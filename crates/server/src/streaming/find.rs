//! Which container or sandbox of the runtime a request is about. The runtime is asked: a status may be older.

use axum::http::StatusCode;
use k8s_openapi::api::core::v1::Pod;
use oarsman_core::labels::{CONTAINER_NAME_LABEL, POD_UID_LABEL};
use oarsman_core::pod::PodExt;
use oarsman_cri::Runtime;
use oarsman_cri_types::v1::{
    ContainerFilter, ContainerState, ContainerStateValue, PodSandboxFilter, PodSandboxState,
    PodSandboxStateValue,
};

use super::StreamingRefusal;

/// The id of the pod's container of that name that runs.
pub(super) async fn container(
    runtime: &dyn Runtime,
    pod: &Pod,
    name: &str,
) -> Result<String, StreamingRefusal> {
    let labels = [(POD_UID_LABEL, pod.uid().to_string()), (CONTAINER_NAME_LABEL, name.to_owned())];
    let filter = ContainerFilter {
        state: Some(ContainerStateValue { state: ContainerState::ContainerRunning.into() }),
        label_selector: labels.map(|(label, value)| (label.to_owned(), value)).into(),
        ..ContainerFilter::default()
    };
    let listed = runtime.list_containers(Some(filter)).await;
    let listed = listed.map_err(|error| StreamingRefusal::of_runtime(&error))?;
    let newest = listed.into_iter().max_by_key(|container| container.created_at);
    newest.map(|container| container.id).ok_or_else(|| {
        StreamingRefusal(StatusCode::NOT_FOUND, format!("container not found ({name:?})"))
    })
}

/// The id of the pod's sandbox that is ready.
pub(super) async fn sandbox(runtime: &dyn Runtime, pod: &Pod) -> Result<String, StreamingRefusal> {
    let filter = PodSandboxFilter {
        state: Some(PodSandboxStateValue { state: PodSandboxState::SandboxReady.into() }),
        label_selector: [(POD_UID_LABEL.to_owned(), pod.uid().to_string())].into(),
        ..PodSandboxFilter::default()
    };
    let listed = runtime.list_pod_sandboxes(Some(filter)).await;
    let listed = listed.map_err(|error| StreamingRefusal::of_runtime(&error))?;
    let newest = listed.into_iter().max_by_key(|sandbox| sandbox.created_at);
    newest.map(|sandbox| sandbox.id).ok_or_else(|| {
        let name = pod.full_name().name;
        StreamingRefusal(StatusCode::NOT_FOUND, format!("sandbox of pod {name:?} not found"))
    })
}
