//! One address on which the kubelet serves HTTP or HTTPS.

use std::fmt;
use std::io;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use hyper::http::Extensions;
use oarsman_sync::{TaskName, TaskPanics, restarted};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::{sleep, timeout};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;
use tokio_util::sync::CancellationToken;

use crate::accept::{self, ConnectionLimits, HttpConnection};
use crate::authenticator::ClientCertificates;
use crate::connections::{ConnectionHandle, ConnectionTable, MAX_CONNECTIONS};
use crate::listen;
use crate::streaming::MAX_SESSIONS;
use crate::tls;

/// How long a client may take for the TLS handshake.
const LONGEST_HANDSHAKE: Duration = Duration::from_secs(10);
/// How often an address that is in use is tried again.
const RETRY_DELAY: Duration = Duration::from_secs(2);
/// The lifetime is that of the Go kubelet: also a client that follows a log has to connect again. The rest is what a client without
/// rights can hold: heads with a certificate's worth of token are a few KiB, and come at once. A person may look at a page of a log
/// for minutes before the next is wanted.
const LIMITS: ConnectionLimits = ConnectionLimits {
    connections: MAX_CONNECTIONS + MAX_SESSIONS + 256,
    header_timeout: Duration::from_secs(10),
    max_head_bytes: 32 * 1024,
    write_timeout: Duration::from_secs(5 * 60),
    lifetime: Duration::from_secs(4 * 60 * 60),
};

/// A bound listener with its router.
pub(crate) struct HttpServer {
    /// What its task is called.
    name: TaskName,
    listener: Arc<TcpListener>,
    tls: Option<TlsAcceptor>,
    router: Router,
}

impl fmt::Debug for HttpServer {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("HttpServer")
            .field("listener", &self.listener)
            .finish_non_exhaustive()
    }
}

impl HttpServer {
    pub(crate) fn plain(name: TaskName, listener: TcpListener, router: Router) -> Self {
        Self { name, listener: Arc::new(listener), tls: None, router }
    }

    pub(crate) fn encrypted(
        name: TaskName,
        listener: TcpListener,
        tls: TlsAcceptor,
        router: Router,
    ) -> Self {
        Self { tls: Some(tls), ..Self::plain(name, listener, router) }
    }

    pub(crate) fn is_encrypted(&self) -> bool {
        self.tls.is_some()
    }

    pub(crate) fn address(&self) -> Option<SocketAddr> {
        self.listener.local_addr().ok()
    }

    /// Serves until it is told to end; the accept loop is started again after a panic.
    pub(crate) async fn serve(self, panics: TaskPanics, end: CancellationToken) {
        restarted(self.name, panics, || self.accept(end.clone())).await;
    }

    async fn accept(&self, end: CancellationToken) {
        let (tls, router) = (self.tls.clone(), self.router.clone());
        let table = ConnectionTable::default();
        accept::serve(Arc::clone(&self.listener), LIMITS, end, move |tcp| {
            let handle = table.add(client_address(&tcp));
            prepare(tcp, tls.clone(), router.clone(), handle)
        })
        .await;
    }
}

/// A server whose address may be in use.
#[derive(Debug)]
pub(crate) struct UnboundServer {
    pub(crate) name: TaskName,
    pub(crate) address: SocketAddr,
    pub(crate) router: Router,
}

impl UnboundServer {
    pub(crate) fn bound_to(self, listener: TcpListener) -> HttpServer {
        HttpServer::plain(self.name, listener, self.router)
    }

    pub(crate) fn log_failure(&self, error: &io::Error) {
        tracing::error!(task = %self.name, %error, "kubelet server not started, will retry");
    }

    /// Serves as soon as its address is free.
    pub(crate) async fn serve(self, panics: TaskPanics, end: CancellationToken) {
        let bound = async {
            loop {
                sleep(RETRY_DELAY).await;
                if let Ok(listener) = listen(self.address).await {
                    return listener;
                }
            }
        };
        tokio::select! {
            listener = bound => self.bound_to(listener).serve(panics, end).await,
            () = end.cancelled() => {}
        }
    }
}

/// One that has gone already counts like any other.
fn client_address(tcp: &TcpStream) -> IpAddr {
    let unknown = IpAddr::from(Ipv6Addr::UNSPECIFIED);
    tcp.peer_addr().map_or(unknown, |address| address.ip())
}

async fn prepare(
    tcp: TcpStream,
    tls: Option<TlsAcceptor>,
    router: Router,
    handle: ConnectionHandle,
) -> Option<HttpConnection> {
    let mut extensions = Extensions::new();
    extensions.insert(handle.clone());
    let Some(tls) = tls else {
        extensions.insert(ClientCertificates::default());
        return Some(HttpConnection { stream: Box::new(tcp), router, extensions, is_http2: false });
    };
    let client = tcp.peer_addr().map(|address| address.to_string()).unwrap_or_default();
    let accepted = tokio::select! {
        accepted = timeout(LONGEST_HANDSHAKE, tls.accept(tcp)) => accepted,
        () = handle.evicted() => return None,
    };
    match accepted {
        Ok(Ok(stream)) => {
            extensions.insert(peer_certificates(&stream));
            let is_http2 = stream.get_ref().1.alpn_protocol() == Some(tls::HTTP2);
            Some(HttpConnection { stream: Box::new(stream), router, extensions, is_http2 })
        }
        Ok(Err(error)) => {
            tracing::debug!(client, %error, "TLS handshake failed");
            None
        }
        Err(_) => {
            tracing::debug!(client, "TLS handshake timed out");
            None
        }
    }
}

/// The certificates that the client has presented.
fn peer_certificates(stream: &TlsStream<TcpStream>) -> ClientCertificates {
    let chain = stream.get_ref().1.peer_certificates().unwrap_or_default();
    ClientCertificates(
        chain.iter().map(|certificate| certificate.clone().into_owned()).collect::<Arc<[_]>>(),
    )
}
