//! The seam to credentials for registries: the node's own file, and the credential provider programs of the machine.

mod exec;
mod node_credentials;

use std::fmt::Display;
use std::path::{Path, PathBuf};

use async_trait::async_trait;
use oarsman_core::image::providers::CredentialProvider;
use oarsman_host::blocking;
use oarsman_seam::{Call, CallFault, SeamError, seam};

/// Where credentials for registries come from besides a pod's own Secrets.
#[seam]
pub trait CredentialPlugins: Send + Sync + 'static {
    /// The node's file of credentials as it is now; none when there is none.
    #[seam(call = "read the node's credentials")]
    async fn node_credentials(&self) -> Result<Option<String>, CredentialError>;

    /// Executes a credential provider with this request on its standard input, and returns its standard output.
    #[seam(call = "ask for credentials", object = provider.name)]
    async fn exec(
        &self,
        provider: &CredentialProvider,
        request: &str,
    ) -> Result<Vec<u8>, CredentialError>;
}

/// Credentials could not be read or got from a provider.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("cannot {doing} {}: {why}", path.display())]
pub struct CredentialError {
    /// The step that failed.
    pub doing: &'static str,
    /// The file, or the program.
    pub path: PathBuf,
    /// What the system or the program said.
    pub why: String,
}

impl SeamError for CredentialError {
    fn of_fault(call: &Call, fault: CallFault) -> Self {
        Self { doing: call.name, path: PathBuf::from(&call.object), why: fault.to_string() }
    }
}

/// Files and programs of this machine.
#[derive(Clone, Debug)]
pub struct HostCredentialPlugins {
    /// The root directory of the agent.
    pub root: PathBuf,
    /// Where the credential provider programs lie.
    pub programs: PathBuf,
}

#[async_trait]
impl CredentialPlugins for HostCredentialPlugins {
    async fn node_credentials(&self) -> Result<Option<String>, CredentialError> {
        let (root, place) = (self.root.clone(), self.root.clone());
        blocking::run(move || node_credentials::read(&root), failed("work in", &place)).await
    }

    async fn exec(
        &self,
        provider: &CredentialProvider,
        request: &str,
    ) -> Result<Vec<u8>, CredentialError> {
        exec::exec(&self.programs, provider, request).await
    }
}

fn failed<E: Display>(doing: &'static str, path: &Path) -> impl FnOnce(E) -> CredentialError {
    move |why| CredentialError { doing, path: path.to_owned(), why: why.to_string() }
}
