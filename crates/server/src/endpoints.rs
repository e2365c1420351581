//! The endpoints and their routers: health, pods, logs, configuration.

mod container_logs;
mod pods;

use std::sync::Arc;

use axum::Router;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{any, get};
use oarsman_clock::Clock;
use serde_json::{Value, json};

use crate::host_interface::HostInterface;
use container_logs::LogLimits;

/// What the endpoints answer from.
pub(crate) struct EndpointState {
    host: Arc<dyn HostInterface>,
    clock: Arc<dyn Clock>,
    configuration: Value,
    log_limits: Arc<LogLimits>,
}

/// The router of the health port.
pub(crate) fn health() -> Router {
    Router::new().route("/healthz", get(healthz)).route("/healthz/ping", get(healthz))
}

/// The router of the read-only port, which needs no authentication.
pub(crate) fn read_only(host: Arc<dyn HostInterface>, clock: Arc<dyn Clock>) -> Router {
    let (configuration, log_limits) = (Value::Null, LogLimits::new());
    let endpoint_state = Arc::new(EndpointState { host, clock, configuration, log_limits });
    read_routes().with_state(endpoint_state)
}

/// The router of the HTTPS port.
pub(crate) fn all(
    host: Arc<dyn HostInterface>,
    clock: Arc<dyn Clock>,
    debugging: bool,
    configuration: Value,
) -> Router {
    let log_limits = LogLimits::new();
    let endpoint_state = Arc::new(EndpointState { host, clock, configuration, log_limits });
    let rest = if debugging { debug_routes() } else { disabled_routes() };
    read_routes().merge(rest).with_state(endpoint_state)
}

fn read_routes() -> Router<Arc<EndpointState>> {
    Router::new()
        .route("/healthz", get(healthz))
        .route("/healthz/ping", get(healthz))
        .route("/pods", get(pods::all))
        .route("/pods/", get(pods::all))
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

async fn healthz() -> &'static str {
    "ok"
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
