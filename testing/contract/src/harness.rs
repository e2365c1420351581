//! The trait by which a runtime under test and its host are given to the suite.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use async_trait::async_trait;
use oarsman_cri::Runtime;
use oarsman_cri_types::v1::AuthConfig;

/// The runtime under test and its host. Paths are the runtime's host paths, which for a fake exist only in its simulated disk.
#[async_trait]
pub trait Harness: Send + Sync + 'static {
    /// The runtime under test.
    fn runtime(&self) -> Arc<dyn Runtime>;
    /// The images that the cases use.
    fn images(&self) -> &ImageNames;
    /// The calls, by their RPC names, that the runtime may lack. A case that needs one of these and gets `Unimplemented` is skipped; for any
    /// other call it fails.
    fn may_lack(&self) -> &[&'static str] {
        &[]
    }
    /// Whether its containers are processes of this machine's kernel, and its host's paths those of this process. Cases that need it lack
    /// `RealContainers` otherwise.
    fn has_real_containers(&self) -> bool {
        false
    }
    /// A directory in which pods may have files and log directories.
    fn directory(&self) -> PathBuf;
    /// The cgroup that all pods are below.
    fn cgroup_parent(&self) -> String;
    /// Reads a file of the host.
    async fn read(&self, path: &Path) -> io::Result<Vec<u8>>;
    /// Writes a file on the host, and makes its directory.
    async fn write(&self, path: &Path, content: &[u8]) -> io::Result<()>;
    /// Renames a file of the host.
    async fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;
}

/// Images by the names the runtime knows them under.
#[derive(Clone, Debug)]
pub struct ImageNames {
    /// On the node: `oarsman-script` as entrypoint, running as root.
    pub script: String,
    /// On the node: `oarsman-script` as user 1000 with `GREETING=hello` and working directory `/tmp`.
    pub script_as_user: String,
    /// Not on the node; a registry gives it without credentials.
    pub pullable: String,
    /// Not on the node; a registry gives it for credentials only.
    pub private: PrivateImage,
    /// In no registry.
    pub missing: String,
}

/// An image that needs credentials.
#[derive(Clone, Debug)]
pub struct PrivateImage {
    /// Its name.
    pub image: String,
    /// The credentials.
    pub credentials: AuthConfig,
}
