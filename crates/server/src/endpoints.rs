//! The endpoints and their routers: health, pods, logs, configuration; those of streaming come from `streaming`.

mod agent_debugging;
mod checkpoint;
mod container_logs;
mod health;
mod node_logs;
mod pods;
mod zpages;

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
use crate::node_endpoints::NodeEndpointSettings;
use crate::streaming::StreamingService;
pub(crate) use container_logs::LogLimits;

/// What the endpoints answer from.
pub(crate) struct EndpointState {
    host: Arc<dyn HostInterface>,
    clock: Arc<dyn Clock>,
    configuration: Value,
    log_limits: Arc<LogLimits>,
    lists: Arc<Semaphore>,
}

impl EndpointState {
    fn new(
        host: Arc<dyn HostInterface>,
        clock: Arc<dyn Clock>,
        configuration: Value,
        log_limits: Arc<LogLimits>,
    ) -> Arc<Self> {
        let lists = Arc::new(Semaphore::new(pods::MAX_LISTS));
        Arc::new(Self { host, clock, configuration, log_limits, lists })
    }
}

/// The router of the health port.
pub(crate) fn health(host: Arc<dyn HostInterface>) -> Router {
    health::routes(host)
}

/// The router of the read-only port, which needs no authentication.
pub(crate) fn read_only(
    host: Arc<dyn HostInterface>,
    clock: Arc<dyn Clock>,
    log_limits: Arc<LogLimits>,
) -> Router {
    let endpoint_state = EndpointState::new(host, clock, Value::Null, log_limits);
    let health = health::routes(Arc::clone(&endpoint_state.host));
    read_routes().with_state(endpoint_state).merge(health)
}

/// The router of the HTTPS port; without streaming, no debugging handler is served.
pub(crate) fn all(
    host: Arc<dyn HostInterface>,
    clock: Arc<dyn Clock>,
    log_limits: Arc<LogLimits>,
    debugging: Option<Arc<StreamingService>>,
    configuration: Value,
    node: &NodeEndpointSettings,
) -> Router {
    let endpoint_state = EndpointState::new(host, clock, configuration, log_limits);
    let (rest, streaming) = match debugging {
        Some(streaming) => {
            let node_routes = node_routes(node, &endpoint_state, &streaming);
            (debug_routes(), streaming.routes().merge(node_routes))
        }
        None => (disabled_routes(), Router::new()),
    };
    let health = health::routes(Arc::clone(&endpoint_state.host));
    read_routes().merge(rest).with_state(endpoint_state).merge(health).merge(streaming)
}

fn read_routes() -> Router<Arc<EndpointState>> {
    Router::new().route("/pods", get(pods::all)).route("/pods/", get(pods::all))
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
        "/pods",
        "/portForward",
        "/run",
        "/runningpods",
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
