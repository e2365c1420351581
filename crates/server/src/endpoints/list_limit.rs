//! How many long answers are sent at once.

use std::convert::Infallible;
use std::sync::Arc;

use axum::body::{Body, Bytes};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use futures::stream;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Lists, statistics and metrics that are sent at once. A list holds one pod, which may have several MiB; the others have all of their text.
const MAX_LISTS: usize = 32;

/// The limit of one server: clients that need no authentication cannot use up that of others.
#[derive(Clone, Debug)]
pub(crate) struct ListLimit(Arc<Semaphore>);

impl Default for ListLimit {
    fn default() -> Self {
        Self(Arc::new(Semaphore::new(MAX_LISTS)))
    }
}

/// The right to send one answer, held until the client has taken it or is gone.
#[derive(Debug)]
pub(super) struct ListPermit(OwnedSemaphorePermit);

/// There are too many.
#[derive(Debug)]
pub(super) struct TooManyLists;

impl ListLimit {
    pub(super) fn admit(&self) -> Result<ListPermit, TooManyLists> {
        Arc::clone(&self.0).try_acquire_owned().map(ListPermit).map_err(|_| TooManyLists)
    }
}

impl ListPermit {
    /// Sends a text that is held as a whole.
    pub(super) fn send(self, content_type: &'static str, text: impl Into<Bytes>) -> Response {
        let parts = [text.into(), Bytes::new()].into_iter().map(move |part| {
            let _until_the_end = &self.0;
            Ok::<_, Infallible>(part)
        });
        let body = Body::from_stream(stream::iter(parts));
        ([(header::CONTENT_TYPE, content_type)], body).into_response()
    }
}

impl IntoResponse for TooManyLists {
    fn into_response(self) -> Response {
        let said = "too many lists, statistics and metrics are read at once";
        (StatusCode::TOO_MANY_REQUESTS, [(header::RETRY_AFTER, "1")], said).into_response()
    }
}
