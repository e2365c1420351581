//! `/stats/summary`, `/metrics/resource` and `/metrics/cadvisor`: what the node, its pods and containers use.

#[cfg(test)]
pub(crate) mod tests;

use std::sync::Arc;

use axum::Router;
use axum::extract::{RawQuery, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use oarsman_core::exposition::CONTENT_TYPE;
use oarsman_core::stats::{
    StatsScope, cadvisor_metrics, cpu_and_memory_summary, full_summary, resource_metrics,
};

use super::EndpointState;
use super::list_limit::ListPermit;
use crate::query;
use crate::stats_provider::StatsError;

/// The routes, which the read-only port has, too.
pub(super) fn routes() -> Router<Arc<EndpointState>> {
    Router::new()
        .route("/stats/summary", get(summary).post(summary))
        .route("/stats/summary/", get(summary).post(summary))
        .route("/metrics/resource", get(resource))
        .route("/metrics/cadvisor", get(cadvisor))
}

async fn summary(
    State(state): State<Arc<EndpointState>>,
    RawQuery(query): RawQuery,
    permit: ListPermit,
) -> Response {
    let only_cpu_and_memory = only_cpu_and_memory(query.as_deref());
    let scope = if only_cpu_and_memory { StatsScope::CpuAndMemory } else { StatsScope::Summary };
    let snapshot = match state.host.stats_provider().stats(scope).await {
        Ok(snapshot) => snapshot,
        Err(error) => return internal_error(&error),
    };
    let shown = match only_cpu_and_memory {
        true => cpu_and_memory_summary(&snapshot),
        false => full_summary(&snapshot),
    };
    match serde_json::to_vec(&shown) {
        Ok(text) => permit.send("application/json", text),
        Err(error) => internal_error(&StatsError(error.to_string())),
    }
}

/// Only the word `true`, given once, means yes, as with the Go kubelet.
fn only_cpu_and_memory(query: Option<&str>) -> bool {
    let pairs = query::read(query.unwrap_or_default());
    let mut values = pairs.iter().filter(|(name, _)| name == "only_cpu_and_memory");
    values.next().is_some_and(|(_, value)| value == "true") && values.next().is_none()
}

/// A node that cannot be measured has an answer as well, which says so.
async fn resource(State(state): State<Arc<EndpointState>>, permit: ListPermit) -> Response {
    let measured = state.host.stats_provider().stats(StatsScope::Resources).await;
    permit.send(CONTENT_TYPE, resource_metrics(measured.as_deref().ok()))
}

async fn cadvisor(State(state): State<Arc<EndpointState>>, permit: ListPermit) -> Response {
    match state.host.stats_provider().stats(StatsScope::Containers).await {
        Ok(snapshot) => permit.send(CONTENT_TYPE, cadvisor_metrics(&snapshot)),
        Err(error) => internal_error(&error),
    }
}

fn internal_error(error: &StatsError) -> Response {
    (StatusCode::INTERNAL_SERVER_ERROR, error.to_string()).into_response()
}
