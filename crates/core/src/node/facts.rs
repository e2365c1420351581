//! What the statuses and the environments of pods need to know about their node.

use std::net::IpAddr;

use crate::features::FeatureGates;

/// What about the node goes into the status and the environment of every pod.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NodeFacts {
    /// The runtime's name for itself, such as `containerd`.
    pub runtime_name: String,
    /// The node's addresses, the primary one first.
    pub host_ips: Vec<String>,
    /// Whether the runtime can make a mount read-only all the way down.
    pub recursive_read_only: bool,
    /// Which features are on.
    pub features: FeatureGates,
}

impl NodeFacts {
    /// The first address of each family in the usual spelling, that of the node's primary family first.
    pub(crate) fn primary_first(&self, ips: &[String]) -> Vec<String> {
        let v4_first = self.host_ips.iter().find_map(|ip| parse(ip)).is_none_or(|ip| ip.is_ipv4());
        let first = |v4: bool| ips.iter().filter_map(|ip| parse(ip)).find(|ip| ip.is_ipv4() == v4);
        let both = [first(v4_first), first(!v4_first)];
        both.into_iter().flatten().map(|ip| ip.to_string()).collect()
    }
}

fn parse(ip: &str) -> Option<IpAddr> {
    ip.parse().ok()
}
