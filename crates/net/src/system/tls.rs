//! TLS connections; distinguishes a server without TLS from one with an invalid certificate.

use std::io;
use std::pin::Pin;
use std::sync::{Arc, LazyLock};
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_rustls::rustls::client::Resumption;
use tokio_rustls::rustls::client::danger::{
    HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier,
};
use tokio_rustls::rustls::crypto::{CryptoProvider, ring};
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use tokio_rustls::rustls::{
    self, ClientConfig, DigitallySignedStruct, Error, RootCertStore, SignatureScheme, WantsVerifier,
};

use crate::{HttpGet, NetworkError, Trust};

/// Enough bytes to recognize HTTP.
const HTTP: &[u8; 5] = b"HTTP/";

/// Agrees with the server on TLS.
pub(super) async fn connect_tls(
    request: &HttpGet,
    socket: TcpStream,
) -> Result<TlsStream<RecordingStream<TcpStream>>, NetworkError> {
    let failed = |why: String| NetworkError::Tls { url: request.url(), why };
    let name = ServerName::try_from(request.host.clone()).map_err(|e| failed(e.to_string()))?;
    let config = config(request.trust).await.map_err(failed)?;
    let opening = RecordingStream { inner: socket, first: Vec::new() };
    let shaken = TlsConnector::from(config).connect(name, opening).into_fallible().await;
    shaken.map_err(|(error, opening)| {
        if opening.first == HTTP {
            return NetworkError::PlainHttp { url: request.url() };
        }
        failed(error.to_string())
    })
}

/// Made once: every HTTPS probe has it.
static WITHOUT_VERIFICATION: LazyLock<Result<Arc<ClientConfig>, String>> = LazyLock::new(|| {
    let (builder, provider) = builder()?;
    let mut config = builder
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(NoCertificateVerification(provider)))
        .with_no_client_auth();
    // No session of one server is kept for another request.
    config.resumption = Resumption::disabled();
    Ok(Arc::new(config))
});

async fn config(trust: Trust) -> Result<Arc<ClientConfig>, String> {
    match trust {
        Trust::System => {
            let builder = builder()?.0.with_root_certificates(authorities().await?);
            Ok(Arc::new(builder.with_no_client_auth()))
        }
        Trust::AnyCertificate => WITHOUT_VERIFICATION.clone(),
    }
}

type ConfigBuilder = rustls::ConfigBuilder<ClientConfig, WantsVerifier>;

fn builder() -> Result<(ConfigBuilder, Arc<CryptoProvider>), String> {
    let provider = Arc::new(ring::default_provider());
    let builder = ClientConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())?;
    Ok((builder, provider))
}

/// The machine's own authorities, read anew: one that is added is believed without a restart.
async fn authorities() -> Result<RootCertStore, String> {
    let read = tokio::task::spawn_blocking(rustls_native_certs::load_native_certs);
    let found = read.await.map_err(|error| error.to_string())?;
    let mut store = RootCertStore::empty();
    let (added, _) = store.add_parsable_certificates(found.certs);
    if added == 0 {
        let why = found.errors.first().map(|error| format!(" ({error})")).unwrap_or_default();
        return Err(format!(
            "this machine has no certificate authorities{why}: install the package ca-certificates"
        ));
    }
    Ok(store)
}

/// A stream that records the first bytes it reads.
#[derive(Debug)]
pub(super) struct RecordingStream<S> {
    inner: S,
    first: Vec<u8>,
}

impl<S: AsyncRead + Unpin> AsyncRead for RecordingStream<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        ready!(Pin::new(&mut self.inner).poll_read(cx, buf))?;
        let missing = HTTP.len().saturating_sub(self.first.len());
        let heard = buf.filled().iter().skip(before).take(missing);
        self.first.extend(heard);
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for RecordingStream<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.inner).poll_write(cx, buf)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_shutdown(cx)
    }
}

/// Accepts every certificate, and checks no signatures either: a pod's certificate may be of any kind.
#[derive(Debug)]
struct NoCertificateVerification(Arc<CryptoProvider>);

impl ServerCertVerifier for NoCertificateVerification {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn verify_tls13_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}
