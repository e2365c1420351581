//! Clients of the kubelet server: one that reads a response, and others that send half of a request, read nothing, keep commands running, or ask
//! for what they may not have.

mod access_client;
mod exec_sessions;
mod responses;
mod stalled_log_readers;
mod unfinished_requests;

use std::net::SocketAddr;
use std::sync::Arc;

use anyhow::{Context, Result};
use oarsman_rig::control_plane::CertificateFiles;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tokio::net::{TcpSocket, TcpStream};
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_rustls::rustls::client::danger::{
    HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier,
};
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use tokio_rustls::rustls::{
    ClientConfig, DigitallySignedStruct, Error as TlsError, SignatureScheme,
};

pub use access_client::AccessClient;
pub use exec_sessions::ExecSessions;
pub use responses::get_text;
pub use stalled_log_readers::StalledLogReaders;
pub use unfinished_requests::UnfinishedRequests;

/// What the server may send ahead of a client that does not read.
const RECEIVE_BUFFER_BYTES: u32 = 8 * 1024;

/// How a client connects to the kubelet server.
#[derive(Clone)]
struct ServerConnector {
    server: SocketAddr,
    tls: TlsConnector,
}

impl ServerConnector {
    /// With a certificate, or as a client that nothing is known of.
    fn new(server: SocketAddr, identity: Option<&CertificateFiles>) -> Result<Self> {
        let builder = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .context("TLS versions")?;
        let builder = builder.dangerous().with_custom_certificate_verifier(Arc::new(AnyServer));
        let config = match identity {
            Some(files) => {
                let certificate = CertificateDer::from_pem_file(&files.certificate)?;
                let key = PrivateKeyDer::from_pem_file(&files.key)?;
                builder.with_client_auth_cert(vec![certificate], key)?
            }
            None => builder.with_no_client_auth(),
        };
        Ok(Self { server, tls: TlsConnector::from(Arc::new(config)) })
    }

    /// Connects from a given address of this machine; port 0 stands for any.
    async fn connect_from(&self, client: SocketAddr) -> Result<TlsStream<TcpStream>> {
        let socket = TcpSocket::new_v4()?;
        socket.set_recv_buffer_size(RECEIVE_BUFFER_BYTES)?;
        socket.bind(client)?;
        let name = ServerName::IpAddress(self.server.ip().into());
        Ok(self.tls.connect(name, socket.connect(self.server).await?).await?)
    }
}

/// The sockets of all clients are in the process of the test.
fn raise_descriptor_limit() -> Result<()> {
    let maximum = getrlimit(Resource::Nofile).maximum;
    Ok(setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum })?)
}

/// Accepts every server: these clients send nothing that is secret.
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
