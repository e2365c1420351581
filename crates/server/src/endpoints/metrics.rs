//! `/metrics`, `/metrics/probes` and `/metrics/slis`: the kubelet's own numbers, in the text format of Prometheus.

use std::convert::Infallible;
use std::sync::Arc;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use futures::stream;
use oarsman_core::exposition::CONTENT_TYPE;

use super::{EndpointState, health};

pub(super) fn routes() -> Router<Arc<EndpointState>> {
    Router::new()
        .route("/metrics", get(kubelet))
        .route("/metrics/probes", get(probes))
        .route("/metrics/slis", get(slis))
}

async fn kubelet(State(endpoint_state): State<Arc<EndpointState>>) -> Response {
    answer(&endpoint_state, || endpoint_state.metrics.kubelet_text())
}

async fn probes(State(endpoint_state): State<Arc<EndpointState>>) -> Response {
    answer(&endpoint_state, || endpoint_state.metrics.probe_text())
}

async fn slis(State(endpoint_state): State<Arc<EndpointState>>) -> Response {
    answer(&endpoint_state, || {
        endpoint_state.metrics.sli_text(&health::checks(&*endpoint_state.host))
    })
}

/// Sends a text, which is made only if its client may read now: each such text is held until it is sent.
fn answer(endpoint_state: &EndpointState, text: impl FnOnce() -> String) -> Response {
    let Ok(permit) = Arc::clone(&endpoint_state.lists).try_acquire_owned() else {
        let headers = [(header::RETRY_AFTER, "1")];
        let said = "too many lists and metrics are read at once";
        return (StatusCode::TOO_MANY_REQUESTS, headers, said).into_response();
    };
    let parts = [Bytes::from(text()), Bytes::new()].into_iter().map(move |part| {
        let _until_the_end = &permit;
        Ok::<_, Infallible>(part)
    });
    ([(header::CONTENT_TYPE, CONTENT_TYPE)], Body::from_stream(stream::iter(parts))).into_response()
}
