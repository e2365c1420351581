//! The seam to what the machine says of itself while the agent runs: the files by which it resolves names, and its addresses.

mod addresses;
#[cfg(test)]
mod tests;

use std::fmt::Display;
use std::io;
use std::path::{Path, PathBuf};

use async_trait::async_trait;
use oarsman_core::cri_spec::NameFiles;
use oarsman_core::gc::images::ImageFsStats;
use oarsman_core::node::addresses::AddressCandidates;
use oarsman_seam::{Call, CallFault, SeamError, seam};
use tokio::time::timeout;

use crate::blocking::{BlockingKind, BlockingPool};
use crate::files::{FileContents, read_regular};

pub use addresses::unusable_reason;

use addresses::{RESOLVE_TIMEOUT, is_on_interface, resolved, routed};

/// The most bytes of a file by which names are resolved; the Go kubelet's limit of a resolv.conf.
const FILE_LIMIT: u64 = 10 << 20;

/// What the machine says of itself. All of it may change while the agent runs.
#[seam]
pub trait HostInfo: Send + Sync + 'static {
    /// The files by which the machine resolves names, as they are now.
    #[seam(call = "read the files of names")]
    async fn name_files(&self) -> Result<NameFiles, HostInfoError>;

    /// The addresses of a node of that name on this machine. A resolver that does not answer delays this for two seconds at most.
    #[seam(call = "look for the addresses of", object = name)]
    async fn address_candidates(&self, name: &str) -> Result<AddressCandidates, HostInfoError>;

    /// The size of the file system that holds a directory, and what is free of it.
    #[seam(call = "read the size of the file system of", object = directory)]
    async fn file_system(&self, directory: &str) -> Result<ImageFsStats, HostInfoError>;
}

/// The machine did not say something of itself.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("cannot {doing} {object}: {why}")]
pub struct HostInfoError {
    /// The call that failed.
    pub doing: &'static str,
    /// The file, or the node.
    pub object: String,
    /// The error of the system.
    pub why: String,
}

impl SeamError for HostInfoError {
    fn of_fault(call: &Call, fault: CallFault) -> Self {
        Self { doing: call.name, object: call.object.clone(), why: fault.to_string() }
    }
}

fn failed<E: Display>(
    doing: &'static str,
    object: impl Display,
) -> impl FnOnce(E) -> HostInfoError {
    let object = object.to_string();
    move |why| HostInfoError { doing, object, why: why.to_string() }
}

/// The files and addresses of the machine that the agent runs on.
#[derive(Debug)]
pub struct MachineHostInfo {
    resolv_conf: Option<PathBuf>,
    hosts: PathBuf,
    files: BlockingPool,
    resolver: BlockingPool,
    file_systems: BlockingPool,
}

impl MachineHostInfo {
    /// Reads that resolv.conf, or none.
    pub fn new(resolv_conf: Option<PathBuf>) -> Self {
        Self::with_files(resolv_conf, "/etc/hosts".into())
    }

    fn with_files(resolv_conf: Option<PathBuf>, hosts: PathBuf) -> Self {
        let (files, resolver) =
            (BlockingPool::new(BlockingKind::NameFiles), BlockingPool::new(BlockingKind::Resolver));
        let file_systems = BlockingPool::new(BlockingKind::FileSystems);
        Self { resolv_conf, hosts, files, resolver, file_systems }
    }

    /// What the resolver says; none when it does not answer in time. The call that hangs keeps its thread, and the next ones wait for it, so
    /// that there is never more than one.
    async fn resolve(&self, name: &str) -> Option<Vec<std::net::IpAddr>> {
        let owned = name.to_owned();
        let work = move || Ok(resolved(&owned));
        let answer = self.resolver.run("resolver", work, failed("resolve", name));
        timeout(RESOLVE_TIMEOUT, answer).await.ok().and_then(Result::ok)
    }
}

#[async_trait]
impl HostInfo for MachineHostInfo {
    async fn name_files(&self) -> Result<NameFiles, HostInfoError> {
        let (resolv_conf, hosts) = (self.resolv_conf.clone(), self.hosts.clone());
        let read = move || {
            let resolv_conf = resolv_conf.as_deref().map(read_or_empty).transpose()?;
            Ok(NameFiles { resolv_conf, hosts: read_or_empty(&hosts)? })
        };
        self.files.run("name files", read, failed("read", self.hosts.display())).await
    }

    async fn address_candidates(&self, name: &str) -> Result<AddressCandidates, HostInfoError> {
        let on_interface =
            |ips: Vec<_>| ips.into_iter().filter(|ip| is_on_interface(*ip)).collect();
        Ok(AddressCandidates {
            by_name: self.resolve(name).await.map(on_interface),
            by_route: routed(),
        })
    }

    async fn file_system(&self, directory: &str) -> Result<ImageFsStats, HostInfoError> {
        let owned = directory.to_owned();
        let read = move || {
            let room = rustix::fs::statvfs(&owned).map_err(failed("read the size of", &owned))?;
            Ok(ImageFsStats {
                capacity: room.f_blocks.saturating_mul(room.f_frsize),
                available: room.f_bavail.saturating_mul(room.f_frsize),
            })
        };
        self.file_systems.run(directory, read, failed("read the size of", directory)).await
    }
}

/// The text of a file; empty if there is no such file.
fn read_or_empty(path: &Path) -> Result<String, HostInfoError> {
    let wrong = |why: &str| failed("read", path.display())(why);
    match read_regular(path, FILE_LIMIT) {
        Ok(FileContents::Bytes(bytes)) => Ok(String::from_utf8_lossy(&bytes).into_owned()),
        Ok(FileContents::TooLong) => Err(wrong("it is longer than 10 MiB")),
        Ok(FileContents::Other(kind)) => Err(wrong(&format!("it is {kind}"))),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(String::new()),
        Err(error) => Err(failed("read", path.display())(error)),
    }
}
