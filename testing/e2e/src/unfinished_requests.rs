//! Clients that connect over TLS, send a part of a request's head and then nothing, and come back when they are disconnected.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use anyhow::{Context, Result};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::client::danger::{
    HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier,
};
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use tokio_rustls::rustls::{
    ClientConfig, DigitallySignedStruct, Error as TlsError, SignatureScheme,
};

/// How long a client waits for the server before it comes back.
const PATIENCE: Duration = Duration::from_secs(20);

/// Clients of one server; they are gone when this is dropped.
pub struct UnfinishedRequests {
    connected: Arc<AtomicUsize>,
    _clients: JoinSet<()>,
}

impl UnfinishedRequests {
    /// Starts so many clients.
    ///
    /// # Errors
    /// When TLS cannot be set up.
    pub fn begin(server: SocketAddr, count: usize) -> Result<Self> {
        let connector = TlsConnector::from(Arc::new(config()?));
        let (connected, mut clients) = (Arc::new(AtomicUsize::new(0)), JoinSet::new());
        for _ in 0..count {
            let (connector, connected) = (connector.clone(), Arc::clone(&connected));
            clients.spawn(async move {
                loop {
                    // A refused connection is what is to be expected.
                    timeout(PATIENCE, connect(&connector, server, &connected)).await.ok();
                    tokio::time::sleep(Duration::from_millis(200)).await;
                }
            });
        }
        Ok(Self { connected, _clients: clients })
    }

    /// How many connections have got as far as a part of a head.
    pub fn connected(&self) -> usize {
        self.connected.load(Ordering::Relaxed)
    }
}

async fn connect(
    connector: &TlsConnector,
    server: SocketAddr,
    connected: &AtomicUsize,
) -> Result<()> {
    let tcp = TcpStream::connect(server).await?;
    let name = ServerName::IpAddress(server.ip().into());
    let mut stream = connector.connect(name, tcp).await?;
    stream.write_all(b"GET /pods HTTP/1.1\r\nHost: node\r\nAuthorization: Bea").await?;
    stream.flush().await?;
    connected.fetch_add(1, Ordering::Relaxed);
    // Until the server gives up.
    stream.read_to_end(&mut Vec::new()).await?;
    Ok(())
}

fn config() -> Result<ClientConfig> {
    let builder = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .context("TLS versions")?;
    let any = Arc::new(AnyServer);
    Ok(builder.dangerous().with_custom_certificate_verifier(any).with_no_client_auth())
}

/// Accepts every server certificate: nothing secret is sent.
#[derive(Debug)]
struct AnyServer;

impl ServerCertVerifier for AnyServer {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, TlsError> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, TlsError> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn verify_tls13_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, TlsError> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        ring::default_provider().signature_verification_algorithms.supported_schemes()
    }
}
