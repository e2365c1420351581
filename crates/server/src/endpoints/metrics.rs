//! `/metrics`, `/metrics/probes` and `/metrics/slis`: the kubelet's own numbers, in the text format of Prometheus.

use std::sync::Arc;

use axum::Router;
use axum::extract::State;
use axum::response::Response;
use axum::routing::get;
use oarsman_core::exposition::CONTENT_TYPE;

use super::list_limit::ListPermit;
use super::{EndpointState, health};

pub(super) fn routes() -> Router<Arc<EndpointState>> {
    Router::new()
        .route("/metrics", get(kubelet))
        .route("/metrics/probes", get(probes))
        .route("/metrics/slis", get(slis))
}

async fn kubelet(State(state): State<Arc<EndpointState>>, permit: ListPermit) -> Response {
    permit.send(CONTENT_TYPE, state.metrics.kubelet_text().await)
}

async fn probes(State(state): State<Arc<EndpointState>>, permit: ListPermit) -> Response {
    permit.send(CONTENT_TYPE, state.metrics.probe_text())
}

async fn slis(State(state): State<Arc<EndpointState>>, permit: ListPermit) -> Response {
    let checks = health::checks(&*state.host);
    permit.send(CONTENT_TYPE, state.metrics.sli_text(&checks))
}
