//! The server's TLS configuration, and how it treats client certificates.

use std::sync::Arc;

use tokio_rustls::rustls::client::danger::HandshakeSignatureValid;
use tokio_rustls::rustls::crypto::{
    CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature,
};
use tokio_rustls::rustls::pki_types::{CertificateDer, UnixTime};
use tokio_rustls::rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use tokio_rustls::rustls::server::{NoServerSessionStorage, ResolvesServerCert};
use tokio_rustls::rustls::version::{TLS12, TLS13};
use tokio_rustls::rustls::{
    DigitallySignedStruct, DistinguishedName, Error, ServerConfig, SignatureScheme,
    SupportedCipherSuite,
};

use crate::TlsSettings;

/// No chain with more can be verified. The time that a search for a path takes grows with the factorial of the number.
const MAX_INTERMEDIATES: usize = 6;
/// More than such certificates take. They are held twice, as long as the connection lasts.
const MAX_CHAIN_BYTES: usize = 16 * 1024;

/// The name of HTTP/2 in a TLS handshake.
pub(crate) const HTTP2: &[u8] = b"h2";

/// The TLS configuration of the server.
pub(crate) fn config(
    encryption: &TlsSettings,
    certificate: Arc<dyn ResolvesServerCert>,
    asks_for_certificate: bool,
) -> Result<ServerConfig, Error> {
    let provider = Arc::new(provider(&encryption.ciphers));
    let has_old = provider.cipher_suites.iter().any(|suite| suite.tls13().is_none());
    let versions =
        if encryption.only_tls13 || !has_old { &[&TLS13][..] } else { &[&TLS13, &TLS12] };
    let builder = ServerConfig::builder_with_provider(Arc::clone(&provider))
        .with_protocol_versions(versions)?;
    let builder = match asks_for_certificate {
        true => builder.with_client_cert_verifier(Arc::new(UncheckedClientCert { provider })),
        false => builder.with_no_client_auth(),
    };
    let mut config = builder.with_cert_resolver(certificate);
    // A client that offers both gets HTTP/2. Those that upgrade their connections offer HTTP/1.1 alone.
    config.alpn_protocols = vec![HTTP2.to_vec(), b"http/1.1".to_vec()];
    // A session to be resumed would hold the chain of a client that has gone.
    config.session_storage = Arc::new(NoServerSessionStorage {});
    config.send_tls13_tickets = 0;
    Ok(config)
}

/// The cipher suites of TLS 1.3 cannot be configured, as in Go: all are secure.
fn provider(wanted: &[String]) -> CryptoProvider {
    let mut provider = ring::default_provider();
    let is_wanted = |suite: &SupportedCipherSuite| {
        let name = format!("{:?}", suite.suite());
        let is_named = |wish: &String| *wish == name || format!("{wish}_SHA256") == name;
        suite.tls13().is_some() || wanted.is_empty() || wanted.iter().any(is_named)
    };
    provider.cipher_suites.retain(is_wanted);
    if provider.cipher_suites.iter().all(|suite| suite.tls13().is_some()) {
        tracing::error!(
            setting = "tlsCipherSuites",
            "no configured TLS cipher suite is supported, only TLS 1.3 is served"
        );
    }
    provider
}

/// Accepts every client that holds the key of the certificate it presents, unless the chain is too long. The authenticator verifies
/// the certificate later, against authorities that may have changed by then, so that an unknown client gets a 401 response and not a TLS error.
#[derive(Debug)]
struct UncheckedClientCert {
    provider: Arc<CryptoProvider>,
}

impl ClientCertVerifier for UncheckedClientCert {
    fn client_auth_mandatory(&self) -> bool {
        false
    }

    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        &[]
    }

    fn verify_client_cert(
        &self,
        own: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        _: UnixTime,
    ) -> Result<ClientCertVerified, Error> {
        let bytes = intermediates.iter().fold(own.len(), |sum, next| sum + next.len());
        if intermediates.len() > MAX_INTERMEDIATES || bytes > MAX_CHAIN_BYTES {
            return Err(Error::General("the chain of client certificates is too long".to_owned()));
        }
        Ok(ClientCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls12_signature(message, certificate, signature, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls13_signature(message, certificate, signature, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(wanted: &[&str]) -> Vec<String> {
        let wanted: Vec<String> = wanted.iter().map(|&name| name.to_owned()).collect();
        let suites = provider(&wanted).cipher_suites;
        let old = suites.iter().filter(|suite| suite.tls13().is_none());
        old.map(|suite| format!("{:?}", suite.suite())).collect()
    }

    #[test]
    fn only_configured_cipher_suites_are_used() {
        assert_eq!(names(&[]).len(), 6);
        let one = "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256";
        assert_eq!(names(&[one, "TLS_RSA_WITH_AES_128_CBC_SHA"]), [one]);
        let short = "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305";
        assert_eq!(names(&[short]), [format!("{short}_SHA256")]);
        assert_eq!(names(&["TLS_RSA_WITH_AES_128_CBC_SHA"]), [""; 0]);
    }
}
