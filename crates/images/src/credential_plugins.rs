//! The seam to credentials for registries: the node's own file, and the credential provider programs of the machine.

mod exec;
mod node_credentials;

use std::fmt::Display;
use std::path::{Path, PathBuf};

use async_trait::async_trait;
use oarsman_core::image::providers::CredentialProvider;
use oarsman_host::blocking::{BlockingKind, BlockingPool};
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
#[derive(Debug)]
pub struct HostCredentialPlugins {
    root: PathBuf,
    programs: PathBuf,
    /// A home directory may lie on a mount of a server that is gone: of all pods that ask, one waits for it on a thread.
    pool: BlockingPool,
}

impl HostCredentialPlugins {
    /// Those of an agent with this root directory, and the credential provider programs in that directory.
    pub fn new(root: PathBuf, programs: PathBuf) -> Self {
        Self { root, programs, pool: BlockingPool::new(BlockingKind::NodeCredentials) }
    }
}

#[async_trait]
impl CredentialPlugins for HostCredentialPlugins {
    async fn node_credentials(&self) -> Result<Option<String>, CredentialError> {
        let (root, place) = (self.root.clone(), self.root.clone());
        let read = move || node_credentials::read(&root);
        self.pool.run("", read, failed("work in", &place)).await
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

#[cfg(test)]
mod tests {
    use std::fs;
    use std::time::Duration;

    use oarsman_crash::HungMount;
    use tokio::runtime::Builder;
    use tokio::task::spawn_blocking;
    use tokio::time::timeout;

    use super::*;

    const LONG: Duration = Duration::from_secs(30);

    /// Row H18 of docs/security.md.
    #[test]
    fn a_file_on_a_file_system_that_hangs_takes_one_thread_however_often_it_is_read() {
        let place = tempfile::tempdir().unwrap();
        let point = place.path().join("mount");
        fs::create_dir(&point).unwrap();
        let Some(mount) = HungMount::at(&point) else { return };
        let plugins = HostCredentialPlugins::new(point.join("root"), PathBuf::new());
        let mut builder = Builder::new_current_thread();
        let runtime = builder.max_blocking_threads(2).enable_all().build().unwrap();
        runtime.block_on(async {
            for _ in 0..4 {
                let read = timeout(Duration::from_millis(20), plugins.node_credentials());
                assert!(read.await.is_err(), "it hangs");
            }
            timeout(LONG, spawn_blocking(|| ())).await.expect("a thread is left").unwrap();
            drop(mount);
            // The one that hung has ended.
            timeout(LONG, plugins.node_credentials()).await.unwrap().unwrap();
        });
    }
}
