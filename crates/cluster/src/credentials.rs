//! The connection to the API server: kubeconfig, client certificate, serving certificate, and their rotation.
//!
//! All parts of the agent share one [`kube::Client`]. The service under it, a `ClientService`, is replaced as a whole whenever the
//! credentials change: new requests use new connections at once, requests in flight have some time to end, and then the old
//! connections are closed.

pub mod certificate;
mod certificate_record;
mod certificate_store;
mod client_certificate_manager;
mod client_service;
mod connection_pools;
mod connector;
mod file_stamp;
mod key;
mod kubeconfig;
mod serving_certificate_manager;
mod signing;

#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use oarsman_clock::Clock;
use ring::rand::{SecureRandom, SystemRandom};

pub use certificate_record::CertificateRecord;
use client_certificate_manager::ClientCertificateManager;
pub use serving_certificate_manager::{
    AddressSource, ServingCertificate, ServingCertificateManager, ServingCertificateSource, serving,
};

/// What a call to this module gives.
pub type Result<T> = std::result::Result<T, CredentialsError>;

/// Why there are no usable credentials for the API server.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say what the fields are")]
pub enum CredentialsError {
    /// The kubeconfig, or a file that it names, cannot be used.
    #[error("kubeconfig {} cannot be used: {why}; mend it, or name another one", file.display())]
    Kubeconfig {
        file: PathBuf,
        /// What is wrong with it, without its values.
        why: String,
    },
    /// The kubeconfig can be read, but not followed.
    #[error("kubeconfig {} cannot be used: {why}", file.display())]
    Unusable {
        file: PathBuf,
        /// What is wrong with it, and what to do about it.
        why: String,
    },
    /// A file of ours is in trouble.
    #[error("cannot {what} {}: {why}", file.display())]
    File {
        /// What was to be done to it.
        what: &'static str,
        file: PathBuf,
        /// Why that did not work.
        why: String,
    },
    /// A certificate cannot be used.
    #[error("the certificate in {} cannot be used: {why}", file.display())]
    Certificate {
        file: PathBuf,
        /// What is wrong with it.
        why: String,
    },
    /// A key could not be made or used.
    #[error("a key could not be made or used: {why}")]
    Key { why: String },
    /// The signing request was denied.
    #[error(
        "certificate signing request {name} was denied ({why}): whoever runs the cluster has to allow this node; see `kubectl describe csr {name}`, and start again to ask again"
    )]
    Denied {
        name: String,
        /// Why they said so.
        why: String,
    },
    /// The signing request was not answered in time.
    #[error(
        "certificate signing request {name} was not approved within {patience:?}: `kubectl certificate approve {name}`"
    )]
    Unanswered {
        name: String,
        /// How long we waited.
        patience: Duration,
    },
    /// The signing request was deleted.
    #[error("certificate signing request {name} is gone; it is made again")]
    Gone { name: String },
    /// The server did not do what was asked.
    #[error("the API server did not serve {what}: {why}")]
    Server {
        /// What was asked of it.
        what: String,
        why: String,
    },
}

/// The configuration of the client credentials.
#[derive(Clone, Debug)]
pub struct CredentialsConfig {
    /// The kubeconfig; written if there is none yet and a bootstrap kubeconfig is given.
    pub kubeconfig: PathBuf,
    /// The bootstrap kubeconfig, with which the first certificate is requested.
    pub bootstrap: Option<PathBuf>,
    /// The directory of our own certificates.
    pub cert_dir: PathBuf,
    /// The name of the node that the credentials are for.
    pub node: String,
    /// Whether the client certificate is rotated by the agent (`rotateCertificates`).
    pub rotate: bool,
}

/// The agent's connection, and the manager of its client certificate.
#[derive(Debug)]
pub struct Connection {
    manager: ClientCertificateManager,
}

/// Connects as planned. Nothing is asked of the server yet, so it need not be there; where the first certificate is still to be
/// asked for, the client fails until it is here.
///
/// # Errors
/// When a kubeconfig, or a file that it names, cannot be used.
pub async fn connect(config: CredentialsConfig, clock: Arc<dyn Clock>) -> Result<Connection> {
    Ok(Connection { manager: ClientCertificateManager::begin(config, clock).await? })
}

impl Connection {
    /// The client that all parts of the agent share.
    pub fn client(&self) -> kube::Client {
        self.manager.client()
    }

    /// What is known of the client certificate.
    pub fn certificate_record(&self) -> CertificateRecord {
        self.manager.record()
    }

    /// Requests the first certificate if necessary, rotates it, and reloads files that others renew. To be polled for as long as the
    /// client is used; it ends only with an error that cannot be retried, such as a first request that was denied.
    pub async fn run(&mut self) -> CredentialsError {
        self.manager.run().await
    }
}

/// A random number from 0 to 1.
fn random_fraction() -> f64 {
    let mut bytes = [0; 4];
    match SystemRandom::new().fill(&mut bytes) {
        Ok(()) => f64::from(u32::from_le_bytes(bytes)) / f64::from(u32::MAX),
        Err(_) => 0.5,
    }
}

/// Whether the text of a kubeconfig can be used; files that it names are read. For tests of the parser: the agent reads it by its path.
///
/// # Errors
/// Why it cannot.
#[doc(hidden)]
pub async fn check_kubeconfig(text: &str) -> Result<()> {
    let access = kubeconfig::ApiAccess::parse(text, Path::new("kubeconfig")).await?;
    drop((access.files(), access.certificate()));
    Ok(())
}
