//! `/healthz` and one path below it for each check.

use std::sync::Arc;

use axum::Router;
use axum::extract::{Path, RawQuery, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use oarsman_core::healthz::{self, HealthAnswer, HealthCheck, HealthQuery};

use crate::host_interface::HostInterface;
use crate::query;
use crate::server_metrics::ServerMetrics;

type HealthState = (Arc<dyn HostInterface>, Arc<ServerMetrics>);

pub(super) fn routes(host: Arc<dyn HostInterface>, metrics: Arc<ServerMetrics>) -> Router {
    Router::new()
        .route("/healthz", get(all))
        .route("/healthz/{check}", get(one))
        .with_state((host, metrics))
}

/// Every check, in the Go kubelet's order. That this is answered is what `ping` says.
pub(super) fn checks(host: &dyn HostInterface) -> [HealthCheck; 3] {
    [
        HealthCheck { name: "ping", result: Ok(()) },
        HealthCheck { name: "log", result: host.log_health() },
        HealthCheck { name: "syncloop", result: host.sync_loop_health() },
    ]
}

async fn all(State((host, metrics)): State<HealthState>, RawQuery(query): RawQuery) -> Response {
    let checks = checks(&*host);
    metrics.record_health(&checks);
    response(healthz::all(&checks, &health_query(query.as_deref())))
}

async fn one(State((host, _)): State<HealthState>, Path(name): Path<String>) -> Response {
    match checks(&*host).iter().find(|check| check.name == name) {
        Some(check) => response(healthz::one(check)),
        None => StatusCode::NOT_FOUND.into_response(),
    }
}

fn health_query(query: Option<&str>) -> HealthQuery {
    let pairs = query::read(query.unwrap_or_default());
    let exclude = pairs.iter().filter(|(name, _)| name == "exclude");
    HealthQuery {
        verbose: pairs.iter().any(|(name, _)| name == "verbose"),
        exclude: exclude.map(|(_, value)| value.clone()).collect(),
    }
}

fn response(answer: HealthAnswer) -> Response {
    let status = if answer.is_healthy { StatusCode::OK } else { StatusCode::INTERNAL_SERVER_ERROR };
    (status, answer.text).into_response()
}
