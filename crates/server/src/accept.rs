//! The accept loop of every HTTP server of the agent.
//!
//! Connections are limited in number, silence and length, may be upgraded (which exec, attach and port-forward need), and end
//! gracefully. Each is a task of its own, so that a client that hangs or sends garbage harms only its own connection.

use std::convert::Infallible;
use std::future::Future;
use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use hyper::Request;
use hyper::body::Incoming;
use hyper::http::Extensions;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use rustix::net::sockopt;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream, UnixListener, UnixStream};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;
use tower::ServiceExt;

use crate::connections::ConnectionHandle;
use write_timeout::WriteTimeout;

mod http2;
#[cfg(test)]
mod tests;
mod write_timeout;

/// After an accept that failed: the cause, mostly a lack of file descriptors, lasts for a while.
const AFTER_A_FAILURE: Duration = Duration::from_millis(100);
/// A connection on which nothing comes is asked whether it is alive.
const KEEPALIVE_AFTER: Duration = Duration::from_secs(15);
const KEEPALIVE_EVERY: Duration = Duration::from_secs(5);
const KEEPALIVE_TRIES: u32 = 3;
/// So long the other end may take nothing of what is sent, or be silent about it.
const LONGEST_UNACKNOWLEDGED_MILLIS: u32 = 5 * 60 * 1000;
/// How long requests under way may take once the server is told to end.
const DRAIN: Duration = Duration::from_secs(1);

/// The limits of one listener's connections.
#[derive(Clone, Copy, Debug)]
pub struct ConnectionLimits {
    /// Connections at once; further ones wait to be accepted.
    pub connections: usize,
    /// How long a client may take to send the head of its first or next request.
    pub header_timeout: Duration,
    /// The largest head of a request, in bytes.
    pub max_head_bytes: usize,
    /// How long a client may take nothing of what is sent to it.
    pub write_timeout: Duration,
    /// How long a connection may last, unless it is upgraded.
    pub lifetime: Duration,
}

/// A socket that accepts connections.
pub trait Listener: Send + 'static {
    /// What it accepts.
    type Stream: Send + 'static;

    /// The next connection.
    fn accept(&self) -> impl Future<Output = io::Result<Self::Stream>> + Send;

    /// Where it listens, as logs name it.
    fn endpoint(&self) -> String;
}

impl Listener for TcpListener {
    type Stream = TcpStream;

    async fn accept(&self) -> io::Result<TcpStream> {
        let (stream, _) = Self::accept(self).await?;
        // Without them responses are only later, and a client that is lost is noticed only when its lifetime is over.
        stream.set_nodelay(true).ok();
        enable_keepalive(&stream).ok();
        Ok(stream)
    }

    fn endpoint(&self) -> String {
        self.local_addr().map(|address| address.to_string()).unwrap_or_default()
    }
}

/// Lets the kernel close connections whose other end is gone. A client that is there and takes nothing may stay longer.
fn enable_keepalive(stream: &TcpStream) -> io::Result<()> {
    sockopt::set_tcp_keepidle(stream, KEEPALIVE_AFTER)?;
    sockopt::set_tcp_keepintvl(stream, KEEPALIVE_EVERY)?;
    sockopt::set_tcp_keepcnt(stream, KEEPALIVE_TRIES)?;
    sockopt::set_tcp_user_timeout(stream, LONGEST_UNACKNOWLEDGED_MILLIS)?;
    Ok(sockopt::set_socket_keepalive(stream, true)?)
}

impl Listener for UnixListener {
    type Stream = UnixStream;

    async fn accept(&self) -> io::Result<UnixStream> {
        Self::accept(self).await.map(|(stream, _)| stream)
    }

    fn endpoint(&self) -> String {
        let address = self.local_addr().ok();
        let path = address.as_ref().and_then(|address| address.as_pathname());
        path.map(|path| path.display().to_string()).unwrap_or_default()
    }
}

/// Shared with the task that serves it again after a panic.
impl<L: Listener + Sync> Listener for Arc<L> {
    type Stream = L::Stream;

    async fn accept(&self) -> io::Result<Self::Stream> {
        self.as_ref().accept().await
    }

    fn endpoint(&self) -> String {
        self.as_ref().endpoint()
    }
}

/// The bytes of a connection, encrypted or not.
pub trait ByteStream: AsyncRead + AsyncWrite + Send + Unpin + 'static {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin + 'static> ByteStream for T {}

/// A connection on which HTTP can begin.
pub struct HttpConnection {
    /// Its bytes.
    pub stream: Box<dyn ByteStream>,
    /// What answers its requests.
    pub router: Router,
    /// What is known of the client; each request gets it.
    pub extensions: Extensions,
    /// Whether client and server have agreed on HTTP/2.
    pub is_http2: bool,
}

/// Serves what `listener` accepts until `end` is cancelled; requests under way may finish, within a second.
///
/// `prepare` makes a [`HttpConnection`] of an accepted stream in the connection's own task, or none of one that is to be closed.
pub async fn serve<L, P, F>(
    listener: L,
    limits: ConnectionLimits,
    end: CancellationToken,
    prepare: P,
) where
    L: Listener,
    P: Fn(L::Stream) -> F,
    F: Future<Output = Option<HttpConnection>> + Send + 'static,
{
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            () = end.cancelled() => break,
            accepted = listener.accept(), if connections.len() < limits.connections => match accepted {
                Ok(stream) => {
                    connections.spawn(answer(prepare(stream), limits, end.clone()));
                }
                Err(error) if is_of_one_connection(&error) => {
                    tracing::debug!(%error, "connection ended before it was accepted");
                }
                Err(error) => {
                    tracing::warn!(endpoint = listener.endpoint(), %error, "connection not accepted, will retry");
                    sleep(AFTER_A_FAILURE).await;
                }
            },
            Some(_) = connections.join_next() => {}
        }
    }
    drop(listener);
    let drained = async { while connections.join_next().await.is_some() {} };
    if timeout(DRAIN, drained).await.is_err() {
        tracing::debug!(
            count = connections.len(),
            "connections closed before their requests were answered"
        );
    }
}

/// Whether the client's network failed. Such an error says nothing about the next connection.
fn is_of_one_connection(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionReset, HostUnreachable, NetworkUnreachable};
    let kinds = [ConnectionAborted, ConnectionReset, HostUnreachable, NetworkUnreachable];
    kinds.contains(&error.kind())
}

async fn answer(
    prepared: impl Future<Output = Option<HttpConnection>>,
    limits: ConnectionLimits,
    end: CancellationToken,
) {
    let Some(HttpConnection { stream, router, extensions, is_http2 }) = prepared.await else {
        return;
    };
    let handle = extensions.get::<ConnectionHandle>().cloned();
    let handler = RequestHandler { router, extensions, max_head_bytes: limits.max_head_bytes };
    let answered = async {
        if is_http2 {
            let longest = limits.lifetime.saturating_mul(2);
            timeout(longest, http2::serve(stream, handler, limits, end)).await.ok();
        } else {
            timeout(limits.lifetime, answer_http1(stream, handler, limits, end)).await.ok();
        }
    };
    tokio::select! {
        () = answered => {}
        () = evicted(handle.as_ref()) => {}
    }
}

async fn answer_http1(
    stream: Box<dyn ByteStream>,
    handler: RequestHandler,
    limits: ConnectionLimits,
    end: CancellationToken,
) {
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new())
        .header_read_timeout(limits.header_timeout)
        .max_buf_size(limits.max_head_bytes);
    let stream = TokioIo::new(WriteTimeout::new(stream, limits.write_timeout));
    let service = service_fn(move |request| handler.answer(request));
    let mut connection = pin!(http.serve_connection(stream, service).with_upgrades());
    // A failure concerns the client, which has its answer or asks again.
    tokio::select! {
        _ = connection.as_mut() => {}
        () = end.cancelled() => {
            connection.as_mut().graceful_shutdown();
            connection.await.ok();
        }
    }
}

/// Answers the requests of one connection.
struct RequestHandler {
    router: Router,
    extensions: Extensions,
    max_head_bytes: usize,
}

impl RequestHandler {
    fn answer(
        &self,
        mut request: Request<Incoming>,
    ) -> impl Future<Output = Result<Response, Infallible>> + Send + use<> {
        request.extensions_mut().extend(self.extensions.clone());
        let is_too_long = head_bytes(&request) > self.max_head_bytes;
        let router = self.router.clone();
        async move {
            if is_too_long {
                return Ok(StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE.into_response());
            }
            router.oneshot(request).await
        }
    }
}

/// About as many bytes as the head had. hyper bounds its buffer, and takes a head that fits into twice the bound.
fn head_bytes(request: &Request<Incoming>) -> usize {
    let uri = request.uri();
    let target = uri.path().len() + uri.query().map_or(0, str::len);
    request
        .headers()
        .iter()
        .fold(target, |sum, (name, value)| sum + name.as_str().len() + value.len())
}

/// Waits until the connection has to go for others; for ever, where connections are not counted.
async fn evicted(handle: Option<&ConnectionHandle>) {
    match handle {
        Some(handle) => handle.evicted().await,
        None => std::future::pending().await,
    }
}
