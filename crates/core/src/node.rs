//! The node's own object in the cluster: what it is registered as, how its status is made and when it is told.
//!
//! [`object::registered`] is the object of a node that is not registered yet. From then on [`status::next`] makes the object as it should
//! be out of the one that the API server has, [`change::patch`] is the difference, and [`reports::ReportSchedule`] says whether it has to be
//! told now. What is told is put into words for people by [`events::between`].

pub mod addresses;
pub mod amounts;
pub mod change;
pub mod conditions;
pub mod event_queue;
pub mod events;
pub mod images;
pub mod lease;
pub mod object;
pub mod reports;
pub mod runtime;
pub mod startup;
pub mod status;

mod facts;
mod info;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::net::IpAddr;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{ContainerImage, Taint};

use crate::time::Now;

use amounts::ReservedResources;
use conditions::Pressures;
use runtime::RuntimeHealth;

pub use facts::NodeFacts;
pub(crate) use info::OS;

/// What a node is told to be.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct NodeProfile {
    /// What it is called, which is also the name of its machine to others.
    pub name: String,
    /// Labels that it registers with besides those that every node has.
    pub labels: BTreeMap<String, String>,
    /// Taints that it registers with.
    pub taints: Vec<Taint>,
    /// What its cloud knows it as.
    pub provider_id: Option<String>,
    /// Whether an external cloud controller sets the cloud's fields of the node: `--cloud-provider=external`.
    pub has_cloud: bool,
    /// Whether a controller attaches volumes to it.
    pub controller_attaches: bool,
    /// The addresses that were configured (`--node-ip`).
    pub given_addresses: Vec<IpAddr>,
    /// Where its server listens.
    pub port: i32,
    /// The Kubernetes that it is a node of.
    pub version: String,
    /// How many pods it takes, whatever it has.
    pub max_pods: u32,
    /// How many pods it takes for each core; none for any number.
    pub pods_per_core: Option<u32>,
    /// How many images its status names; none for all.
    pub max_images: Option<usize>,
    /// What is kept from pods.
    pub reserved: ReservedResources,
    /// Whether local storage is counted as a resource.
    pub counts_storage: bool,
    /// What it can do that not every node of its version can.
    pub declared_features: Vec<String>,
}

/// What a machine is, for as long as it runs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MachineInfo {
    /// The number of logical processors.
    pub cpus: u32,
    /// Its memory in bytes.
    pub memory: u64,
    /// Its swap in bytes.
    pub swap: u64,
    /// The size in bytes of the file system that pods' directories lie on; none when it cannot be had.
    pub disk: Option<u64>,
    /// For each size of huge pages in bytes, how many there are.
    pub hugepages: BTreeMap<u64, u64>,
    /// What its installation is known by.
    pub machine_id: String,
    /// What its hardware is known by.
    pub system_uuid: String,
    /// What this boot of it is known by.
    pub boot_id: String,
    /// The version of its kernel.
    pub kernel: String,
    /// What its system calls itself.
    pub os_image: String,
    /// Its architecture, as Go spells it.
    pub architecture: String,
}

/// How a node is at one moment.
#[derive(Clone, Copy, Debug)]
pub struct NodeStatusInput<'a> {
    /// What it is told to be.
    pub profile: &'a NodeProfile,
    /// What it stands on.
    pub machine: &'a MachineInfo,
    /// The addresses it is reached at, the primary one first; empty while none is found.
    pub addresses: &'a [IpAddr],
    /// What its runtime has said.
    pub runtime: &'a RuntimeHealth,
    /// The images on it, as [`images::node_images`] orders them.
    pub images: &'a [ContainerImage],
    /// What it is short of.
    pub pressures: Pressures,
    /// Why it cannot hold volumes, if so.
    pub storage_trouble: Option<&'a str>,
    /// Whether its machine is being shut down.
    pub is_shutting_down: bool,
    /// The time of the heartbeat.
    pub now: Now,
}

/// As Go spells the machine's architecture.
pub fn go_architecture(rust: &str) -> &str {
    match rust {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        "x86" => "386",
        "powerpc64" => "ppc64le",
        "loongarch64" => "loong64",
        other => other,
    }
}

/// The moment as the API keeps it, without fractions of a second.
fn seconds(moment: Timestamp) -> k8s_openapi::apimachinery::pkg::apis::meta::v1::Time {
    let whole = Timestamp::from_second(moment.as_second()).unwrap_or(moment);
    k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(whole)
}
