//! HTTP/2 on one connection, with limits against clients that open many streams, reset them, or take nothing.
//!
//! Many streams share a connection here. What the limits of HTTP/1.1 do for a connection has to be done for each stream, too: a
//! stream whose client takes nothing is reset, while others of its connection go on.

mod stream_limits;

use std::pin::pin;
use std::time::Duration;

use axum::body::Body;
use axum::http::header;
use axum::response::Response;
use hyper::Request;
use hyper::body::Incoming;
use hyper::server::conn::http2;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;

use super::write_timeout::WriteTimeout;
use super::{ByteStream, ConnectionLimits, RequestHandler};
use stream_limits::{ProgressBody, StreamExecutor, StreamProgress};

/// Streams of a connection at once. The API server opens another connection for more.
const MAX_STREAMS: u32 = 128;
/// Streams that a client has reset before the server has looked at them; with more its connection ends (rapid reset).
const MAX_PENDING_RESETS: usize = 32;
/// Streams that were reset because of errors of the client; with more its connection ends.
const MAX_ERROR_RESETS: usize = 128;
/// What a client may send of a body before a handler reads it: of one stream, and of all.
const STREAM_WINDOW: u32 = 64 * 1024;
const CONNECTION_WINDOW: u32 = 256 * 1024;
/// What waits to be sent, of one stream.
const MAX_SEND_BUFFER: usize = 64 * 1024;
/// A client that does not answer a ping is gone.
const PING_INTERVAL: Duration = Duration::from_secs(30);
const PING_TIMEOUT: Duration = Duration::from_secs(20);
/// How long a connection may have no stream, as in the Go kubelet. Before the first, it is the time for the head of a request.
const IDLE_TIMEOUT: Duration = Duration::from_secs(90);

/// Serves a connection to its end. After its lifetime no stream begins any more, and those under way have as long again.
pub(super) async fn serve(
    stream: Box<dyn ByteStream>,
    handler: RequestHandler,
    limits: ConnectionLimits,
    end: CancellationToken,
) {
    let close = CancellationToken::new();
    let executor = StreamExecutor::new(limits.write_timeout);
    // Streams end with their connection.
    let _streams = executor.cancel_on_drop();
    let closing = close.clone();
    let service = service_fn(move |request: Request<Incoming>| {
        let (answer, closing) = (handler.answer(request), closing.clone());
        // Polled by the stream's own task, which has the progress.
        async move { answer.await.map(|response| limited(response, &closing)) }
    });
    let io = TokioIo::new(WriteTimeout::new(stream, limits.write_timeout));
    let connection = builder(&executor, &limits).serve_connection(io, service);
    let mut connection = pin!(connection);
    let rest = tokio::select! {
        _ = connection.as_mut() => return,
        () = end.cancelled() => limits.lifetime,
        () = close.cancelled() => limits.lifetime,
        () = sleep(limits.lifetime) => limits.lifetime,
        // No stream is under way. A client that has not even begun to speak HTTP/2 hears nothing of this.
        () = executor.idle(limits.header_timeout, IDLE_TIMEOUT) => limits.header_timeout,
    };
    connection.as_mut().graceful_shutdown();
    // A failure concerns the client, which has its answers or asks again.
    timeout(rest, connection).await.ok();
}

fn builder(executor: &StreamExecutor, limits: &ConnectionLimits) -> http2::Builder<StreamExecutor> {
    let mut builder = http2::Builder::new(executor.clone());
    builder
        .timer(TokioTimer::new())
        .max_concurrent_streams(MAX_STREAMS)
        .max_pending_accept_reset_streams(MAX_PENDING_RESETS)
        .max_local_error_reset_streams(MAX_ERROR_RESETS)
        .max_header_list_size(u32::try_from(limits.max_head_bytes).unwrap_or(u32::MAX))
        .initial_stream_window_size(STREAM_WINDOW)
        .initial_connection_window_size(CONNECTION_WINDOW)
        .max_send_buf_size(MAX_SEND_BUFFER)
        .keep_alive_interval(PING_INTERVAL)
        .keep_alive_timeout(PING_TIMEOUT);
    builder
}

/// The response with a body that tells the stream's task when it is taken. HTTP/2 has no header that closes the connection: where one
/// was to, no further stream begins.
fn limited(mut response: Response, close: &CancellationToken) -> Response {
    if response.headers_mut().remove(header::CONNECTION).is_some_and(|value| value == "close") {
        close.cancel();
    }
    match StreamProgress::current() {
        Some(progress) => response.map(|body| Body::new(ProgressBody::new(body, progress))),
        None => response,
    }
}
