//! Connections to the API server: TLS over TCP, whose death is noticed, and which can be cut.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use futures::future::BoxFuture;
use hyper::Uri;
use hyper_util::client::legacy::connect::{Connected, Connection, HttpConnector};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_rustls::rustls::ClientConfig;
use tokio_rustls::rustls::pki_types::ServerName;
use tokio_util::sync::{CancellationToken, WaitForCancellationFutureOwned};
use tower::{BoxError, Service};

/// A server that is there answers sooner.
const LONGEST_CONNECT: Duration = Duration::from_secs(10);
const LONGEST_HANDSHAKE: Duration = Duration::from_secs(10);
/// A connection on which nothing comes is asked whether it is alive.
const KEEPALIVE_AFTER: Duration = Duration::from_secs(15);
const KEEPALIVE_EVERY: Duration = Duration::from_secs(5);
const KEEPALIVE_TRIES: u32 = 3;
/// So long what we send may go unanswered by the other machine's kernel.
const LONGEST_UNACKNOWLEDGED: Duration = Duration::from_secs(30);

/// Connects to the API server, with the identity that is current when it does.
#[derive(Clone)]
pub(super) struct Connector {
    tcp: HttpConnector,
    tls: TlsConnector,
    /// The name that the server's certificate is to have, if not that of its address.
    name: Option<String>,
    /// Done when all connections are to be closed.
    cut: CancellationToken,
}

impl Connector {
    pub(super) fn new(
        tls: Arc<ClientConfig>,
        name: Option<String>,
        cut: CancellationToken,
    ) -> Self {
        let mut tcp = HttpConnector::new();
        tcp.enforce_http(false);
        tcp.set_nodelay(true);
        tcp.set_connect_timeout(Some(LONGEST_CONNECT));
        tcp.set_keepalive(Some(KEEPALIVE_AFTER));
        tcp.set_keepalive_interval(Some(KEEPALIVE_EVERY));
        tcp.set_keepalive_retries(Some(KEEPALIVE_TRIES));
        tcp.set_tcp_user_timeout(Some(LONGEST_UNACKNOWLEDGED));
        Self { tcp, tls: tls.into(), name, cut }
    }
}

impl Service<Uri> for Connector {
    type Response = TokioIo<Stream>;
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<Self::Response, BoxError>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.tcp.poll_ready(context).map_err(Into::into)
    }

    fn call(&mut self, uri: Uri) -> Self::Future {
        let name = self.name.clone().or_else(|| uri.host().map(str::to_owned)).unwrap_or_default();
        let is_tls = uri.scheme_str() == Some("https");
        let (tcp, tls, cut) = (self.tcp.call(uri), self.tls.clone(), self.cut.clone());
        Box::pin(async move {
            let tcp = tcp.await?.into_inner();
            let transport = match is_tls {
                false => Transport::Plain(tcp),
                true => Transport::Tls(Box::new(handshake(&tls, &name, tcp).await?)),
            };
            let cut = Box::pin(cut.cancelled_owned());
            Ok(TokioIo::new(Stream { transport, cut }))
        })
    }
}

async fn handshake(
    tls: &TlsConnector,
    name: &str,
    tcp: TcpStream,
) -> Result<TlsStream<TcpStream>, BoxError> {
    let bare = name.trim_start_matches('[').trim_end_matches(']');
    let server = ServerName::try_from(bare.to_owned())?;
    match timeout(LONGEST_HANDSHAKE, tls.connect(server, tcp)).await {
        Ok(stream) => Ok(stream?),
        Err(_) => Err(format!("{name} did not finish the TLS handshake in time").into()),
    }
}

enum Transport {
    Plain(TcpStream),
    Tls(Box<TlsStream<TcpStream>>),
}

/// A connection that ends when it is cut.
pub(super) struct Stream {
    transport: Transport,
    cut: Pin<Box<WaitForCancellationFutureOwned>>,
}

impl Connection for Stream {
    fn connected(&self) -> Connected {
        let is_h2 = match &self.transport {
            Transport::Plain(_) => false,
            Transport::Tls(stream) => stream.get_ref().1.alpn_protocol() == Some(b"h2"),
        };
        if is_h2 { Connected::new().negotiated_h2() } else { Connected::new() }
    }
}

impl AsyncRead for Stream {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let read = match &mut this.transport {
            Transport::Plain(stream) => Pin::new(stream).poll_read(context, buffer),
            Transport::Tls(stream) => Pin::new(stream).poll_read(context, buffer),
        };
        if read.is_ready() {
            return read;
        }
        // Pending reads fail here.
        ready!(this.cut.as_mut().poll(context));
        Poll::Ready(Err(io::Error::new(
            io::ErrorKind::ConnectionAborted,
            "the connection was closed, since our credentials are other ones now",
        )))
    }
}

impl AsyncWrite for Stream {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        match &mut self.get_mut().transport {
            Transport::Plain(stream) => Pin::new(stream).poll_write(context, bytes),
            Transport::Tls(stream) => Pin::new(stream).poll_write(context, bytes),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.get_mut().transport {
            Transport::Plain(stream) => Pin::new(stream).poll_flush(context),
            Transport::Tls(stream) => Pin::new(stream).poll_flush(context),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.get_mut().transport {
            Transport::Plain(stream) => Pin::new(stream).poll_shutdown(context),
            Transport::Tls(stream) => Pin::new(stream).poll_shutdown(context),
        }
    }
}
