//! Fake servers in memory: their responses, delays, whether they use TLS, and how they change over time.
//!
//! A pod whose script listens answers too. Servers outlive agents; an agent calls them through [`connect`], over a link where calls are slow and
//! fail.

mod client;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::future::pending;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use oarsman_net::{
    GrpcCheck, GrpcResponse, HttpGet, HttpResponse, NetworkError, Scheme, TcpConnect, Trust,
};
use oarsman_sync::ordered_watch as watch;
use tokio::time::sleep;

pub use client::connect;

use crate::link::RemoteService;
use crate::lock;
use crate::rng::Probability;
use crate::runtime::FakeRuntime;
use crate::trace::{Trace, TraceEntry};

/// The fake network; clones are the same network.
#[derive(Clone)]
pub struct FakeNetwork(Arc<NetworkInner>);

struct NetworkInner {
    trace: Trace,
    runtime: FakeRuntime,
    /// Never held across an await.
    state: Mutex<FakeNetworkState>,
    /// Counts how often the calls under way were broken.
    resets: watch::Sender<u64>,
}

#[derive(Default)]
struct FakeNetworkState {
    servers: BTreeMap<(String, u16), FakeServer>,
    /// The health of pods that listen on these ports; on others they are well.
    pods: BTreeMap<u16, FakeHealth>,
    asked: Vec<HttpGet>,
}

/// A server on a port.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FakeServer {
    /// Its protocol.
    pub protocol: ServerProtocol,
    /// Its responses, by path and query; anything else is 404.
    pub responses: BTreeMap<String, FakeResponse>,
    /// For a server that is only probed: what it answers to everything.
    pub health: Option<FakeHealth>,
}

/// What a server answers to probes over time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FakeHealth {
    /// It is well.
    Good,
    /// It is not.
    Bad,
    /// It takes connections, and never answers.
    Hanging,
    /// It is well for this long, then unwell for that long, and so on.
    Flapping {
        /// How long it is well.
        good: Duration,
        /// How long it is not.
        bad: Duration,
    },
}

impl FakeHealth {
    /// Whether it is well at that time since the world's start.
    fn is_good(self, elapsed: Duration) -> bool {
        match self {
            Self::Good => true,
            Self::Bad | Self::Hanging => false,
            Self::Flapping { good, bad } => {
                let cycle = (good + bad).as_millis().max(1);
                elapsed.as_millis() % cycle < good.as_millis()
            }
        }
    }
}

/// The protocol of a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ServerProtocol {
    /// HTTP without TLS, also for clients that want TLS.
    Http,
    /// TLS with a certificate that the machine's authorities have signed.
    Https,
    /// TLS with a self-signed certificate.
    SelfSigned,
}

/// The response to one path.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(missing_docs, reason = "the fields' names say what they are")]
pub struct FakeResponse {
    pub status: u16,
    pub body: Vec<u8>,
    /// The delay; it may be longer than any timeout.
    pub delay: Duration,
}

impl FakeServer {
    /// A server without responses.
    pub fn new(protocol: ServerProtocol) -> Self {
        Self { protocol, responses: BTreeMap::new(), health: None }
    }

    /// A server that is only probed.
    pub fn probed(health: FakeHealth) -> Self {
        Self { health: Some(health), ..Self::new(ServerProtocol::Http) }
    }

    /// The same server with this response too.
    #[must_use]
    pub fn with(mut self, path_and_query: &str, response: FakeResponse) -> Self {
        self.responses.insert(path_and_query.to_owned(), response);
        self
    }
}

impl FakeResponse {
    /// A response without delay.
    pub fn new(status: u16, body: impl Into<Vec<u8>>) -> Self {
        Self { status, body: body.into(), delay: Duration::ZERO }
    }

    /// The same response with a delay.
    #[must_use]
    pub fn after(mut self, delay: Duration) -> Self {
        self.delay = delay;
        self
    }
}

impl FakeNetwork {
    /// A network without servers, except for the pods of that runtime.
    pub fn new(trace: Trace, runtime: FakeRuntime) -> Self {
        let (state, resets) = (Mutex::default(), watch::Sender::new(0));
        Self(Arc::new(NetworkInner { trace, runtime, state, resets }))
    }

    /// Adds a server, in place of the one before.
    pub fn serve(&self, host: &str, port: u16, server: FakeServer) {
        lock(&self.0.state).servers.insert((host.to_owned(), port), server);
    }

    /// Sets the health of every pod that listens on that port.
    pub fn set_pod_health(&self, port: u16, health: FakeHealth) {
        lock(&self.0.state).pods.insert(port, health);
    }

    /// Removes the server: connections are refused.
    pub fn refuse(&self, host: &str, port: u16) {
        lock(&self.0.state).servers.remove(&(host.to_owned(), port));
    }

    /// The requests that reached a server, in order.
    pub fn asked(&self) -> Vec<HttpGet> {
        lock(&self.0.state).asked.clone()
    }

    async fn answer(&self, request: HttpGet) -> Result<HttpResponse, NetworkError> {
        let server = self.server(&request).ok_or_else(|| refused(request.url()))?;
        if let Some(health) = server.health {
            let status = if self.is_well(&request.url(), health).await { 200 } else { 503 };
            return Ok(cut(FakeResponse::new(status, "well?\n"), request.body_limit));
        }
        let response = negotiate(&server, &request)?;
        self.0.trace.append(TraceEntry::Asked { url: request.url() });
        lock(&self.0.state).asked.push(request.clone());
        sleep(response.delay).await;
        Ok(cut(response, request.body_limit))
    }

    /// Takes a connection. An unwell server takes none.
    async fn take_connection(&self, request: TcpConnect) -> Result<(), NetworkError> {
        let refused = || refused(request.url());
        match self.health(&request.host, request.port) {
            Some(health) if self.is_well(&request.url(), health).await => Ok(()),
            Some(_) | None => Err(refused()),
        }
    }

    /// Answers a health check.
    async fn tell_health(&self, request: GrpcCheck) -> Result<GrpcResponse, NetworkError> {
        let health = self.health(&request.host, request.port);
        let health = health.ok_or_else(|| refused(request.url()))?;
        let is_well = self.is_well(&request.url(), health).await;
        Ok(GrpcResponse::Status(if is_well { 1 } else { 2 }))
    }

    /// Whether a server is well when it is probed, which is in the trace; a hanging one never says.
    async fn is_well(&self, url: &str, health: FakeHealth) -> bool {
        if health == FakeHealth::Hanging {
            pending::<()>().await;
        }
        let is_good = health.is_good(self.0.trace.elapsed());
        self.0.trace.append(TraceEntry::Probed { url: url.to_owned(), is_good });
        is_good
    }

    /// The health of what listens there. A server that is not only probed is well.
    fn health(&self, host: &str, port: u16) -> Option<FakeHealth> {
        let (there, of_pod) = {
            let state = lock(&self.0.state);
            let there = state.servers.get(&(host.to_owned(), port)).cloned();
            (there, state.pods.get(&port).copied().unwrap_or(FakeHealth::Good))
        };
        let there = there.map(|server| server.health.unwrap_or(FakeHealth::Good));
        there.or_else(|| self.0.runtime.listens(host, port).then_some(of_pod))
    }

    fn server(&self, request: &HttpGet) -> Option<FakeServer> {
        let HttpGet { host, port, .. } = request;
        let there = lock(&self.0.state).servers.get(&(host.clone(), *port)).cloned();
        there.or_else(|| self.0.runtime.listens(host, *port).then(|| script_server(request)))
    }
}

/// The server of a script that performs `listen`: it gives the same response to every request.
fn script_server(request: &HttpGet) -> FakeServer {
    FakeServer::new(ServerProtocol::Http)
        .with(&request.path_and_query, FakeResponse::new(200, "ok\n"))
}

fn refused(url: String) -> NetworkError {
    NetworkError::Unreachable { url, why: "connection refused".to_owned() }
}

/// The response, if client and server agree on TLS.
fn negotiate(server: &FakeServer, request: &HttpGet) -> Result<FakeResponse, NetworkError> {
    let url = request.url();
    match (server.protocol, request.scheme, request.trust) {
        (ServerProtocol::Http, Scheme::Https, _) => return Err(NetworkError::PlainHttp { url }),
        (ServerProtocol::SelfSigned, Scheme::Https, Trust::System) => {
            return Err(NetworkError::Tls { url, why: "unknown issuer".to_owned() });
        }
        (ServerProtocol::Https | ServerProtocol::SelfSigned, Scheme::Http, _) => {
            return Ok(FakeResponse::new(400, "this server speaks HTTPS\n"));
        }
        _ => {}
    }
    let response = server.responses.get(&request.path_and_query).cloned();
    Ok(response.unwrap_or_else(|| FakeResponse::new(404, "not found\n")))
}

fn cut(response: FakeResponse, limit: usize) -> HttpResponse {
    let FakeResponse { status, mut body, .. } = response;
    let whole = body.len() <= limit;
    body.truncate(limit);
    HttpResponse { status, headers: Vec::new(), body, is_complete: whole }
}

impl RemoteService for FakeNetwork {
    /// Servers do not go away; only calls under way fail.
    fn restart(&self, _: Duration, _: Probability) {
        self.0.resets.send_modify(|count| *count += 1);
    }

    fn outages(&self) -> watch::Receiver<u64> {
        self.0.resets.subscribe()
    }
}
