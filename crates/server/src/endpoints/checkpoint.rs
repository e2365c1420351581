//! `/checkpoint`: the runtime writes the state of a running container to an archive on this node.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use async_trait::async_trait;
use axum::Router;
use axum::extract::{Path as PathOf, RawQuery, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use k8s_openapi::api::core::v1::Pod;
use oarsman_clock::Clock;
use oarsman_core::ids::FullName;
use oarsman_cri_types::v1::CheckpointContainerRequest;
use oarsman_host::beneath::RootDirectory;
use serde_json::json;
use tokio::sync::Semaphore;
use tokio::task::spawn_blocking;

use super::as_json;
use crate::host_interface::HostInterface;
use crate::query;
use crate::streaming::StreamingService;

/// Below the agent's root directory.
const DIRECTORY: &str = "checkpoints";
/// Archives hold the memory of containers.
const MODE: u32 = 0o700;
/// Checkpoints at once: each stops a container while it writes its memory to the disk.
const MAX_CHECKPOINTS: usize = 4;
/// The longest time, in seconds, that a client can give the runtime.
const MAX_TIMEOUT: i64 = 60 * 60;

/// What is asked of the runtime.
#[async_trait]
pub(super) trait CheckpointRuntime: Send + Sync + 'static {
    /// The id of the pod's container that runs, or why there is none.
    async fn running_container(&self, pod: &Pod, container: &str) -> Result<String, String>;

    /// Writes the archive.
    async fn checkpoint(&self, request: CheckpointContainerRequest) -> Result<(), String>;
}

#[async_trait]
impl CheckpointRuntime for StreamingService {
    async fn running_container(&self, pod: &Pod, container: &str) -> Result<String, String> {
        self.container_id(pod, container).await
    }

    async fn checkpoint(&self, request: CheckpointContainerRequest) -> Result<(), String> {
        let made = self.runtime().checkpoint_container(request).await;
        made.map_err(|error| error.to_string())
    }
}

struct CheckpointState {
    root: PathBuf,
    host: Arc<dyn HostInterface>,
    containers: Arc<dyn CheckpointRuntime>,
    clock: Arc<dyn Clock>,
    running: Semaphore,
}

type CheckpointRefusal = (StatusCode, String);

pub(super) fn routes(
    root: &Path,
    host: &Arc<dyn HostInterface>,
    containers: Arc<dyn CheckpointRuntime>,
    clock: &Arc<dyn Clock>,
) -> Router {
    let state = CheckpointState {
        root: root.to_owned(),
        host: Arc::clone(host),
        containers,
        clock: Arc::clone(clock),
        running: Semaphore::new(MAX_CHECKPOINTS),
    };
    Router::new()
        .route("/checkpoint/{namespace}/{pod}/{container}", post(checkpoint))
        .with_state(Arc::new(state))
}

async fn checkpoint(
    State(state): State<Arc<CheckpointState>>,
    PathOf((namespace, name, container)): PathOf<(String, String, String)>,
    RawQuery(query): RawQuery,
) -> Response {
    let pod = FullName { name, namespace };
    let answer = state.checkpoint(&pod, &container, query.as_deref().unwrap_or_default()).await;
    answer.unwrap_or_else(|(status, said)| (status, said).into_response())
}

impl CheckpointState {
    async fn checkpoint(
        &self,
        name: &FullName,
        container: &str,
        query: &str,
    ) -> Result<Response, CheckpointRefusal> {
        let pod = self.host.pod(name);
        let pod = pod.ok_or((StatusCode::NOT_FOUND, "pod does not exist".to_owned()))?;
        if !has_container(&pod.pod, container) {
            return Err((StatusCode::NOT_FOUND, format!("container {container} does not exist")));
        }
        let timeout = timeout(query)?;
        let busy = |_| (StatusCode::TOO_MANY_REQUESTS, "too many checkpoints are made".to_owned());
        let _permit = self.running.try_acquire().map_err(busy)?;
        let failed = |why: String| {
            let FullName { name, namespace } = name;
            let said = format!("checkpointing of {namespace}/{name}/{container} failed ({why})");
            (StatusCode::INTERNAL_SERVER_ERROR, said)
        };
        let container_id = self.containers.running_container(&pod.pod, container).await;
        let container_id = container_id.map_err(failed)?;
        let directory = self.make_directory().await.map_err(|error| failed(error.to_string()))?;
        let location = directory.join(file_name(name, container, self.clock.wall()));
        let location = location.display().to_string();
        let request =
            CheckpointContainerRequest { container_id, location: location.clone(), timeout };
        self.containers.checkpoint(request).await.map_err(failed)?;
        Ok(as_json(&json!({ "items": [location] })))
    }

    async fn make_directory(&self) -> io::Result<PathBuf> {
        let root = self.root.clone();
        let made = spawn_blocking(move || {
            RootDirectory::open(&root)?.make_directory(Path::new(DIRECTORY), MODE)?;
            Ok(root.join(DIRECTORY))
        });
        made.await.map_err(io::Error::other)?
    }
}

fn has_container(pod: &Pod, name: &str) -> bool {
    let Some(spec) = &pod.spec else { return false };
    let ephemeral = spec.ephemeral_containers.iter().flatten().map(|container| &container.name);
    let others = spec.containers.iter().chain(spec.init_containers.iter().flatten());
    others.map(|container| &container.name).chain(ephemeral).any(|known| known == name)
}

/// The last of several counts, as in the Go kubelet, and so does the status of one that is no number.
fn timeout(query: &str) -> Result<i64, CheckpointRefusal> {
    let given = query::read(query).into_iter().rfind(|(name, _)| name == "timeout");
    let Some((_, value)) = given else { return Ok(0) };
    let parsed = value.parse::<i64>().ok().filter(|seconds| *seconds >= 0);
    let wrong = || (StatusCode::NOT_FOUND, "cannot parse value of timeout parameter".to_owned());
    parsed.map(|seconds| seconds.min(MAX_TIMEOUT)).ok_or_else(wrong)
}

fn file_name(pod: &FullName, container: &str, now: jiff::Timestamp) -> String {
    let FullName { name, namespace } = pod;
    let now = now.strftime("%Y-%m-%dT%H:%M:%SZ");
    format!("checkpoint-{name}_{namespace}-{container}-{now}.tar")
}

#[cfg(test)]
mod tests;
