//! `/containerLogs`: streams a container's log, and follows it on request.

mod limits;
mod sender;

use std::io;
use std::sync::Arc;

use axum::body::{Body, Bytes};
use axum::extract::{Path as PathOf, RawQuery, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use futures::stream::unfold;
use oarsman_core::ids::FullName;
use oarsman_core::log_request::{ContainerLogOptions, LogError, log_restart_count};
use oarsman_core::pod::PodExt;
use tokio::sync::mpsc;
use tokio::time::Instant;

pub(crate) use limits::LogLimits;

use super::EndpointState;
use crate::logs::{LogFollower, LogPrinter, PrintOptions};
use crate::query;
use sender::{FollowedContainer, LogResponse};

/// Pieces that may wait for the reader.
const CHANNEL_CAPACITY: usize = 1;

/// `/containerLogs/{namespace}/{pod}/{container}`.
pub(super) async fn serve(
    State(endpoint_state): State<Arc<EndpointState>>,
    PathOf((namespace, name, container)): PathOf<(String, String, String)>,
    RawQuery(query): RawQuery,
) -> Response {
    let options =
        match ContainerLogOptions::read(&query::read(query.as_deref().unwrap_or_default())) {
            Ok(options) => options,
            Err(why) => return refuse(&why),
        };
    let full_name = FullName { name, namespace };
    let name = &full_name.name;
    let Some(pod) = endpoint_state.host.pod(&full_name) else {
        return refuse(&LogError::Unknown(format!("pod {name:?} does not exist")));
    };
    let start = match log_restart_count(&pod.pod, pod.status(), &container, options.previous) {
        Ok(start) => start,
        Err(why) => return refuse(&why),
    };
    let place = endpoint_state.host.log_directory(&pod.pod, &container);
    let Some(permit) = endpoint_state.log_limits.admit(&full_name) else {
        if endpoint_state.log_limits.is_warning_due(Instant::now()) {
            tracing::warn!(pod = %full_name, container, "container log refused, too many are read");
        }
        return (StatusCode::TOO_MANY_REQUESTS, "too many logs are read at once").into_response();
    };
    let directory = place.0.clone();
    let opened =
        endpoint_state.log_limits.read(move || LogFollower::at(&directory, start, options.tail));
    let follower = match opened.await.flatten() {
        Ok(follower) => follower,
        Err(error) => {
            let why = format!(
                "the log of container {container:?} in pod {name:?} cannot be read: {error}"
            );
            return refuse(&LogError::Absent(why));
        }
    };
    let style = PrintOptions {
        since: options.since(endpoint_state.clock.wall()),
        prefix: None,
        timestamps: options.timestamps,
    };
    let log = LogResponse::new(follower, LogPrinter::new(style), options.limit);
    let host = Arc::clone(&endpoint_state.host);
    let uid = pod.pod.uid();
    let followed =
        FollowedContainer { host, pod: full_name, uid, container, start, log_directory: place };
    let (sender, receiver) = mpsc::channel(CHANNEL_CAPACITY);
    // It ends with its client: nothing can be sent over a connection that is closed.
    tokio::spawn(sender::send(log, options.follow.then_some(followed), permit, sender));
    let stream = unfold(receiver, async |mut receiver| {
        let chunk: io::Result<Bytes> = receiver.recv().await?;
        Some((chunk, receiver))
    });
    ([(header::CONTENT_TYPE, "text/plain")], Body::from_stream(Box::pin(stream))).into_response()
}

fn refuse(why: &LogError) -> Response {
    let (status, said) = match why {
        LogError::Invalid(said) => (StatusCode::UNPROCESSABLE_ENTITY, said),
        LogError::Unknown(said) => (StatusCode::NOT_FOUND, said),
        LogError::Absent(said) => (StatusCode::BAD_REQUEST, said),
    };
    (status, said.clone()).into_response()
}
