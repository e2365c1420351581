//! Connections to a server that are upgraded to another protocol: a runtime's streaming server, or the agent's own socket.
//!
//! Nothing here follows a redirect: an answer other than 101 is a refusal.

use std::io;
use std::time::Duration;

use http_body_util::{BodyExt, Empty, Limited};
use hyper::body::Bytes;
use hyper::client::conn::http1;
use hyper::header::{CONNECTION, HOST, HeaderName, HeaderValue, UPGRADE};
use hyper::upgrade::Upgraded;
use hyper::{Method, Request, StatusCode};
use hyper_util::rt::TokioIo;
use thiserror::Error;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::time::timeout;

/// The header by which a client of SPDY offers subprotocols, and a server chooses one.
pub const STREAM_PROTOCOL: &str = "x-stream-protocol-version";

/// How long the other end may take to answer.
const LONGEST_UPGRADE: Duration = Duration::from_secs(30);
/// How much of a refusal is read.
const MAX_REFUSAL_BYTES: usize = 64 * 1024;

/// Why there is no connection.
#[derive(Debug, Error)]
pub enum ConnectError {
    /// The URL is not one of a streaming server. It is not shown: a token may be in it.
    #[error("the runtime's URL is not one of http with a host and a port")]
    Url,
    /// The server cannot be reached, or does not speak HTTP.
    #[error("cannot connect to {endpoint}: {message}")]
    Failed {
        /// Where.
        endpoint: String,
        /// Why.
        message: String,
    },
    /// The server does not switch to the protocol.
    #[error("{endpoint} answers {status}: {message}")]
    Refused {
        /// Where.
        endpoint: String,
        /// Its answer.
        status: u16,
        /// The text of its answer.
        message: String,
    },
}

/// A connection on which the other protocol begins.
#[derive(Debug)]
pub struct UpgradedStream {
    /// Its bytes.
    pub stream: TokioIo<Upgraded>,
    /// What the server chose of the protocols that were offered in `X-Stream-Protocol-Version`.
    pub stream_protocol: Option<String>,
}

/// What is asked for.
#[derive(Clone, Debug)]
pub struct UpgradeRequest {
    /// The path and the query.
    pub target: String,
    /// The value of the header `Upgrade`.
    pub protocol: &'static str,
    /// Further headers.
    pub headers: Vec<(&'static str, String)>,
}

/// Host and port, and the path with the query, of a URL of http.
///
/// # Errors
/// When it is another URL.
pub fn parse_url(url: &str) -> Result<(String, String), ConnectError> {
    let uri: hyper::Uri = url.parse().map_err(|_| ConnectError::Url)?;
    let authority = uri.authority().filter(|it| it.port().is_some() && !it.as_str().contains('@'));
    let authority = authority.ok_or(ConnectError::Url)?.to_string();
    if uri.scheme_str() != Some("http") {
        return Err(ConnectError::Url);
    }
    let target = uri.path_and_query().map_or("/", |target| target.as_str()).to_owned();
    Ok((authority, target))
}

/// Connects to a runtime's streaming server over SPDY/3.1; `protocols` are offered in `X-Stream-Protocol-Version`.
///
/// # Errors
/// When the server cannot be reached or refuses.
pub async fn spdy_to_url(url: &str, protocols: &[&str]) -> Result<UpgradedStream, ConnectError> {
    let (endpoint, target) = parse_url(url)?;
    let failed = |error: io::Error| failed(&endpoint, &error);
    let tcp = timeout(LONGEST_UPGRADE, TcpStream::connect(&endpoint)).await;
    let tcp = tcp.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into())).map_err(failed)?;
    // Without it typed characters are only later.
    tcp.set_nodelay(true).map_err(failed)?;
    upgrade(tcp, &endpoint, spdy_request(target, protocols)).await
}

/// A request for SPDY/3.1.
pub fn spdy_request(target: String, protocols: &[&str]) -> UpgradeRequest {
    let offered = |protocol: &&str| (STREAM_PROTOCOL, (*protocol).to_owned());
    UpgradeRequest {
        target,
        protocol: "SPDY/3.1",
        headers: protocols.iter().map(offered).collect(),
    }
}

/// Asks the other end of `stream`, called `endpoint` in errors, to switch protocols.
///
/// # Errors
/// When the other end does not answer in time, or refuses.
pub async fn upgrade<S>(
    stream: S,
    endpoint: &str,
    request: UpgradeRequest,
) -> Result<UpgradedStream, ConnectError>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let answered = timeout(LONGEST_UPGRADE, ask(stream, endpoint, request)).await;
    answered.unwrap_or_else(|_| Err(failed(endpoint, &io::Error::from(io::ErrorKind::TimedOut))))
}

async fn ask<S>(
    stream: S,
    endpoint: &str,
    request: UpgradeRequest,
) -> Result<UpgradedStream, ConnectError>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let (mut sender, connection) =
        http1::handshake(TokioIo::new(stream)).await.map_err(|error| failed(endpoint, &error))?;
    // It ends with the answer, or when it is upgraded.
    tokio::spawn(connection.with_upgrades());
    let request = http_request(endpoint, &request).map_err(|error| failed(endpoint, &error))?;
    let response = sender.send_request(request).await.map_err(|error| failed(endpoint, &error))?;
    if response.status() == StatusCode::SWITCHING_PROTOCOLS {
        let chosen = response.headers().get(STREAM_PROTOCOL);
        let stream_protocol = chosen.and_then(|it| it.to_str().ok()).map(str::to_owned);
        let upgraded = hyper::upgrade::on(response).await;
        let upgraded = upgraded.map_err(|error| failed(endpoint, &error))?;
        return Ok(UpgradedStream { stream: TokioIo::new(upgraded), stream_protocol });
    }
    let status = response.status().as_u16();
    let body = Limited::new(response.into_body(), MAX_REFUSAL_BYTES).collect().await;
    let text = body.map(|body| String::from_utf8_lossy(&body.to_bytes()).trim().to_owned());
    let message = text.unwrap_or_default();
    Err(ConnectError::Refused { endpoint: endpoint.to_owned(), status, message })
}

fn http_request(
    host: &str,
    request: &UpgradeRequest,
) -> Result<Request<Empty<Bytes>>, hyper::http::Error> {
    let mut head = Request::builder().method(Method::POST).uri(&request.target);
    // A WebSocket begins with a GET.
    if request.protocol == "websocket" {
        head = head.method(Method::GET);
    }
    let host =
        HeaderValue::from_str(host).unwrap_or_else(|_| HeaderValue::from_static("localhost"));
    head = head.header(HOST, host).header(CONNECTION, "Upgrade").header(UPGRADE, request.protocol);
    for (name, value) in &request.headers {
        head = head.header(HeaderName::from_static(name), value);
    }
    head.body(Empty::new())
}

fn failed(endpoint: &str, error: &dyn std::error::Error) -> ConnectError {
    ConnectError::Failed { endpoint: endpoint.to_owned(), message: error.to_string() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_of_streaming_servers_are_taken_apart() {
        let rows = [
            ("http://127.0.0.1:4000/exec/AbC_d", Some(("127.0.0.1:4000", "/exec/AbC_d"))),
            ("http://[::1]:4000/attach/x?y=1", Some(("[::1]:4000", "/attach/x?y=1"))),
            ("https://127.0.0.1:4000/exec/x", None),
            ("http://127.0.0.1/exec/x", None),
            ("http://user@127.0.0.1:1/exec/x", None),
            ("/exec/x", None),
            ("", None),
        ];
        for (url, want) in rows {
            let found = parse_url(url).ok();
            let found = found.as_ref().map(|(host, target)| (host.as_str(), target.as_str()));
            assert_eq!(found, want, "{url}");
        }
    }
}
