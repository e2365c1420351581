//! The network of pods without CNI plugins: namespaces, a bridge, addresses, NAT and host ports, all by netlink.
//!
//! Nothing of the host is needed but its kernel, and nothing is changed that is not ours, except for forwarding, which is told
//! ([`HostChange`]). All names follow from the agent's root directory. All functions block, for milliseconds as a rule: the longest wait
//! is the deadline of a netlink socket. They work in the network and mount namespace of the calling thread.
//!
//! Pods that use the host's network need nothing of this but pinned namespaces of other kinds ([`NamespacePins`]).

mod bridge;
mod conntrack;
mod error;
mod faults;
mod files;
mod finding;
mod firewall;
mod host_port;
mod host_settings;
mod names;
mod netlink;
mod nftables;
mod pins;
mod pod_network;
mod records;
mod route;
mod settings;
mod shaping;
mod subnet;
mod subnet_choice;

#[cfg(test)]
mod tests;

pub use error::PodNetworkError;
pub use finding::{NetworkFinding, find_obstacles};
pub use host_port::{HostPort, PortProtocol};
pub use host_settings::HostChange;
pub use oarsman_host::namespaces::NamespaceKind;
pub use pins::NamespacePins;
pub use pod_network::{PodNetwork, ReconciledNetwork, SandboxNetwork, SandboxNetworkRequest};
pub use settings::PodNetworkSettings;
pub use subnet::{Subnet, SubnetError};
