//! The read part of the OCI distribution protocol.

use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::extract::State;
use axum::http::header::{AUTHORIZATION, CONTENT_LENGTH, CONTENT_TYPE, WWW_AUTHENTICATE};
use axum::http::{HeaderMap, HeaderName, StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use tokio::net::TcpListener;
use tokio::sync::oneshot;

use super::{RegistryCredentials, RegistryStore, Repository, lock};
use crate::images::Blob;

/// Serves until told to stop, or until the sender of that message is dropped.
pub(super) async fn serve(
    listener: TcpListener,
    store: Arc<RegistryStore>,
    stop: oneshot::Receiver<()>,
) {
    let router = Router::new().fallback(answer).with_state(store);
    tokio::select! {
        // It ends by itself only if it cannot accept any more; then clients will notice.
        _ = axum::serve(listener, router).into_future() => {}
        _ = stop => {}
    }
}

/// What a request asks for.
#[derive(Debug, PartialEq, Eq)]
enum RegistryRequest<'a> {
    Manifest(&'a str),
    Blob(&'a str),
}

/// Names of repositories may have slashes in them, so a path is read from its end.
fn read_path(path: &str) -> Option<(&str, RegistryRequest<'_>)> {
    let (rest, last) = path.strip_prefix("/v2/")?.rsplit_once('/')?;
    let (repository, kind) = rest.rsplit_once('/')?;
    match kind {
        "manifests" => Some((repository, RegistryRequest::Manifest(last))),
        "blobs" => Some((repository, RegistryRequest::Blob(last))),
        _ => None,
    }
}

async fn answer(State(store): State<Arc<RegistryStore>>, uri: Uri, headers: HeaderMap) -> Response {
    if uri.path() == "/v2/" {
        return StatusCode::OK.into_response();
    }
    let Some((name, wanted)) = read_path(uri.path()) else {
        return StatusCode::NOT_FOUND.into_response();
    };
    let (delay, response) = match lock(&store.repositories).get_mut(name) {
        Some(repository) => (repository.behaviour.delay, repository.answer(&wanted, &headers)),
        None => return StatusCode::NOT_FOUND.into_response(),
    };
    tokio::time::sleep(delay).await;
    response
}

impl Repository {
    fn answer(&mut self, wanted: &RegistryRequest<'_>, headers: &HeaderMap) -> Response {
        match wanted {
            RegistryRequest::Manifest(_) => self.requests.manifests += 1,
            RegistryRequest::Blob(_) => self.requests.blobs += 1,
        }
        if let Some(status) = self.behaviour.failure {
            let status = StatusCode::from_u16(status);
            return status.unwrap_or(StatusCode::INTERNAL_SERVER_ERROR).into_response();
        }
        if !self.behaviour.credentials.as_ref().is_none_or(|wanted| are_given(wanted, headers)) {
            self.requests.denied += 1;
            let challenge = [(WWW_AUTHENTICATE, "Basic realm=\"rig\"")];
            return (StatusCode::UNAUTHORIZED, challenge).into_response();
        }
        let found = match wanted {
            RegistryRequest::Manifest(reference) => self.manifests.get(*reference),
            RegistryRequest::Blob(digest) => self.blobs.get(*digest),
        };
        found.map_or_else(|| StatusCode::NOT_FOUND.into_response(), send)
    }
}

fn are_given(wanted: &RegistryCredentials, headers: &HeaderMap) -> bool {
    let pair = STANDARD.encode(format!("{}:{}", wanted.username, wanted.password));
    headers.get(AUTHORIZATION).is_some_and(|given| given == format!("Basic {pair}").as_str())
}

/// The length is sent even where no body follows, as in the response to a HEAD request.
fn send(blob: &Blob) -> Response {
    let headers = [
        (CONTENT_TYPE, blob.media_type.to_owned()),
        (CONTENT_LENGTH, blob.bytes.len().to_string()),
        (HeaderName::from_static("docker-content-digest"), blob.digest.clone()),
    ];
    (headers, Body::from(blob.bytes.clone())).into_response()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_read_from_their_end() {
        let rows = [
            ("/v2/a/manifests/1", Some(("a", RegistryRequest::Manifest("1")))),
            (
                "/v2/a/b/c/manifests/sha256:0",
                Some(("a/b/c", RegistryRequest::Manifest("sha256:0"))),
            ),
            (
                "/v2/manifests/blobs/sha256:0",
                Some(("manifests", RegistryRequest::Blob("sha256:0"))),
            ),
            ("/v2/a/tags/list", None),
            ("/v2/manifests/1", None),
            ("/v1/a/manifests/1", None),
            ("/", None),
        ];
        for (path, expected) in rows {
            assert_eq!(read_path(path), expected, "{path}");
        }
    }
}
