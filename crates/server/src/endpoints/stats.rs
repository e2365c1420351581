//! `/stats/summary`, `/metrics/resource` and `/metrics/cadvisor`: what the node, its pods and containers use.

#[cfg(test)]
mod tests;

use std::io;
use std::sync::Arc;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{RawQuery, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use futures::stream::{self, StreamExt};
use oarsman_core::exposition::CONTENT_TYPE;
use oarsman_core::stats::{
    StatsScope, cadvisor_metrics, cpu_and_memory_summary, full_summary, resource_metrics,
};
use tokio::sync::OwnedSemaphorePermit;

use super::EndpointState;
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
    State(endpoint_state): State<Arc<EndpointState>>,
    RawQuery(query): RawQuery,
) -> Response {
    let only_cpu_and_memory = only_cpu_and_memory(query.as_deref());
    let scope = if only_cpu_and_memory { StatsScope::CpuAndMemory } else { StatsScope::Summary };
    let Some(permit) = permit(&endpoint_state) else { return too_many() };
    let snapshot = match endpoint_state.host.stats_provider().stats(scope).await {
        Ok(snapshot) => snapshot,
        Err(error) => return internal_error(&error),
    };
    let shown = match only_cpu_and_memory {
        true => cpu_and_memory_summary(&snapshot),
        false => full_summary(&snapshot),
    };
    match serde_json::to_vec(&shown) {
        Ok(text) => response("application/json", text.into(), permit),
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
async fn resource(State(endpoint_state): State<Arc<EndpointState>>) -> Response {
    let Some(permit) = permit(&endpoint_state) else { return too_many() };
    let measured = endpoint_state.host.stats_provider().stats(StatsScope::Resources).await;
    let text = resource_metrics(measured.as_deref().ok());
    response(CONTENT_TYPE, text.into(), permit)
}

async fn cadvisor(State(endpoint_state): State<Arc<EndpointState>>) -> Response {
    let Some(permit) = permit(&endpoint_state) else { return too_many() };
    match endpoint_state.host.stats_provider().stats(StatsScope::Containers).await {
        Ok(snapshot) => response(CONTENT_TYPE, cadvisor_metrics(&snapshot).into(), permit),
        Err(error) => internal_error(&error),
    }
}

fn permit(endpoint_state: &EndpointState) -> Option<OwnedSemaphorePermit> {
    Arc::clone(&endpoint_state.lists).try_acquire_owned().ok()
}

fn too_many() -> Response {
    let headers = [(header::RETRY_AFTER, "1")];
    let said = "too many lists and statistics are read at once";
    (StatusCode::TOO_MANY_REQUESTS, headers, said).into_response()
}

fn internal_error(error: &StatsError) -> Response {
    (StatusCode::INTERNAL_SERVER_ERROR, error.to_string()).into_response()
}

/// The permit is held until the client has taken the whole text, which may have several MiB.
fn response(content_type: &'static str, text: Bytes, permit: OwnedSemaphorePermit) -> Response {
    let end = stream::once(async move {
        drop(permit);
        Ok::<_, io::Error>(Bytes::new())
    });
    let body = Body::from_stream(stream::iter([Ok(text)]).chain(Box::pin(end)));
    ([(header::CONTENT_TYPE, content_type)], body).into_response()
}
