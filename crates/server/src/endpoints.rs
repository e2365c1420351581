//! The endpoints and their routers: health, pods, statistics, logs, configuration; those of streaming come from `streaming`.

mod container_logs;
mod health;
mod metrics;
mod pods;
mod stats;

use std::sync::Arc;

use axum::Router;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{any, get};
use oarsman_clock::Clock;
use serde_json::{Value, json};
use tokio::sync::Semaphore;

use crate::host_interface::HostInterface;
use crate::server_metrics::{ServerMetrics, ServerType, with_metrics};
use crate::streaming::StreamingService;
pub(crate) use container_logs::LogLimits;

/// What the endpoints answer from.
pub(crate) struct EndpointState {
    host: Arc<dyn HostInterface>,
    clock: Arc<dyn Clock>,
    configuration: Value,
    log_limits: Arc<LogLimits>,
    lists: Arc<Semaphore>,
    metrics: Arc<ServerMetrics>,
}

impl EndpointState {
    fn new(
        host: Arc<dyn HostInterface>,
        clock: Arc<dyn Clock>,
        configuration: Value,
        log_limits: Arc<LogLimits>,
        metrics: Arc<ServerMetrics>,
    ) -> Arc<Self> {
        let lists = Arc::new(Semaphore::new(pods::MAX_LISTS));
        Arc::new(Self { host, clock, configuration, log_limits, lists, metrics })
    }
}

/// The router of the health port.
pub(crate) fn health(host: Arc<dyn HostInterface>, metrics: Arc<ServerMetrics>) -> Router {
    health::routes(host, metrics)
}

/// The router of the read-only port, which needs no authentication.
pub(crate) fn read_only(
    host: Arc<dyn HostInterface>,
    clock: Arc<dyn Clock>,
    log_limits: Arc<LogLimits>,
    metrics: &Arc<ServerMetrics>,
) -> Router {
    let endpoint_state =
        EndpointState::new(host, clock, Value::Null, log_limits, Arc::clone(metrics));
    let health = health::routes(Arc::clone(&endpoint_state.host), Arc::clone(metrics));
    let router = read_routes().with_state(endpoint_state).merge(health);
    with_metrics(router, metrics, ServerType::ReadOnly)
}

/// The router of the HTTPS port; without streaming, no debugging handler is served.
pub(crate) fn all(
    host: Arc<dyn HostInterface>,
    clock: Arc<dyn Clock>,
    log_limits: Arc<LogLimits>,
    debugging: Option<Arc<StreamingService>>,
    configuration: Value,
    metrics: Arc<ServerMetrics>,
) -> Router {
    let endpoint_state =
        EndpointState::new(host, clock, configuration, log_limits, Arc::clone(&metrics));
    let (rest, streaming) = match debugging {
        Some(streaming) => (debug_routes(), streaming.routes()),
        None => (disabled_routes(), Router::new()),
    };
    let health = health::routes(Arc::clone(&endpoint_state.host), metrics);
    read_routes().merge(rest).with_state(endpoint_state).merge(health).merge(streaming)
}

fn read_routes() -> Router<Arc<EndpointState>> {
    Router::new()
        .route("/pods", get(pods::all))
        .route("/pods/", get(pods::all))
        .merge(metrics::routes())
        .merge(stats::routes())
}

fn debug_routes() -> Router<Arc<EndpointState>> {
    Router::new()
        .route("/containerLogs/{namespace}/{pod}/{container}", get(container_logs::serve))
        .route("/runningpods", get(pods::running))
        .route("/runningpods/", get(pods::running))
        .route("/configz", get(configz))
}

/// The paths of the debugging handlers where those are switched off.
fn disabled_routes() -> Router<Arc<EndpointState>> {
    let roots = [
        "containerLogs",
        "run",
        "exec",
        "attach",
        "portForward",
        "runningpods",
        "configz",
        "logs",
        "debug",
    ];
    let paths = roots
        .iter()
        .flat_map(|root| [format!("/{root}"), format!("/{root}/"), format!("/{root}/{{*rest}}")]);
    paths.fold(Router::new(), |router, path| router.route(&path, any(disabled)))
}

async fn disabled() -> Response {
    (StatusCode::METHOD_NOT_ALLOWED, "Debug endpoints are disabled.").into_response()
}

async fn configz(State(endpoint_state): State<Arc<EndpointState>>) -> Response {
    let mut configuration = endpoint_state.configuration.clone();
    if let Value::Object(fields) = &mut configuration {
        fields.insert("kind".to_owned(), json!("KubeletConfiguration"));
        fields.insert("apiVersion".to_owned(), json!("kubelet.config.k8s.io/v1beta1"));
    }
    as_json(&json!({ "kubeletconfig": configuration }))
}

fn as_json(what: &Value) -> Response {
    ([(header::CONTENT_TYPE, "application/json")], what.to_string()).into_response()
}
