//! The server of the local socket. A client that hangs or sends garbage harms only its own connection.

use std::path::Path;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use anyhow::{Context, Result};
use axum::Router;
use axum::body::Bytes;
use axum::extract::{DefaultBodyLimit, State};
use axum::http::{Extensions, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use oarsman_agent::ReportStore;
use oarsman_core::stats::{StatsScope, cpu_and_memory_summary};
use oarsman_server::accept::{self, ConnectionLimits, HttpConnection};
use oarsman_server::{LONGEST_RUN, StatsProvider, StreamingService};
use oarsman_sync::{TaskName, TaskPanics, ordered_watch, restarted};
use serde::Serialize;
use tokio::net::{UnixListener, UnixStream};
use tokio_util::sync::CancellationToken;

use super::stop::{StopRefusal, check_request};
use super::stopped_pods::StoppedPods;
use super::{ErrorBody, REPORT, SOCKET, STATS, STOP, StopRequest, VERSION};
use crate::node_stats::NodeStats;
use crate::socket_path::SocketPath;

#[cfg(test)]
mod tests;

/// The largest body of a request, in bytes.
const LONGEST_BODY: usize = 64 * 1024;
/// A user of exec may read nothing for hours; a connection that is not upgraded ends with its lifetime, in which a command of `/v1/run` can end.
const LIMITS: ConnectionLimits = ConnectionLimits {
    connections: 32,
    header_timeout: Duration::from_secs(10),
    max_head_bytes: LONGEST_BODY,
    write_timeout: Duration::from_secs(4 * 60 * 60),
    lifetime: LONGEST_RUN.saturating_add(Duration::from_secs(30)),
};

/// What measures the node, once the runtime has answered: before that, the names of cgroups are not known.
pub(crate) type LateStats = Arc<OnceLock<Arc<NodeStats>>>;

/// What the endpoints answer from.
pub(crate) struct LocalApi {
    /// The agent's report.
    pub(crate) report_store: Arc<ReportStore>,
    /// The pods that were asked to stop.
    pub(crate) stopped: ordered_watch::Sender<StoppedPods>,
    /// Cancelled when the agent is asked to stop all pods and to end.
    pub(crate) leave: CancellationToken,
    /// exec, attach and port-forward.
    pub(crate) streaming: Arc<StreamingService>,
    /// CPU time and memory.
    pub(crate) stats: LateStats,
}

/// The socket exists, and is served, until this is dropped.
#[derive(Debug)]
pub(crate) struct LocalServer {
    socket: SocketPath,
    end: CancellationToken,
}

impl Drop for LocalServer {
    fn drop(&mut self) {
        self.end.cancel();
        self.socket.remove();
    }
}

/// Answers at the socket in an agent's root directory, which must be locked: a socket that is there then is a dead agent's.
pub(crate) fn serve(root: &Path, api: LocalApi, panics: TaskPanics) -> Result<LocalServer> {
    let cannot = || format!("cannot make the socket for commands in {}", root.display());
    let socket = SocketPath::of(root, SOCKET).with_context(cannot)?;
    // A client that connected before the socket was closed to others is still checked by its user id.
    let listener = socket.listen().and_then(UnixListener::from_std).with_context(cannot)?;
    let listener = Arc::new(listener);
    let router = router(Arc::new(api));
    let end = CancellationToken::new();
    let until = end.clone();
    tokio::spawn(restarted(TaskName::LocalApi, panics, move || {
        let router = router.clone();
        accept::serve(Arc::clone(&listener), LIMITS, until.clone(), move |stream| {
            prepare(stream, router.clone())
        })
    }));
    Ok(LocalServer { socket, end })
}

async fn prepare(stream: UnixStream, router: Router) -> Option<HttpConnection> {
    let router = if is_allowed(&stream) { router } else { Router::new().fallback(forbidden) };
    let (extensions, is_http2) = (Extensions::new(), false);
    Some(HttpConnection { stream: Box::new(stream), router, extensions, is_http2 })
}

/// Whether the client runs as root, or as the agent's own user.
fn is_allowed(stream: &UnixStream) -> bool {
    let own = rustix::process::geteuid().as_raw();
    stream.peer_cred().is_ok_and(|peer| is_trusted(peer.uid(), own))
}

fn is_trusted(peer: u32, own: u32) -> bool {
    peer == 0 || peer == own
}

fn router(api: Arc<LocalApi>) -> Router {
    let streaming = Router::new().nest(VERSION, api.streaming.routes());
    Router::new()
        .route(REPORT, get(report))
        .route(STOP, post(stop))
        .route(STATS, get(stats))
        .fallback(not_found)
        .layer(DefaultBodyLimit::max(LONGEST_BODY))
        .with_state(api)
        .merge(streaming)
}

async fn report(State(api): State<Arc<LocalApi>>) -> Response {
    json(StatusCode::OK, &api.report_store.report())
}

async fn stats(State(api): State<Arc<LocalApi>>) -> Response {
    let Some(provider) = api.stats.get() else {
        let why = "the runtime has not answered yet, so that the pods' cgroups are not known";
        return error_response(StatusCode::SERVICE_UNAVAILABLE, why);
    };
    match provider.stats(StatsScope::CpuAndMemory).await {
        Ok(snapshot) => json(StatusCode::OK, &cpu_and_memory_summary(&snapshot)),
        Err(error) => error_response(StatusCode::INTERNAL_SERVER_ERROR, &error.to_string()),
    }
}

async fn stop(State(api): State<Arc<LocalApi>>, body: Bytes) -> Response {
    let request: StopRequest = match serde_json::from_slice(&body) {
        Ok(request) => request,
        Err(error) => {
            return error_response(StatusCode::BAD_REQUEST, &format!("not a request: {error}"));
        }
    };
    match check_request(&api.report_store.report(), &request) {
        Ok(None) => api.leave.cancel(),
        Ok(Some(names)) => api.stopped.send_modify(|stopped| stopped.extend(names)),
        Err(StopRefusal::InvalidRequest(why)) => {
            return error_response(StatusCode::BAD_REQUEST, &why);
        }
        Err(StopRefusal::UnknownPod(why)) => return error_response(StatusCode::NOT_FOUND, &why),
        Err(StopRefusal::NotStoppable(why)) => return error_response(StatusCode::CONFLICT, &why),
    }
    json(StatusCode::ACCEPTED, &request)
}

async fn not_found() -> Response {
    let there = format!("there is nothing here; ask for {REPORT}, {STATS} or {STOP}");
    error_response(StatusCode::NOT_FOUND, &there)
}

async fn forbidden() -> Response {
    error_response(StatusCode::FORBIDDEN, "only root and the agent's own user may ask")
}

fn error_response(status: StatusCode, error: &str) -> Response {
    json(status, &ErrorBody { error: error.to_owned() })
}

fn json(status: StatusCode, what: &impl Serialize) -> Response {
    match serde_json::to_vec(what) {
        Ok(text) => (status, [(header::CONTENT_TYPE, "application/json")], text).into_response(),
        Err(error) => (StatusCode::INTERNAL_SERVER_ERROR, error.to_string()).into_response(),
    }
}
