//! `/exec`, `/attach`, `/portForward` and `/run`: a client talks to a process or a port of a pod.
//!
//! The runtime is asked for a URL or a session, and the upgraded connection of the client is relayed to it (`oarsman_streaming`). The agent's
//! local socket serves the same routes, without authorization. Clients of a CRI socket that this process serves get URLs (`session_urls`).

mod client_protocol;
mod command;
mod find;
mod session;
mod session_urls;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::{Path, RawQuery, Request, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodRouter, get, post};
use k8s_openapi::api::core::v1::Pod;
use oarsman_core::active_pods::ActivePod;
use oarsman_core::ids::{FullName, PodUid};
use oarsman_core::streaming_request::read_ports;
use oarsman_cri::{CriError, Runtime};
use oarsman_cri_types::v1::{ExecSyncRequest, PortForwardRequest};

use crate::pod_quota::{PodQuota, QuotaPermit};
use crate::query;
use client_protocol::ClientProtocol;
use command::{attach, exec};
use session::{Session, SessionTarget};

pub use session_urls::SessionUrls;

/// Connections that are relayed at once. Each has buffers of 32 KiB, and of 96 KiB at most for what waits, in either direction.
pub(crate) const MAX_SESSIONS: usize = 512;
/// Of these, of one pod.
const MAX_SESSIONS_OF_A_POD: usize = 128;
/// How long a command of `/run` may take.
pub const LONGEST_RUN: Duration = Duration::from_secs(2 * 60);

/// Looks up a pod of this node by its name, and by its UID or that of its mirror pod where a request has one.
pub type PodLookup =
    Arc<dyn Fn(&FullName, Option<&PodUid>) -> Option<Arc<ActivePod>> + Send + Sync>;

/// What the routes need.
pub struct StreamingService {
    pods: PodLookup,
    runtime: Arc<dyn Runtime>,
    idle_timeout: Duration,
    sessions: Arc<PodQuota>,
}

impl std::fmt::Debug for StreamingService {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("StreamingService")
            .field("idle_timeout", &self.idle_timeout)
            .finish_non_exhaustive()
    }
}

impl StreamingService {
    /// For these pods on that runtime; idle connections are closed after that time, or never if it is zero.
    pub fn new(pods: PodLookup, runtime: Arc<dyn Runtime>, idle_timeout: Duration) -> Arc<Self> {
        let sessions = PodQuota::new(MAX_SESSIONS, MAX_SESSIONS_OF_A_POD);
        Arc::new(Self { pods, runtime, idle_timeout, sessions })
    }

    /// The router of all streaming endpoints. Who may ask is decided by a layer above it.
    pub fn routes(self: &Arc<Self>) -> Router {
        let of_container = |path: &str, handler: MethodRouter<Arc<Self>>| {
            Router::new()
                .route(&format!("/{path}/{{namespace}}/{{pod}}/{{container}}"), handler.clone())
                .route(&format!("/{path}/{{namespace}}/{{pod}}/{{uid}}/{{container}}"), handler)
        };
        let forward = get(port_forward).post(port_forward);
        of_container("exec", get(exec).post(exec))
            .merge(of_container("attach", get(attach).post(attach)))
            .merge(of_container("run", post(run)))
            .route("/portForward/{namespace}/{pod}", forward.clone())
            .route("/portForward/{namespace}/{pod}/{uid}", forward)
            .with_state(Arc::clone(self))
    }

    pub(crate) fn runtime(&self) -> &dyn Runtime {
        self.runtime.as_ref()
    }

    /// The id of the pod's container of that name that runs, or why there is none.
    pub(crate) async fn container_id(&self, pod: &Pod, container: &str) -> Result<String, String> {
        let found = find::container(self.runtime.as_ref(), pod, container).await;
        found.map_err(|StreamingRefusal(_, said)| said)
    }

    fn pod(&self, path: &PathParts) -> Result<(FullName, Arc<ActivePod>), StreamingRefusal> {
        let part = |name: &str| path.get(name).cloned().unwrap_or_default();
        let name = FullName { namespace: part("namespace"), name: part("pod") };
        let uid = path.get("uid").map(|uid| PodUid::from(uid.as_str()));
        match (self.pods)(&name, uid.as_ref()) {
            Some(pod) => Ok((name, pod)),
            None => Err(StreamingRefusal(StatusCode::NOT_FOUND, "pod does not exist".to_owned())),
        }
    }

    fn session(
        &self,
        target: SessionTarget,
        protocol: ClientProtocol,
        permit: QuotaPermit,
    ) -> Session {
        Session { target, protocol, idle_timeout: self.idle_timeout, permit }
    }

    fn permit(&self, pod: &FullName) -> Result<QuotaPermit, StreamingRefusal> {
        self.sessions.admit(pod).ok_or_else(|| {
            let said = "too many connections to containers are open".to_owned();
            StreamingRefusal(StatusCode::TOO_MANY_REQUESTS, said)
        })
    }
}

/// The named parts of a path.
type PathParts = BTreeMap<String, String>;

/// Why a request is not served.
#[derive(Debug)]
struct StreamingRefusal(StatusCode, String);

impl StreamingRefusal {
    fn bad_request(said: String) -> Self {
        Self(StatusCode::BAD_REQUEST, said)
    }

    fn of_runtime(error: &CriError) -> Self {
        let status =
            if error.is_gone() { StatusCode::NOT_FOUND } else { StatusCode::INTERNAL_SERVER_ERROR };
        Self(status, error.to_string())
    }
}

impl IntoResponse for StreamingRefusal {
    fn into_response(self) -> Response {
        (self.0, self.1).into_response()
    }
}

type Answer = Result<Response, StreamingRefusal>;

async fn port_forward(
    State(service): State<Arc<StreamingService>>,
    Path(path): Path<PathParts>,
    RawQuery(query): RawQuery,
    request: Request,
) -> Answer {
    let (name, pod) = service.pod(&path)?;
    let protocol = ClientProtocol::of_port_forward(&request)?;
    let ports = if protocol.names_ports_in_query() {
        let query = query::read(query.as_deref().unwrap_or_default());
        read_ports(&query).map_err(StreamingRefusal::bad_request)?
    } else {
        Vec::new()
    };
    let permit = service.permit(&name)?;
    let pod_sandbox_id = find::sandbox(service.runtime.as_ref(), &pod.pod).await?;
    let port = ports.iter().map(|port| i32::from(*port)).collect();
    let relay = protocol.port_forward_relay(ports)?;
    let found = service.runtime.port_forward(PortForwardRequest { pod_sandbox_id, port }).await;
    let target = SessionTarget { endpoint: "portForward", pod: name, container: String::new() };
    service.session(target, protocol, permit).begin(found, relay, request).await
}

/// Runs the command of the query to its end, and answers with its output.
async fn run(
    State(service): State<Arc<StreamingService>>,
    Path(path): Path<PathParts>,
    RawQuery(query): RawQuery,
) -> Answer {
    let query = query::read(query.as_deref().unwrap_or_default());
    let command = query.into_iter().find(|(name, _)| name == "cmd").map(|(_, value)| value);
    let command = command.unwrap_or_default();
    let (name, pod) = service.pod(&path)?;
    let _permit = service.permit(&name)?;
    let container = path.get("container").map_or("", String::as_str);
    let id = find::container(service.runtime.as_ref(), &pod.pod, container).await?;
    let asked = ExecSyncRequest {
        container_id: id,
        cmd: command.split(' ').map(str::to_owned).collect(),
        timeout: i64::try_from(LONGEST_RUN.as_secs()).unwrap_or(i64::MAX),
    };
    let ended = service.runtime.exec_sync(asked).await;
    let ended = ended.map_err(|error| StreamingRefusal::of_runtime(&error))?;
    let output = [ended.stdout, ended.stderr].concat();
    if ended.exit_code != 0 {
        let said = format!(
            "command '{command}' exited with {}: {}",
            ended.exit_code,
            String::from_utf8_lossy(&output)
        );
        return Err(StreamingRefusal(StatusCode::INTERNAL_SERVER_ERROR, said));
    }
    Ok(output.into_response())
}
