//! The node's own servers: HTTPS for the API server and for people, and a plain one that says whether we are well.
//!
//! Whoever asks over HTTPS is told apart by certificate or token (`authenticator`) and may do what the API server allows (`authorizer`). What
//! is served comes from the [`HostInterface`]. exec, attach and port-forward are not served yet.

pub mod accept;
mod auth_filter;
mod authenticator;
mod authorizer;
mod endpoints;
mod host_interface;
mod http_server;
pub mod logs;
mod query;
mod tls;
mod ttl_cache;

#[cfg(test)]
mod tests;

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use futures::future::join_all;
use oarsman_clock::Clock;
use oarsman_cluster::review::Reviewer;
use serde_json::Value;
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::server::ResolvesServerCert;
use tokio_util::sync::CancellationToken;

pub use host_interface::{HostInterface, LogDirectory};

use auth_filter::AuthFilter;
use http_server::HttpServer;

/// How the servers are to be.
#[derive(Clone, Debug)]
pub struct ServerSettings {
    /// Where HTTPS is served; none for nowhere.
    pub secure: Option<SocketAddr>,
    /// Where everybody may read the harmless part; none for nowhere.
    pub read_only: Option<SocketAddr>,
    /// Where it is said whether we are well; none for nowhere.
    pub health: Option<SocketAddr>,
    /// Who asks.
    pub authentication: AuthenticationSettings,
    /// What they may.
    pub authorization: AuthorizationSettings,
    /// How we encrypt.
    pub encryption: TlsSettings,
    /// Whether logs and the like are served.
    pub debugging: bool,
    /// How the kubelet is configured, for whoever asks.
    pub configuration: Value,
}

/// How it is found out who asks.
#[derive(Clone, Debug, Default)]
pub struct AuthenticationSettings {
    /// Whose signatures on certificates count.
    pub client_ca: Option<PathBuf>,
    /// Whether tokens are looked at, and how long the answer about one is kept.
    pub tokens: Option<Duration>,
    /// Whether others are let in as nobody.
    pub anonymous: bool,
}

/// How it is found out what they may.
#[derive(Clone, Copy, Debug)]
pub enum AuthorizationSettings {
    /// Everybody may everything.
    AlwaysAllow,
    /// What the API server says.
    Webhook {
        /// How long a yes is kept.
        allowed: Duration,
        /// How long a no is kept.
        denied: Duration,
    },
}

/// How we encrypt.
#[derive(Clone, Debug, Default)]
pub struct TlsSettings {
    /// Whether only TLS 1.3 will do.
    pub only_tls13: bool,
    /// What TLS 1.2 may encrypt with, by the names of IANA; none for all that is good.
    pub ciphers: Vec<String>,
}

/// Servers that listen already, and serve once they are run.
#[derive(Debug)]
pub struct Servers {
    http_servers: Vec<HttpServer>,
}

/// Begins to listen.
///
/// # Errors
/// When an address is taken or is not ours; the error names it.
pub async fn open(
    settings: ServerSettings,
    host: Arc<dyn HostInterface>,
    reviewer: Option<Arc<dyn Reviewer>>,
    certificate: Arc<dyn ResolvesServerCert>,
    clock: Arc<dyn Clock>,
) -> io::Result<Servers> {
    let mut http_servers = Vec::new();
    if let Some(address) = settings.health {
        http_servers.push(HttpServer::plain(listen(address).await?, endpoints::health()));
    }
    if let Some(address) = settings.read_only {
        http_servers.push(HttpServer::plain(
            listen(address).await?,
            endpoints::read_only(Arc::clone(&host), Arc::clone(&clock)),
        ));
    }
    if let Some(address) = settings.secure {
        let asks_for_certificate = settings.authentication.client_ca.is_some();
        let tls = tls::config(&settings.encryption, certificate, asks_for_certificate)
            .map_err(io::Error::other)?;
        let guard = AuthFilter::new(&settings.authentication, settings.authorization, reviewer);
        let router = endpoints::all(host, clock, settings.debugging, settings.configuration);
        let router = auth_filter::with_auth(router, guard);
        http_servers.push(HttpServer::encrypted(
            listen(address).await?,
            TlsAcceptor::from(Arc::new(tls)),
            router,
        ));
    }
    Ok(Servers { http_servers })
}

async fn listen(address: SocketAddr) -> io::Result<TcpListener> {
    let told = |error: io::Error| {
        io::Error::new(
            error.kind(),
            format!("cannot listen at {address}: {error}; is another kubelet there?"),
        )
    };
    TcpListener::bind(address).await.map_err(told)
}

impl Servers {
    /// Where they listen, in the order health, read-only, HTTPS, as far as they do.
    pub fn addresses(&self) -> Vec<SocketAddr> {
        self.http_servers.iter().filter_map(HttpServer::address).collect()
    }

    /// Serves until it is told to end; requests under way are answered.
    pub async fn run(self, end: CancellationToken) {
        join_all(self.http_servers.into_iter().map(|http_server| http_server.serve(end.clone())))
            .await;
    }
}
