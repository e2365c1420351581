//! URLs for the sessions of a runtime in this process: clients of its CRI socket, such as crictl, connect to a small streaming server on the
//! loopback address. A URL has a random token, and is good for one connection within a minute.

#[cfg(test)]
mod tests;

use std::any::Any;
use std::collections::BTreeMap;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::{Path, Request, State};
use axum::http::{Extensions, StatusCode};
use axum::routing::get;
use oarsman_core::ids::FullName;
use oarsman_cri::{Runtime, SessionPurpose, StreamingEndpoint, StreamingSession};
use oarsman_seam::{Call, CallFault, Middleware, SeamError, WithMiddleware};
use oarsman_streaming::relay::RemoteCommandStreams;
use oarsman_sync::Guarded;
use ring::rand::{SecureRandom, SystemRandom};
use tokio::net::TcpListener;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::client_protocol::ClientProtocol;
use super::session::{Session, SessionTarget};
use super::{Answer, MAX_SESSIONS, MAX_SESSIONS_OF_A_POD, StreamingRefusal};
use crate::accept::{self, ConnectionLimits, HttpConnection};
use crate::pod_quota::PodQuota;

/// How long a URL is good.
const LONGEST_WAIT: Duration = Duration::from_secs(60);
/// URLs that wait for their clients.
const MAX_WAITING: usize = 1000;
/// Of a connection on which nothing is sent, as with containerd.
const IDLE_TIMEOUT: Duration = Duration::from_secs(4 * 60 * 60);
const TOKEN_BYTES: usize = 16;
/// Until a connection is upgraded. After that a user of exec may read nothing for hours.
const LIMITS: ConnectionLimits = ConnectionLimits {
    connections: 128,
    header_timeout: Duration::from_secs(10),
    max_head_bytes: 16 * 1024,
    write_timeout: IDLE_TIMEOUT,
    lifetime: Duration::from_secs(60),
};

/// A streaming server, and the sessions that wait for a client.
#[derive(Debug)]
pub struct SessionUrls {
    listener: Arc<TcpListener>,
    address: SocketAddr,
    waiting: Guarded<BTreeMap<String, WaitingSession>>,
    connections: Arc<PodQuota>,
}

#[derive(Debug)]
struct WaitingSession {
    session: StreamingSession,
    /// The container or the sandbox.
    object: String,
    until: Instant,
}

impl SessionUrls {
    /// Listens on a port of 127.0.0.1 that is free.
    ///
    /// # Errors
    /// When there is none.
    pub async fn bind() -> io::Result<Arc<Self>> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let address = listener.local_addr()?;
        Ok(Arc::new(Self {
            listener: Arc::new(listener),
            address,
            waiting: Guarded::default(),
            connections: PodQuota::new(MAX_SESSIONS, MAX_SESSIONS_OF_A_POD),
        }))
    }

    /// The runtime, with a URL in the place of each session.
    pub fn runtime_with_urls(self: &Arc<Self>, runtime: Arc<dyn Runtime>) -> Arc<dyn Runtime> {
        Arc::new(WithMiddleware::new(runtime, GiveUrls(Arc::clone(self))))
    }

    /// Answers at the URLs until `end` is cancelled. Connections that are relayed then go on until the process ends.
    pub async fn serve(self: Arc<Self>, end: CancellationToken) {
        let listener = Arc::clone(&self.listener);
        let router = Router::new()
            .route("/{call}/{token}", get(connect).post(connect))
            .with_state(Arc::clone(&self));
        accept::serve(listener, LIMITS, end, move |stream| {
            let router = router.clone();
            async move {
                let (extensions, is_http2) = (Extensions::new(), false);
                Some(HttpConnection { stream: Box::new(stream), router, extensions, is_http2 })
            }
        })
        .await;
    }

    fn url(&self, call: &Call, session: &StreamingSession) -> Result<String, CallFault> {
        let token = token().ok_or(CallFault::Unknown)?;
        let now = Instant::now();
        let mut waiting = self.waiting.lock();
        waiting.retain(|_, session| session.until > now);
        if waiting.len() >= MAX_WAITING {
            return Err(CallFault::Busy(LONGEST_WAIT));
        }
        let url = format!("http://{}/{}/{token}", self.address, call.name.to_lowercase());
        let (session, object, until) = (session.clone(), call.object.clone(), now + LONGEST_WAIT);
        waiting.insert(token, WaitingSession { session, object, until });
        Ok(url)
    }

    fn take(&self, token: &str) -> Option<WaitingSession> {
        let waiting = self.waiting.lock().remove(token);
        waiting.filter(|session| session.until > Instant::now())
    }
}

fn token() -> Option<String> {
    let mut bytes = [0; TOKEN_BYTES];
    SystemRandom::new().fill(&mut bytes).ok()?;
    Some(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

/// Puts URLs in the place of sessions.
struct GiveUrls(Arc<SessionUrls>);

impl Middleware for GiveUrls {
    async fn around<T, E>(
        &self,
        call: Call,
        answer: impl Future<Output = Result<T, E>> + Send + 'static,
    ) -> Result<T, E>
    where
        T: Send + 'static,
        E: SeamError,
    {
        let mut answer = answer.await?;
        let any: &mut dyn Any = &mut answer;
        if let Some(endpoint) = any.downcast_mut::<StreamingEndpoint>()
            && let StreamingEndpoint::Session(session) = endpoint
        {
            let url = self.0.url(&call, session).map_err(|fault| E::of_fault(&call, fault))?;
            *endpoint = StreamingEndpoint::Url(url);
        }
        Ok(answer)
    }
}

async fn connect(
    State(urls): State<Arc<SessionUrls>>,
    Path((_, token)): Path<(String, String)>,
    request: Request,
) -> Answer {
    let Some(WaitingSession { session, object, .. }) = urls.take(&token) else {
        let said = "this URL was used before, or its minute is over".to_owned();
        return Err(StreamingRefusal(StatusCode::NOT_FOUND, said));
    };
    let (endpoint, protocol, relay) = match session.purpose() {
        SessionPurpose::Command { stdin, stdout, stderr, tty } => {
            let (stdin, stdout, stderr, tty) = (*stdin, *stdout, *stderr, *tty);
            let protocol = ClientProtocol::of_command(&request)?;
            let relay = protocol.command_relay(RemoteCommandStreams { stdin, stdout, stderr, tty });
            ("command by URL", protocol, relay)
        }
        SessionPurpose::PortForward { ports } => {
            let protocol = ClientProtocol::of_port_forward(&request)?;
            let relay = protocol.port_forward_relay(ports.clone())?;
            ("portForward by URL", protocol, relay)
        }
    };
    // What a CRI client asks about has an id, and the agent's names of pods mean nothing to it.
    let pod = FullName { namespace: String::new(), name: object };
    let permit = urls.connections.admit(&pod).ok_or_else(|| {
        let said = "too many connections to containers are open".to_owned();
        StreamingRefusal(StatusCode::TOO_MANY_REQUESTS, said)
    })?;
    let target = SessionTarget { endpoint, pod, container: String::new() };
    let session_endpoint = Ok(StreamingEndpoint::Session(session));
    let idle_timeout = IDLE_TIMEOUT;
    let relayed = Session { target, protocol, idle_timeout, permit };
    relayed.begin(session_endpoint, relay, request).await
}
