//! What a runtime under test brings along.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use async_trait::async_trait;
use oarsman_cri::Runtime;
use oarsman_cri_types::v1::AuthConfig;

/// The runtime under test and its surroundings. Paths are the runtime's host paths, which for a fake
/// exist only in its world.
#[async_trait]
pub trait Harness: Send + Sync + 'static {
    /// The runtime.
    fn runtime(&self) -> Arc<dyn Runtime>;
    /// The images there are.
    fn images(&self) -> &ImageNames;
    /// The calls, by their RPC names, that the runtime may be without. A case that needs one of
    /// these and is told that it is not there is skipped; of any other it fails.
    fn may_lack(&self) -> &[&'static str] {
        &[]
    }
    /// A directory in which pods may have files and log directories.
    fn directory(&self) -> PathBuf;
    /// The cgroup below which all pods stand.
    fn cgroup_parent(&self) -> String;
    /// Reads a file of the host.
    async fn read(&self, path: &Path) -> io::Result<Vec<u8>>;
    /// Makes a file on the host, and its directory.
    async fn write(&self, path: &Path, content: &[u8]) -> io::Result<()>;
    /// Renames a file of the host.
    async fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;
}

/// Images by the names the runtime knows them under.
#[derive(Clone, Debug)]
pub struct ImageNames {
    /// On the node: the actor as entrypoint, running as root.
    pub script: String,
    /// On the node: the actor as user 1000 with `GREETING=hello` and working directory `/tmp`.
    pub script_as_user: String,
    /// Not on the node; a registry has it for everybody.
    pub pullable: String,
    /// Not on the node; a registry has it for whoever has the credentials.
    pub private: PrivateImage,
    /// In no registry.
    pub missing: String,
}

/// An image that wants credentials.
#[derive(Clone, Debug)]
pub struct PrivateImage {
    /// Its name.
    pub image: String,
    /// What opens it.
    pub credentials: AuthConfig,
}
