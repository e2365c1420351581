//! Which subnets the pods get: the configured ones, else the remembered ones, else such as no route of the host overlaps with.

use std::fs;
use std::net::{IpAddr, Ipv4Addr};
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::error::PodNetworkError;
use crate::files::{read, replace};
use crate::names::Names;
use crate::route::RouteEntry;
use crate::settings::PodNetworkSettings;
use crate::subnet::Subnet;

/// The private ranges, each with the length of its prefix, in the order in which they are tried. Between them lies what clusters (10.96,
/// 10.244), other runtimes (10.88, 172.17) and home networks (192.168.0) usually have.
const RANGES: [(Ipv4Addr, u8); 3] = [
    (Ipv4Addr::new(10, 192, 0, 0), 11),
    (Ipv4Addr::new(172, 24, 0, 0), 13),
    (Ipv4Addr::new(192, 168, 128, 0), 17),
];
/// How many subnets of a range are tried.
const TRIES: u64 = 32;
/// Routes with a shorter prefix mean the rest of the world.
const SHORTEST_PREFIX: u8 = 4;
/// Room for 253 pods.
const PREFIX: u8 = 24;

/// The subnets of pods: of IPv4 first.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct PodSubnets(pub(crate) Vec<Subnet>);

impl PodSubnets {
    /// Those that were chosen earlier. What cannot be decoded is chosen again.
    pub(crate) fn remembered(path: &Path) -> Result<Option<Self>, PodNetworkError> {
        Ok(read(path)?.and_then(|text| serde_json::from_slice(&text).ok()))
    }

    /// Keeps the choice, also over a crash of the machine: pods of one root have addresses of one subnet for years.
    pub(crate) fn remember(&self, path: &Path) -> Result<(), PodNetworkError> {
        let text = serde_json::to_vec(self).unwrap_or_default();
        replace(path, &text, true)
    }

    /// The subnets to use. `routes` are those of the host without those of our own bridge.
    pub(crate) fn choose(
        settings: &PodNetworkSettings,
        names: &Names,
        remembered: Option<&Self>,
        routes: &[RouteEntry],
        with_ipv6: bool,
    ) -> Result<Self, PodNetworkError> {
        let of_family = |ipv4: bool| {
            let old = remembered.and_then(|old| old.0.iter().find(|one| one.is_ipv4() == ipv4));
            old.copied().filter(|old| collision(*old, routes).is_none())
        };
        let ipv4 = match settings.ipv4_subnet.or_else(|| of_family(true)) {
            Some(subnet) => subnet,
            None => free_ipv4(names, routes)?,
        };
        let local = || names.local_ipv6(&fs::read("/etc/machine-id").unwrap_or_default());
        let ipv6 = settings.ipv6_subnet.or_else(|| of_family(false)).or_else(local);
        Ok(Self([Some(ipv4), ipv6.filter(|_| with_ipv6)].into_iter().flatten().collect()))
    }
}

fn free_ipv4(names: &Names, routes: &[RouteEntry]) -> Result<Subnet, PodNetworkError> {
    let mut in_the_way = None;
    for candidate in ipv4_candidates(names.seed()) {
        match collision(candidate, routes) {
            None => return Ok(candidate),
            found => in_the_way = found,
        }
    }
    Err(PodNetworkError::NoFreeSubnet { route: in_the_way })
}

/// The route that a subnet overlaps with. The default route is for all that is not routed otherwise, and so are the halves and
/// quarters into which VPNs split it.
fn collision(subnet: Subnet, routes: &[RouteEntry]) -> Option<Subnet> {
    let others = routes.iter().filter(|route| route.destination.prefix() >= SHORTEST_PREFIX);
    others.map(|route| route.destination).find(|route| route.overlaps(subnet))
}

/// The subnets that are tried, in an order that follows from the root.
fn ipv4_candidates(seed: u64) -> impl Iterator<Item = Subnet> {
    RANGES.into_iter().flat_map(move |(range, prefix)| {
        let count = 1_u64 << (PREFIX - prefix);
        (0..TRIES.min(count)).filter_map(move |number| {
            // 37 has no divisor in common with the counts, which are powers of two: no subnet is tried twice.
            let place = (seed.wrapping_add(number.wrapping_mul(37))) % count;
            let place = u32::try_from(place).ok()? << (32 - PREFIX);
            Subnet::of(IpAddr::V4(Ipv4Addr::from(u32::from(range) | place)), PREFIX)
        })
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn route(text: &str) -> RouteEntry {
        let destination = text.parse().unwrap();
        RouteEntry { destination, link: Some(1), is_unicast: true, is_announced: false }
    }

    fn choose(
        remembered: Option<&PodSubnets>,
        routes: &[RouteEntry],
    ) -> Result<PodSubnets, PodNetworkError> {
        let settings = PodNetworkSettings::new("/var/lib/one", "/var/lib/one/network");
        let names = Names::of_root(&settings.root);
        PodSubnets::choose(&settings, &names, remembered, routes, true)
    }

    #[test]
    fn candidates_are_private_and_differ() {
        let all: Vec<Subnet> = ipv4_candidates(u64::MAX - 3).collect();
        assert_eq!(all.iter().collect::<BTreeSet<_>>().len(), all.len());
        assert_eq!(all.len(), 96);
        for subnet in all {
            let IpAddr::V4(address) = subnet.address() else { panic!("{subnet}") };
            assert!(address.is_private() && subnet.prefix() == 24, "{subnet}");
        }
    }

    #[test]
    fn a_choice_is_stable_and_avoids_routes() {
        let first = choose(None, &["0.0.0.0/0", "0.0.0.0/1"].map(route)).unwrap();
        assert_eq!(first, choose(None, &[]).unwrap());
        assert!(first.0[0].is_ipv4() && !first.0[1].is_ipv4());
        let taken = route(&first.0[0].to_string());
        let second = choose(None, &[taken]).unwrap();
        assert_ne!(second.0[0], first.0[0]);
        // What was chosen stays chosen when its reason is gone.
        assert_eq!(choose(Some(&second), &[]).unwrap(), second);
        // Not when it has become impossible.
        assert_ne!(choose(Some(&second), &[route(&second.0[0].to_string())]).unwrap(), second);
        let elsewhere = choose(None, &[route("10.0.0.0/8")]).unwrap();
        assert!(elsewhere.0[0].to_string().starts_with("172."), "{elsewhere:?}");
    }

    #[test]
    fn when_nothing_is_free_a_route_in_the_way_is_named() {
        let all = ["10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16"].map(route);
        let error = choose(None, &all).unwrap_err().to_string();
        assert!(error.contains("192.168.0.0/16") && error.contains("configure"), "{error}");
    }

    #[test]
    fn a_configured_subnet_wins() {
        let mut settings = PodNetworkSettings::new("/var/lib/one", "/var/lib/one/network");
        settings.ipv4_subnet = "192.0.2.0/24".parse().ok();
        let names = Names::of_root(&settings.root);
        let old = choose(None, &[]).unwrap();
        let chosen = PodSubnets::choose(&settings, &names, Some(&old), &[], false).unwrap();
        assert_eq!(chosen.0, [settings.ipv4_subnet.unwrap()]);
    }
}
