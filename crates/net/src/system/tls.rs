//! TLS connections; distinguishes a server without TLS from one with an invalid certificate.

use std::io;
use std::path::{Path, PathBuf};
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
use tokio_rustls::rustls::pki_types::pem::{self, PemObject};
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
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

/// Whose certificates are good, and what is shown to the server, for connections that keep more than the defaults.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TlsOptions {
    /// Files of authorities, beside those of the machine.
    pub authorities: Vec<PathBuf>,
    /// The files of certificate and key that are shown.
    pub client: Option<(PathBuf, PathBuf)>,
    /// Whether any certificate is good: nothing is checked.
    pub accepts_any: bool,
}

/// The configuration of TLS connections with these options; the files are read now.
///
/// # Errors
/// When a file cannot be used, with its path.
pub async fn tls_config(options: TlsOptions) -> Result<ClientConfig, String> {
    let read = tokio::task::spawn_blocking(move || read_config(&options));
    read.await.map_err(|error| error.to_string())?
}

fn read_config(options: &TlsOptions) -> Result<ClientConfig, String> {
    let (builder, provider) = builder()?;
    let builder = if options.accepts_any {
        let verifier = Arc::new(NoCertificateVerification(provider));
        builder.dangerous().with_custom_certificate_verifier(verifier)
    } else {
        builder.with_root_certificates(roots(&options.authorities)?)
    };
    match &options.client {
        None => Ok(builder.with_no_client_auth()),
        Some((certificate, key)) => {
            let chain = certificates(certificate)?;
            let of_key = |error: pem::Error| format!("cannot use {}: {error}", key.display());
            let private_key = PrivateKeyDer::from_pem_file(key).map_err(of_key)?;
            let wrong = |error| format!("cannot use {}: {error}", certificate.display());
            builder.with_client_auth_cert(chain, private_key).map_err(wrong)
        }
    }
}

/// The machine's authorities and those of the files. With files of its own a server needs none of the machine's.
fn roots(files: &[PathBuf]) -> Result<RootCertStore, String> {
    let mut store = match native_authorities() {
        Err(_) if !files.is_empty() => RootCertStore::empty(),
        found => found?,
    };
    for path in files {
        let found = certificates(path)?;
        let (added, _) = store.add_parsable_certificates(found);
        if added == 0 {
            return Err(format!("cannot use {}: it holds no certificate", path.display()));
        }
    }
    Ok(store)
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, String> {
    let wrong = |error: pem::Error| format!("cannot use {}: {error}", path.display());
    CertificateDer::pem_file_iter(path).map_err(wrong)?.collect::<Result<_, _>>().map_err(wrong)
}

/// Made once: every HTTPS probe has it.
static WITHOUT_VERIFICATION: LazyLock<Result<Arc<ClientConfig>, String>> = LazyLock::new(|| {
    let mut config = read_config(&TlsOptions { accepts_any: true, ..TlsOptions::default() })?;
    // No session of one server is kept for another request.
    config.resumption = Resumption::disabled();
    Ok(Arc::new(config))
});

async fn config(trust: Trust) -> Result<Arc<ClientConfig>, String> {
    match trust {
        Trust::System => Ok(Arc::new(tls_config(TlsOptions::default()).await?)),
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

/// The machine's own authorities, read anew: one that is added is believed without a restart. Blocks.
fn native_authorities() -> Result<RootCertStore, String> {
    let found = rustls_native_certs::load_native_certs();
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
