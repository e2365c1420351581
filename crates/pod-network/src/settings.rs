//! What the caller decides about the network of its pods.

use std::path::PathBuf;

use crate::subnet::Subnet;

/// What the caller decides about the network of its pods.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PodNetworkSettings {
    /// The agent's root directory. Names of links and tables follow from it.
    pub root: PathBuf,
    /// Where records and pinned namespaces are. It is this agent's alone.
    pub directory: PathBuf,
    /// The subnet of IPv4; without one, one that no route of the host overlaps with is chosen and remembered.
    pub ipv4_subnet: Option<Subnet>,
    /// The subnet of IPv6; without one, a unique local one follows from machine and root. Not used on a host without IPv6.
    pub ipv6_subnet: Option<Subnet>,
}

impl PodNetworkSettings {
    /// All chosen by us.
    pub fn new(root: impl Into<PathBuf>, directory: impl Into<PathBuf>) -> Self {
        Self {
            root: root.into(),
            directory: directory.into(),
            ipv4_subnet: None,
            ipv6_subnet: None,
        }
    }
}
