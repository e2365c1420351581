//! Where a node is reached: which addresses of its machine it has, and how its object shows them.

use std::net::{IpAddr, Ipv4Addr};

use k8s_openapi::api::core::v1::NodeAddress;

use super::{NodeProfile, NodeStatusInput};

/// What a cloud is told of the addresses that were given.
pub(super) const PROVIDED: &str = "alpha.kubernetes.io/provided-node-ip";

/// What the configuration says of the node's addresses.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AddressSettings {
    /// `--node-ip`; an address of all zeros only says which family is preferred.
    pub given: Vec<IpAddr>,
    /// The node's name, which may resolve to its address.
    pub name: String,
    /// Whether other machines must reach the node: then an address that only this machine reaches is none.
    pub in_cluster: bool,
}

/// What the machine tells about its addresses. All of them are on an interface of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AddressCandidates {
    /// What the resolver answers for the node's name; none when it did not answer in time.
    pub by_name: Option<Vec<IpAddr>>,
    /// The source addresses of the default routes.
    pub by_route: Vec<IpAddr>,
}

impl AddressSettings {
    /// The addresses that follow from the configuration alone.
    pub fn configured(&self) -> Option<Vec<IpAddr>> {
        let given = self.given.iter().copied().filter(|ip| !ip.is_unspecified());
        let given: Vec<IpAddr> = given.collect();
        let by_name = || Some(vec![self.name.parse().ok().filter(|ip| self.is_usable(*ip))?]);
        if given.is_empty() { by_name() } else { Some(given) }
    }

    /// The node's addresses: those of the configuration, else the one of its name, else the one of its default route. While the resolver
    /// does not answer, those that are known stay. Empty when there is none in a cluster; loopback without one.
    pub fn choose(&self, found: &AddressCandidates, known: &[IpAddr]) -> Vec<IpAddr> {
        if let Some(configured) = self.configured() {
            return configured;
        }
        if found.by_name.is_none() && known.iter().any(|ip| self.is_usable(*ip)) {
            return known.to_vec();
        }
        let by_name = self.preferred(found.by_name.as_deref().unwrap_or_default());
        let chosen = by_name.or_else(|| self.preferred(&found.by_route));
        let loopback = (!self.in_cluster).then_some(IpAddr::V4(Ipv4Addr::LOCALHOST));
        chosen.or(loopback).into_iter().collect()
    }

    /// The first usable one of the preferred family, or the first usable one.
    fn preferred(&self, ips: &[IpAddr]) -> Option<IpAddr> {
        let v6 = self.given.first().is_some_and(IpAddr::is_ipv6);
        let usable = || ips.iter().copied().filter(|ip| unreachable_kind(*ip).is_none());
        usable().find(|ip| ip.is_ipv6() == v6).or_else(|| usable().next())
    }

    fn is_usable(&self, ip: IpAddr) -> bool {
        !self.in_cluster || unreachable_kind(ip).is_none()
    }
}

/// Why no other machine reaches a node at this address, whatever interfaces there are.
pub fn unreachable_kind(ip: IpAddr) -> Option<&'static str> {
    let is_link_local = match ip {
        IpAddr::V4(ip) => ip.is_link_local(),
        IpAddr::V6(ip) => ip.is_unicast_link_local(),
    };
    if ip.is_unspecified() {
        Some("no address (unspecified)")
    } else if ip.is_loopback() {
        Some("the machine's own (loopback)")
    } else if ip.is_multicast() {
        Some("a group's (multicast)")
    } else if is_link_local {
        Some("only for one link")
    } else {
        None
    }
}

/// The addresses as the object shows them.
pub fn shown(addresses: &[IpAddr], name: &str) -> Vec<NodeAddress> {
    let address = |type_: &str, address: String| NodeAddress { type_: type_.to_owned(), address };
    let internal = addresses.iter().map(|ip| address("InternalIP", ip.to_string()));
    internal.chain([address("Hostname", name.to_owned())]).collect()
}

/// The addresses of a node that had those.
pub(super) fn next(input: &NodeStatusInput<'_>, before: &[NodeAddress]) -> Vec<NodeAddress> {
    let profile = input.profile;
    // What the cloud says goes before what we know.
    if profile.has_cloud && !before.is_empty() {
        return before.to_vec();
    }
    let knows_nothing = profile.has_cloud && profile.given_addresses.is_empty();
    shown(if knows_nothing { &[] } else { input.addresses }, &profile.name)
}

/// The addresses for the cloud to find the node by; none when there is no cloud or nothing was given.
pub(super) fn provided(profile: &NodeProfile) -> Option<String> {
    let given: Vec<String> = profile.given_addresses.iter().map(ToString::to_string).collect();
    Some(given.join(",")).filter(|given| profile.has_cloud && !given.is_empty())
}
