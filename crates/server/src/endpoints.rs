//! The endpoints and their routers: health, pods, statistics, logs, configuration; those of streaming come from `streaming`.

mod agent_debugging;
mod checkpoint;
mod container_logs;
mod health;
mod list_limit;
mod metrics;
mod node_logs;
mod pods;
pub(crate) mod stats;
mod zpages;

use std::sync::Arc;

use axum::Router;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{any, get};
use oarsman_clock::Clock;
use serde_json::{Value, json};

use crate::host_interface::HostInterface;
use crate::node_endpoints::NodeEndpointSettings;
use crate::server_metrics::{ServerMetrics, ServerType, with_metrics};
use crate::streaming::StreamingService;
pub(crate) use container_logs::LogLimits;
pub(crate) use list_limit::ListLimit;

/// What the endpoints answer from.
#[derive(Clone)]
pub(crate) struct EndpointState {
    pub(crate) host: Arc<dyn HostInterface>,
    pub(crate) clock: Arc<dyn Clock>,
    /// The kubelet's configuration, for `/configz`.
    pub(crate) configuration: Value,
    pub(crate) log_limits: Arc<LogLimits>,
    pub(crate) list_limit: ListLimit,
    pub(crate) metrics: Arc<ServerMetrics>,
}

/// The router of the health port.
pub(crate) fn health(endpoint_state: &EndpointState) -> Router {
    let EndpointState { host, metrics, .. } = endpoint_state;
    health::routes(Arc::clone(host), Arc::clone(metrics))
}

/// The router of the read-only port, which needs no authentication.
pub(crate) fn read_only(endpoint_state: &EndpointState) -> Router {
    let own = EndpointState { list_limit: ListLimit::default(), ..endpoint_state.clone() };
    let router = read_routes().with_state(Arc::new(own));
    with_metrics(
        router.merge(health(endpoint_state)),
        &endpoint_state.metrics,
        ServerType::ReadOnly,
    )
}

/// The router of the HTTPS port; without streaming, no debugging handler is served.
pub(crate) fn all(
    endpoint_state: &EndpointState,
    debugging: Option<Arc<StreamingService>>,
    node: &NodeEndpointSettings,
) -> Router {
    let (rest, streaming) = match debugging {
        Some(streaming) => {
            let node_routes = node_routes(node, endpoint_state, &streaming);
            (debug_routes(), streaming.routes().merge(node_routes))
        }
        None => (disabled_routes(), Router::new()),
    };
    let router = read_routes().merge(rest).with_state(Arc::new(endpoint_state.clone()));
    router.merge(health(endpoint_state)).merge(streaming)
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

/// The endpoints of the node and of its agent.
fn node_routes(
    settings: &NodeEndpointSettings,
    endpoint_state: &EndpointState,
    containers: &Arc<StreamingService>,
) -> Router {
    let EndpointState { host, clock, log_limits, .. } = endpoint_state;
    let checkpoint = settings.checkpoint_root.as_deref();
    let checkpoint =
        checkpoint.map(|root| checkpoint::routes(root, host, Arc::clone(containers) as _, clock));
    Router::new()
        .merge(zpages::routes(settings, clock, shown_paths(settings)))
        .merge(agent_debugging::routes(settings, Arc::clone(host)))
        .merge(node_logs::routes(settings.node_logs.as_ref(), log_limits))
        .merge(checkpoint.unwrap_or_default())
}

/// The paths that `/statusz` names.
fn shown_paths(settings: &NodeEndpointSettings) -> Vec<&'static str> {
    let always = [
        "/attach",
        "/configz",
        "/containerLogs",
        "/exec",
        "/healthz",
        "/metrics",
        "/pods",
        "/portForward",
        "/run",
        "/runningpods",
        "/stats",
        "/statusz",
    ];
    let optional = [
        ("/checkpoint", settings.checkpoint_root.is_some()),
        ("/debug", settings.debug_flags || settings.command_line.is_some()),
        ("/flagz", settings.flags.is_some()),
        ("/logs", settings.node_logs.is_some()),
    ];
    let optional = optional.into_iter().filter(|(_, is_served)| *is_served);
    always.into_iter().chain(optional.map(|(path, _)| path)).collect()
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
