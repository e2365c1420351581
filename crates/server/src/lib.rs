//! The node's own servers: HTTPS for the API server and for people, and a plain one that says whether we are well.
//!
//! Whoever asks over HTTPS is told apart by certificate or token (`who`) and may do what the API server allows (`may`). What
//! is served comes from the [`Source`]. exec, attach and port-forward are not served yet.

pub mod accept;
mod cache;
mod endpoints;
mod guard;
mod listen;
pub mod logs;
mod may;
mod query;
mod source;
mod tls;
mod who;

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

pub use source::{LogPlace, Source};

use guard::Guard;
use listen::Door;

/// How the servers are to be.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Where HTTPS is served; none for nowhere.
    pub secure: Option<SocketAddr>,
    /// Where everybody may read the harmless part; none for nowhere.
    pub read_only: Option<SocketAddr>,
    /// Where it is said whether we are well; none for nowhere.
    pub health: Option<SocketAddr>,
    /// Who asks.
    pub authentication: Authentication,
    /// What they may.
    pub authorization: Authorization,
    /// How we encrypt.
    pub encryption: Encryption,
    /// Whether logs and the like are served.
    pub debugging: bool,
    /// How the kubelet is configured, for whoever asks.
    pub configuration: Value,
}

/// How it is found out who asks.
#[derive(Clone, Debug, Default)]
pub struct Authentication {
    /// Whose signatures on certificates count.
    pub client_ca: Option<PathBuf>,
    /// Whether tokens are looked at, and how long the answer about one is kept.
    pub tokens: Option<Duration>,
    /// Whether others are let in as nobody.
    pub anonymous: bool,
}

/// How it is found out what they may.
#[derive(Clone, Copy, Debug)]
pub enum Authorization {
    /// Everybody may everything.
    AlwaysAllow,
    /// What the API server says.
    Ask {
        /// How long a yes is kept.
        allowed: Duration,
        /// How long a no is kept.
        denied: Duration,
    },
}

/// How we encrypt.
#[derive(Clone, Debug, Default)]
pub struct Encryption {
    /// Whether only TLS 1.3 will do.
    pub only_tls13: bool,
    /// What TLS 1.2 may encrypt with, by the names of IANA; none for all that is good.
    pub ciphers: Vec<String>,
}

/// Servers that listen already, and serve once they are run.
#[derive(Debug)]
pub struct Servers {
    doors: Vec<Door>,
}

/// Begins to listen.
///
/// # Errors
/// When an address is taken or is not ours; the error names it.
pub async fn open(
    settings: Settings,
    source: Arc<dyn Source>,
    reviewer: Option<Arc<dyn Reviewer>>,
    certificate: Arc<dyn ResolvesServerCert>,
    clock: Arc<dyn Clock>,
) -> io::Result<Servers> {
    let mut doors = Vec::new();
    if let Some(address) = settings.health {
        doors.push(Door::plain(listen(address).await?, endpoints::health()));
    }
    if let Some(address) = settings.read_only {
        doors.push(Door::plain(
            listen(address).await?,
            endpoints::harmless(Arc::clone(&source), Arc::clone(&clock)),
        ));
    }
    if let Some(address) = settings.secure {
        let asks_for_certificate = settings.authentication.client_ca.is_some();
        let tls = tls::config(&settings.encryption, certificate, asks_for_certificate)
            .map_err(io::Error::other)?;
        let guard = Guard::new(&settings.authentication, settings.authorization, reviewer);
        let router = endpoints::all(source, clock, settings.debugging, settings.configuration);
        let router = guard::before(router, guard);
        doors.push(Door::encrypted(
            listen(address).await?,
            TlsAcceptor::from(Arc::new(tls)),
            router,
        ));
    }
    Ok(Servers { doors })
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
        self.doors.iter().filter_map(Door::address).collect()
    }

    /// Serves until it is told to end; requests under way are answered.
    pub async fn run(self, end: CancellationToken) {
        join_all(self.doors.into_iter().map(|door| door.serve(end.clone()))).await;
    }
}
