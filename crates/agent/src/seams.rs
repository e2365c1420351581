//! The seams: everything the agent does to the world, and everything it learns of it, goes through them.

mod bounded;
mod disk;
mod network;
mod vault;

use std::sync::Arc;

use oarsman_clock::Clock;
use oarsman_cluster::Cluster;
use oarsman_cri::Runtime;

pub(crate) use bounded::bounded;
pub use disk::{Disk, DiskError, Furniture, Holding};
pub use network::{HttpAnswer, HttpGet, Network, NetworkError, Scheme, Trust};
pub use vault::Vault;

/// The world as the agent sees it.
#[derive(Clone)]
pub struct Seams {
    /// What runs containers.
    pub runtime: Arc<dyn Runtime>,
    /// The API server, or nobody.
    pub cluster: Arc<dyn Cluster>,
    /// Pod directories, cgroups and what is remembered.
    pub disk: Arc<dyn Disk>,
    /// Both clocks and the dice.
    pub clock: Arc<dyn Clock>,
    /// Servers that are asked over HTTP. A call keeps its own deadline.
    pub network: Arc<dyn Network>,
    /// Where pods of the cluster are remembered; nowhere if they are not to be.
    pub vault: Option<Arc<dyn Vault>>,
}
