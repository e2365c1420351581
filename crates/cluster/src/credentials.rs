//! How the API server is reached and who we are to it: kubeconfig, certificates, and their renewal.
//!
//! Everybody in the agent has one [`kube::Client`] for good. What it stands on, a `Switch`, is replaced
//! as a whole whenever our credentials are other ones: new requests go over new connections at once, those
//! that are on their way have a while to end, and the old connections are closed.

pub mod certificate;
mod connector;
mod key;
mod kubeconfig;
mod lanes;
mod manager;
mod serving;
mod signing;
mod store;
mod switch;
mod watch;

#[cfg(test)]
mod tests;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use kube::config::KubeconfigError;
use oarsman_clock::Clock;
use ring::rand::{SecureRandom, SystemRandom};

use manager::Manager;
pub use serving::{Addresses, Origin, ServingCertificate, ServingKeeper, serving};

/// What a call to this module gives.
pub type Result<T> = std::result::Result<T, CredentialsError>;

/// Why we are nobody to the API server.
#[derive(Debug, thiserror::Error)]
pub enum CredentialsError {
    /// The kubeconfig, or a file that it names, cannot be used.
    #[error("kubeconfig {} cannot be used: {why}; mend it, or name another one", file.display())]
    Kubeconfig {
        /// The kubeconfig.
        file: PathBuf,
        /// What is wrong with it.
        why: Box<KubeconfigError>,
    },
    /// The kubeconfig can be read, but not followed.
    #[error("kubeconfig {} cannot be used: {why}", file.display())]
    Unusable {
        /// The kubeconfig.
        file: PathBuf,
        /// What is wrong with it, and what to do about it.
        why: String,
    },
    /// A file of ours is in trouble.
    #[error("cannot {what} {}: {why}", file.display())]
    File {
        /// What was to be done to it.
        what: &'static str,
        /// The file.
        file: PathBuf,
        /// Why that did not work.
        why: String,
    },
    /// A certificate cannot be used.
    #[error("the certificate in {} cannot be used: {why}", file.display())]
    Certificate {
        /// Where it lies.
        file: PathBuf,
        /// What is wrong with it.
        why: String,
    },
    /// A key could not be made or used.
    #[error("a key could not be made or used: {why}")]
    Key {
        /// What is wrong.
        why: String,
    },
    /// Somebody said no.
    #[error(
        "certificate signing request {name} was denied ({why}): whoever runs the cluster has to allow this node; see `kubectl describe csr {name}`, and start again to ask again"
    )]
    Denied {
        /// The request.
        name: String,
        /// Why they said so.
        why: String,
    },
    /// Nobody said anything.
    #[error(
        "certificate signing request {name} was not approved within {patience:?}: `kubectl certificate approve {name}`"
    )]
    Unanswered {
        /// The request.
        name: String,
        /// How long we waited.
        patience: Duration,
    },
    /// Somebody took the request away.
    #[error("certificate signing request {name} is gone; it is made again")]
    Gone {
        /// The request.
        name: String,
    },
    /// The server did not do what was asked.
    #[error("the API server did not serve {what}: {why}")]
    Server {
        /// What was asked of it.
        what: String,
        /// What it said.
        why: String,
    },
}

/// How the agent is to become somebody to the API server.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Where the server is and who we are; made if there is none yet and a bootstrap kubeconfig is given.
    pub kubeconfig: PathBuf,
    /// Where the server is and who may ask for the first certificate.
    pub bootstrap: Option<PathBuf>,
    /// Where certificates of our own lie.
    pub cert_dir: PathBuf,
    /// The node's name.
    pub node: String,
    /// Whether our certificate is renewed by ourselves.
    pub rotate: bool,
}

/// How the agent is connected, and what keeps it so.
#[derive(Debug)]
pub struct Connection {
    manager: Manager,
}

/// Connects as planned. Nothing is asked of the server yet, so it need not be there; where the first certificate is still to be
/// asked for, the client fails until it is here.
///
/// # Errors
/// When a kubeconfig, or a file that it names, cannot be used.
pub async fn connect(plan: Plan, clock: Arc<dyn Clock>) -> Result<Connection> {
    Ok(Connection { manager: Manager::begin(plan, clock).await? })
}

impl Connection {
    /// The client that everybody uses, for good.
    pub fn client(&self) -> kube::Client {
        self.manager.client()
    }

    /// Asks for our first certificate if need be, renews it, and follows files that somebody else renews. To be polled for as
    /// long as the client is used; it ends only with an error about which nothing can be done, such as a first request that was
    /// denied.
    pub async fn keep(self) -> CredentialsError {
        self.manager.run().await
    }
}

/// A draw from 0 to 1.
fn chance() -> f64 {
    let mut bytes = [0; 4];
    match SystemRandom::new().fill(&mut bytes) {
        Ok(()) => f64::from(u32::from_le_bytes(bytes)) / f64::from(u32::MAX),
        Err(_) => 0.5,
    }
}
