//! Connection pools with a limited number of requests each.
//!
//! API servers allow a hundred concurrent requests on an HTTP/2 connection. A watch is a request that stays open, so with enough of
//! them all other requests would wait for ever. Each pool therefore has a limit below that, and there are as many pools as are needed.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use futures::future::BoxFuture;
use hyper::body::{Body as HttpBody, Bytes, Frame, Incoming, SizeHint};
use hyper::{Request, Response};
use hyper_util::client::legacy::Client as Pool;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use kube::client::Body;
use oarsman_sync::Guarded;
use tokio::time::timeout;
use tower::{BoxError, Service};

use super::connector::Connector;

/// Fewer than the hundred that API servers allow, since a few may still be closing.
const CAPACITY: usize = 80;
/// An unused connection is closed after this.
const IDLE: Duration = Duration::from_secs(90);
/// An HTTP/2 connection on which nothing comes is asked whether it is alive, as the Go kubelet does.
const PING_AFTER: Duration = Duration::from_secs(30);
const PING_ANSWER: Duration = Duration::from_secs(15);
/// The head of an answer, also to a watch, comes sooner.
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(60);

/// The pools of one set of credentials.
#[derive(Clone)]
pub(super) struct ConnectionPools {
    connector: Connector,
    open: Arc<Guarded<Vec<LimitedPool>>>,
}

#[derive(Clone)]
struct LimitedPool {
    pool: Pool<Connector, Body>,
    used: Arc<AtomicUsize>,
}

/// The slot of a request in its pool, until the response is read.
#[derive(Debug)]
struct RequestSlot {
    used: Arc<AtomicUsize>,
}

impl Drop for RequestSlot {
    fn drop(&mut self) {
        self.used.fetch_sub(1, Ordering::Relaxed);
    }
}

impl ConnectionPools {
    pub(super) fn new(connector: Connector) -> Self {
        Self { connector, open: Arc::default() }
    }

    /// The first pool with a free slot, so that the last ones become idle.
    fn acquire(&self) -> (Pool<Connector, Body>, RequestSlot) {
        let mut open = self.open.lock();
        let free = open.iter().position(|pool| pool.used.load(Ordering::Relaxed) < CAPACITY);
        let index = free.unwrap_or_else(|| {
            open.push(LimitedPool { pool: pool(self.connector.clone()), used: Arc::default() });
            open.len() - 1
        });
        let LimitedPool { pool, used } = open[index].clone();
        used.fetch_add(1, Ordering::Relaxed);
        (pool, RequestSlot { used })
    }
}

fn pool(connector: Connector) -> Pool<Connector, Body> {
    Pool::builder(TokioExecutor::new())
        .timer(TokioTimer::new())
        .pool_timer(TokioTimer::new())
        .pool_idle_timeout(IDLE)
        .http2_keep_alive_interval(PING_AFTER)
        .http2_keep_alive_timeout(PING_ANSWER)
        .build(connector)
}

impl Service<Request<Body>> for ConnectionPools {
    type Response = Response<TrackedBody>;
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<Self::Response, BoxError>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let (pool, slot) = self.acquire();
        Box::pin(async move {
            let what = format!("{} {}", request.method(), request.uri().path());
            match timeout(RESPONSE_TIMEOUT, pool.request(request)).await {
                Ok(answer) => Ok(answer?.map(|body| TrackedBody { body, _slot: slot })),
                Err(_) => Err(format!("{what} was not answered in {RESPONSE_TIMEOUT:?}").into()),
            }
        })
    }
}

/// The body of a response, which holds its slot until it is read or dropped.
#[derive(Debug)]
pub(super) struct TrackedBody {
    body: Incoming,
    _slot: RequestSlot,
}

impl HttpBody for TrackedBody {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        Pin::new(&mut self.get_mut().body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
