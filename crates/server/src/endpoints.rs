//! What is served.

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

use crate::source::Source;

/// What endpoints answer from.
pub(crate) struct Desk {
    source: Arc<dyn Source>,
    clock: Arc<dyn Clock>,
    configuration: Value,
}

/// Whether we are well.
pub(crate) fn health() -> Router {
    Router::new().route("/healthz", get(ok)).route("/healthz/ping", get(ok))
}

/// What everybody may read where nobody is asked who they are.
pub(crate) fn harmless(source: Arc<dyn Source>, clock: Arc<dyn Clock>) -> Router {
    let desk = Arc::new(Desk { source, clock, configuration: Value::Null });
    reading().with_state(desk)
}

/// All that is served to those who may.
pub(crate) fn all(
    source: Arc<dyn Source>,
    clock: Arc<dyn Clock>,
    debugging: bool,
    configuration: Value,
) -> Router {
    let desk = Arc::new(Desk { source, clock, configuration });
    let rest = if debugging { debug() } else { switched_off() };
    reading().merge(rest).with_state(desk)
}

fn reading() -> Router<Arc<Desk>> {
    Router::new()
        .route("/healthz", get(ok))
        .route("/healthz/ping", get(ok))
        .route("/pods", get(pods::all))
        .route("/pods/", get(pods::all))
}

fn debug() -> Router<Arc<Desk>> {
    Router::new()
        .route("/containerLogs/{namespace}/{pod}/{container}", get(container_logs::serve))
        .route("/runningpods", get(pods::running))
        .route("/runningpods/", get(pods::running))
        .route("/configz", get(configz))
}

/// The same paths, and those of exec and the like, for who has switched them off.
fn switched_off() -> Router<Arc<Desk>> {
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

async fn ok() -> &'static str {
    "ok"
}

async fn disabled() -> Response {
    (StatusCode::METHOD_NOT_ALLOWED, "Debug endpoints are disabled.").into_response()
}

async fn configz(State(desk): State<Arc<Desk>>) -> Response {
    let mut configuration = desk.configuration.clone();
    if let Value::Object(fields) = &mut configuration {
        fields.insert("kind".to_owned(), json!("KubeletConfiguration"));
        fields.insert("apiVersion".to_owned(), json!("kubelet.config.k8s.io/v1beta1"));
    }
    as_json(&json!({ "kubeletconfig": configuration }))
}

fn as_json(what: &Value) -> Response {
    ([(header::CONTENT_TYPE, "application/json")], what.to_string()).into_response()
}
