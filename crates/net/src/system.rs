//! The real network behind the [`Network`] seam: HTTP/1.1, TCP and gRPC over one connection a call.
//!
//! No proxy is asked, no redirect followed and no connection kept: what a kubelet asks of pods and of a manifest's URL
//! goes straight there and is over when it is answered.

mod connect;
mod grpc;
mod names;
#[cfg(test)]
mod tests;
mod tls;

use std::io;
use std::time::Duration;

use async_trait::async_trait;
use http_body_util::{BodyExt, Empty};
use hyper::body::{Body, Bytes, Incoming};
use hyper::client::conn::http1;
use hyper::header::{HOST, HeaderMap, HeaderName, HeaderValue};
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::timeout;

use connect::{ClosedOnDrop, Connection, connect};
pub use names::addresses;
pub use tls::{TlsOptions, tls_config};

use crate::{
    GrpcCheck, GrpcResponse, HttpGet, HttpResponse, Network, NetworkError, Scheme, TcpConnect,
};

/// As much of an answer is held at once, in bytes: its head has to fit.
const LONGEST_HEAD: usize = 64 * 1024;

/// The machine's own network.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemNetwork;

#[async_trait]
impl Network for SystemNetwork {
    async fn get(&self, request: &HttpGet) -> Result<HttpResponse, NetworkError> {
        within(request.timeout, || request.url(), send_request(request)).await
    }

    async fn connect(&self, request: &TcpConnect) -> Result<(), NetworkError> {
        let connected = async {
            let socket = connect(&request.host, request.port).await;
            let failed = |error: io::Error| NetworkError::Unreachable {
                url: request.url(),
                why: error.to_string(),
            };
            socket.map(drop).map_err(failed)
        };
        within(request.timeout, || request.url(), connected).await
    }

    async fn check_health(&self, request: &GrpcCheck) -> Result<GrpcResponse, NetworkError> {
        within(request.timeout, || request.url(), grpc::check(request)).await
    }
}

/// The answer, if it comes in time.
async fn within<T>(
    limit: Duration,
    url: impl FnOnce() -> String,
    answer: impl Future<Output = Result<T, NetworkError>>,
) -> Result<T, NetworkError> {
    let late = |_| Err(NetworkError::TimedOut { url: url(), limit });
    timeout(limit, answer).await.unwrap_or_else(late)
}

async fn send_request(request: &HttpGet) -> Result<HttpResponse, NetworkError> {
    // An invalid request fails before anything is connected.
    let http_request = build_request(request)?;
    let socket = connect(&request.host, request.port).await.and_then(Connection::into_stream);
    let socket = socket.map_err(|error| unreachable(request, &error))?;
    match request.scheme {
        Scheme::Http => exchange(request, http_request, ClosedOnDrop(socket)).await,
        Scheme::Https => {
            exchange(request, http_request, tls::connect_tls(request, socket).await?).await
        }
    }
}

/// Sends the question and reads the answer. The connection is driven beside it and ends with it.
async fn exchange(
    request: &HttpGet,
    http_request: Request<Empty<Bytes>>,
    stream: impl AsyncRead + AsyncWrite + Unpin,
) -> Result<HttpResponse, NetworkError> {
    let mut client = http1::Builder::new();
    let shaken = client.max_buf_size(LONGEST_HEAD).handshake(TokioIo::new(stream)).await;
    let (mut sender, connection) = shaken.map_err(|error| connection_error(request, &error))?;
    let exchange = async {
        let response = sender.send_request(http_request).await;
        read(request, response.map_err(|error| connection_error(request, &error))?).await
    };
    tokio::pin!(exchange, connection);
    tokio::select! {
        biased;
        answer = &mut exchange => return answer,
        // A server may close behind its last byte; what it sent lies ready all the same.
        _ = &mut connection => {}
    }
    exchange.await
}

fn build_request(request: &HttpGet) -> Result<Request<Empty<Bytes>>, NetworkError> {
    let mut http_request = Request::get(&request.path_and_query)
        .body(Empty::new())
        .map_err(|error| malformed(request, error.to_string()))?;
    *http_request.headers_mut() = headers(request)?;
    Ok(http_request)
}

fn headers(request: &HttpGet) -> Result<HeaderMap, NetworkError> {
    let mut headers = HeaderMap::new();
    for (name, value) in &request.headers {
        // The value may be a secret: the error names only the header.
        let wrong = || malformed(request, format!("{name:?} cannot be sent as a header"));
        let key = HeaderName::try_from(name).map_err(|_| wrong())?;
        headers.append(key, HeaderValue::try_from(value).map_err(|_| wrong())?);
    }
    if !headers.contains_key(HOST) {
        let host = host_header(request);
        let wrong = |_| malformed(request, format!("{host:?} is no host"));
        headers.insert(HOST, HeaderValue::try_from(&host).map_err(wrong)?);
    }
    Ok(headers)
}

/// Host and port, without the default port.
fn host_header(request: &HttpGet) -> String {
    let authority = request.authority();
    let expected = match request.scheme {
        Scheme::Http => ":80",
        Scheme::Https => ":443",
    };
    authority.strip_suffix(expected).map(str::to_owned).unwrap_or(authority)
}

/// Reads no more of the body than is wanted.
async fn read(
    request: &HttpGet,
    response: Response<Incoming>,
) -> Result<HttpResponse, NetworkError> {
    let (parts, mut rest) = response.into_parts();
    // Who wants none of it does not wait for it either: it may never come.
    let wanted = request.body_limit > 0 || Body::is_end_stream(&rest);
    let (mut body, mut whole) = (Vec::new(), wanted);
    while whole && let Some(frame) = rest.frame().await {
        let frame = frame.map_err(|error| connection_error(request, &error))?;
        let bytes = frame.into_data().unwrap_or_default();
        let room = request.body_limit.saturating_sub(body.len());
        whole = bytes.len() <= room;
        body.extend(bytes.into_iter().take(room));
    }
    let texts = parts.headers.iter().filter_map(|(name, value)| {
        value.to_str().ok().map(|value| (name.to_string(), value.to_owned()))
    });
    Ok(HttpResponse {
        status: parts.status.as_u16(),
        headers: texts.collect(),
        body,
        is_complete: whole,
    })
}

/// An answer that is no HTTP is one thing, a connection that breaks another.
fn connection_error(request: &HttpGet, error: &hyper::Error) -> NetworkError {
    if error.is_parse() || error.is_user() {
        return malformed(request, with_causes(error));
    }
    NetworkError::Unreachable { url: request.url(), why: with_causes(error) }
}

fn unreachable(request: &HttpGet, error: &io::Error) -> NetworkError {
    NetworkError::Unreachable { url: request.url(), why: error.to_string() }
}

fn malformed(request: &HttpGet, why: String) -> NetworkError {
    NetworkError::Malformed { url: request.url(), why }
}

/// An error and what it came of: the first alone says little.
fn with_causes(error: &dyn std::error::Error) -> String {
    let causes = std::iter::successors(Some(error), |error| error.source());
    causes.map(ToString::to_string).collect::<Vec<_>>().join(": ")
}
