//! The kubelet's HTTP servers: HTTPS for the API server and other clients, the read-only port, and the health port.
//!
//! Clients over HTTPS are authenticated by certificate or token (`authenticator`) and authorized by the API server (`authorizer`). The data
//! comes from the [`HostInterface`]; exec, attach and port-forward are relayed to the runtime (`streaming`).

pub mod accept;
mod auth_filter;
mod authenticator;
mod authorizer;
mod connections;
mod endpoints;
mod host_interface;
mod http_server;
pub mod logs;
mod metrics_source;
mod node_endpoints;
mod pod_quota;
pub mod query;
mod review_throttle;
mod server_metrics;
mod server_thread;
mod stats_provider;
mod streaming;
mod tls;
mod ttl_cache;

#[cfg(test)]
mod tests;

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use oarsman_clock::Clock;
use oarsman_cluster::review::Reviewer;
use oarsman_sync::{TaskName, TaskPanics};
use serde_json::Value;
use tokio::net::TcpListener;
use tokio::runtime::Handle;
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::server::ResolvesServerCert;
use tokio_util::sync::CancellationToken;

pub use host_interface::{HostInterface, LogDirectory};
pub use metrics_source::MetricsSource;
pub use node_endpoints::{NodeEndpointSettings, NodeLogSettings};
pub use stats_provider::{StatsError, StatsProvider};
pub use streaming::{LONGEST_RUN, PodLookup, SessionUrls, StreamingService};

use auth_filter::AuthFilter;
use endpoints::{EndpointState, ListLimit, LogLimits};
use http_server::{HttpServer, UnboundServer};
use server_metrics::{ServerMetrics, ServerType, with_metrics};
use server_thread::ServerThread;

/// The settings of all servers.
#[derive(Clone, Debug)]
pub struct ServerSettings {
    /// The address of HTTPS; none to serve none.
    pub secure: Option<SocketAddr>,
    /// The address of the read-only port; none to serve none.
    pub read_only: Option<SocketAddr>,
    /// The address of the health port; none to serve none.
    pub health: Option<SocketAddr>,
    /// How clients are authenticated.
    pub authentication: AuthenticationSettings,
    /// How requests are authorized.
    pub authorization: AuthorizationSettings,
    /// The TLS settings.
    pub encryption: TlsSettings,
    /// Whether logs and other debugging handlers are served.
    pub debugging: bool,
    /// The kubelet's configuration, for `/configz`.
    pub configuration: Value,
    /// Which endpoints show the node and its agent.
    pub node_endpoints: NodeEndpointSettings,
}

/// The settings of authentication.
#[derive(Clone, Debug, Default)]
pub struct AuthenticationSettings {
    /// The file of authorities that sign clients' certificates.
    pub client_ca: Option<PathBuf>,
    /// How long the review of a token is cached; none to accept no tokens.
    pub tokens: Option<Duration>,
    /// Whether requests without credentials are accepted as `system:anonymous`.
    pub anonymous: bool,
}

/// The settings of authorization.
#[derive(Clone, Copy, Debug)]
pub enum AuthorizationSettings {
    /// Every request is allowed.
    AlwaysAllow,
    /// The API server decides.
    Webhook {
        /// How long a positive decision is cached.
        allowed: Duration,
        /// How long a negative decision is cached.
        denied: Duration,
    },
}

/// The TLS settings.
#[derive(Clone, Debug, Default)]
pub struct TlsSettings {
    /// Whether TLS 1.2 is refused.
    pub only_tls13: bool,
    /// The cipher suites of TLS 1.2, by their IANA names; none for all secure ones.
    pub ciphers: Vec<String>,
}

/// What the endpoints answer from.
#[derive(Clone)]
pub struct ServerSources {
    /// The agent's state.
    pub host: Arc<dyn HostInterface>,
    /// exec, attach and port-forward.
    pub streaming: Arc<StreamingService>,
    /// The agent's numbers.
    pub metrics: Arc<dyn MetricsSource>,
}

/// Servers whose addresses are bound, and that serve once they are run.
#[derive(Debug)]
pub struct Servers {
    http_servers: Vec<HttpServer>,
    /// Those whose addresses are in use: they keep no other from serving.
    unbound: Vec<UnboundServer>,
    /// Where HTTPS is served; none to serve it on the caller's runtime.
    thread: Option<ServerThread>,
    panics: TaskPanics,
}

/// Binds the addresses; panics of the servers' tasks are counted there. Every user may bind the ports of health and read-only: one that
/// is in use is bound later.
///
/// # Errors
/// When the address of HTTPS is in use or does not belong to this machine, which the error names, or when its thread cannot be started.
pub async fn open(
    settings: ServerSettings,
    sources: ServerSources,
    reviewer: Option<Arc<dyn Reviewer>>,
    certificate: Arc<dyn ResolvesServerCert>,
    clock: Arc<dyn Clock>,
    panics: TaskPanics,
) -> io::Result<Servers> {
    let (mut http_servers, mut unbound, mut thread) = (Vec::new(), Vec::new(), None);
    let ServerSources { host, streaming, metrics } = sources;
    let endpoint_state = EndpointState {
        host,
        clock,
        configuration: settings.configuration,
        log_limits: LogLimits::new(panics.clone()),
        list_limit: ListLimit::default(),
        metrics: ServerMetrics::new(metrics),
    };
    let mut plain = Vec::new();
    if let Some(address) = settings.health {
        let router = endpoints::health(&endpoint_state);
        plain.push(UnboundServer { name: TaskName::HealthServer, address, router });
    }
    if let Some(address) = settings.read_only {
        let router = endpoints::read_only(&endpoint_state);
        plain.push(UnboundServer { name: TaskName::ReadOnlyServer, address, router });
    }
    for server in plain {
        match listen(server.address).await {
            Ok(listener) => http_servers.push(server.bound_to(listener)),
            Err(error) => {
                server.log_failure(&error);
                unbound.push(server);
            }
        }
    }
    if let Some(address) = settings.secure {
        let asks_for_certificate = settings.authentication.client_ca.is_some();
        let tls = tls::config(&settings.encryption, certificate, asks_for_certificate)
            .map_err(io::Error::other)?;
        let guard = AuthFilter::new(&settings.authentication, settings.authorization, reviewer);
        let debugging = settings.debugging.then_some(streaming);
        let router = endpoints::all(&endpoint_state, debugging, &settings.node_endpoints);
        let router = auth_filter::with_auth(router, guard);
        let router = with_metrics(router, &endpoint_state.metrics, ServerType::ReadWrite);
        let (listener, tls) = (listen(address).await?, TlsAcceptor::from(Arc::new(tls)));
        http_servers.push(HttpServer::encrypted(TaskName::HttpsServer, listener, tls, router));
        thread = Some(ServerThread::start()?);
    }
    Ok(Servers { http_servers, unbound, thread, panics })
}

pub(crate) async fn listen(address: SocketAddr) -> io::Result<TcpListener> {
    let told = |error: io::Error| {
        io::Error::new(
            error.kind(),
            format!("cannot listen at {address}: {error}; is another kubelet there?"),
        )
    };
    TcpListener::bind(address).await.map_err(told)
}

impl Servers {
    /// The bound addresses, in the order health, read-only, HTTPS, as far as they are served.
    pub fn addresses(&self) -> Vec<SocketAddr> {
        self.http_servers.iter().filter_map(HttpServer::address).collect()
    }

    /// Serves until it is told to end, each address in a task of its own, HTTPS on a thread of its own; requests under way are
    /// answered.
    pub async fn run(self, end: CancellationToken) {
        let (mut tasks, callers) = (JoinSet::new(), Handle::current());
        for http_server in self.http_servers {
            let own = self.thread.as_ref().filter(|_| http_server.is_encrypted());
            let handle = own.map_or(&callers, ServerThread::handle);
            tasks.spawn_on(http_server.serve(self.panics.clone(), end.clone()), handle);
        }
        for server in self.unbound {
            tasks.spawn(server.serve(self.panics.clone(), end.clone()));
        }
        while tasks.join_next().await.is_some() {}
    }
}
