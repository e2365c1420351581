//! The addresses by which a node is reached.

use std::net::{IpAddr, Ipv4Addr, ToSocketAddrs, UdpSocket};
use std::sync::mpsc;
use std::time::Duration;

/// Documentation addresses that no machine has; nothing is sent to them, only the route is looked up.
const PROBE_DESTINATIONS: [(&str, &str); 2] =
    [("0.0.0.0:0", "192.0.2.1:9"), ("[::]:0", "[2001:db8::1]:9")];

/// How long the resolver may take.
const RESOLVE_TIMEOUT: Duration = Duration::from_secs(2);

/// The node's addresses: those that were given, else the address of its name or of its default route. An address of all zeros only says which
/// family is preferred.
pub(crate) fn of_node(given: &[IpAddr], name: &str) -> Vec<IpAddr> {
    let prefers_v6 = given.first().is_some_and(IpAddr::is_ipv6);
    let given: Vec<IpAddr> = given.iter().copied().filter(|ip| !ip.is_unspecified()).collect();
    if !given.is_empty() {
        return given;
    }
    if let Ok(ip) = name.parse() {
        return vec![ip];
    }
    let by_name = resolved(name).into_iter().filter(|ip| unusable_reason(*ip).is_none());
    let found = preferred(by_name, prefers_v6).or_else(|| preferred(routed(), prefers_v6));
    vec![found.unwrap_or(Ipv4Addr::LOCALHOST.into())]
}

/// The address of the default route; loopback without one.
pub(crate) fn of_machine() -> Vec<IpAddr> {
    vec![preferred(routed(), false).unwrap_or(Ipv4Addr::LOCALHOST.into())]
}

/// The first of the preferred family, or the first.
fn preferred(addresses: impl IntoIterator<Item = IpAddr>, v6: bool) -> Option<IpAddr> {
    let all: Vec<IpAddr> = addresses.into_iter().collect();
    all.iter().find(|ip| ip.is_ipv6() == v6).or(all.first()).copied()
}

/// The source addresses of the default routes.
fn routed() -> Vec<IpAddr> {
    let towards = |(from, to)| -> Option<IpAddr> {
        let socket = UdpSocket::bind(from).ok()?;
        socket.connect(to).ok()?;
        Some(socket.local_addr().ok()?.ip())
    };
    PROBE_DESTINATIONS.into_iter().filter_map(towards).collect()
}

/// The addresses that the resolver gives for a name. On a thread of its own, since it may hang for long.
fn resolved(name: &str) -> Vec<IpAddr> {
    let (tell, told) = mpsc::sync_channel(1);
    let place = (name.to_owned(), 0);
    std::thread::spawn(move || {
        let found = place.to_socket_addrs().into_iter().flatten();
        // The receiver is gone after the timeout.
        tell.send(found.map(|address| address.ip()).collect()).ok();
    });
    told.recv_timeout(RESOLVE_TIMEOUT).unwrap_or_default()
}

/// Why the API server could not reach a node at this address.
pub(crate) fn unusable_reason(ip: IpAddr) -> Option<String> {
    let is_link_local = match ip {
        IpAddr::V4(ip) => ip.is_link_local(),
        IpAddr::V6(ip) => ip.is_unicast_link_local(),
    };
    let kind = if ip.is_loopback() {
        "the machine's own (loopback)"
    } else if ip.is_multicast() {
        "a group's (multicast)"
    } else if is_link_local {
        "only for one link"
    } else if UdpSocket::bind((ip, 0)).is_err() {
        "on no interface of this machine"
    } else {
        return None;
    };
    Some(format!("{ip} is {kind}; give an address at which other machines reach this one"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ip(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    #[test]
    fn given_addresses_win_over_a_name_that_is_an_address() {
        let both = [ip("192.0.2.1"), ip("2001:db8::1")];
        assert_eq!(of_node(&both, "n"), both);
        assert_eq!(of_node(&both[1..], "n"), both[1..]);
        assert_eq!(of_node(&[], "192.0.2.7"), [ip("192.0.2.7")]);
    }

    #[test]
    fn the_first_address_of_the_preferred_family_is_chosen() {
        let all = [ip("2001:db8::1"), ip("192.0.2.1")];
        assert_eq!(preferred(all, false), Some(all[1]));
        assert_eq!(preferred(all, true), Some(all[0]));
        assert_eq!(preferred([all[0]], false), Some(all[0]));
        assert_eq!(preferred([], false), None);
    }

    #[test]
    fn unreachable_addresses_of_a_node_have_a_reason() {
        let rows = [
            ("127.0.0.1", "loopback"),
            ("::1", "loopback"),
            ("224.0.0.1", "multicast"),
            ("ff02::1", "multicast"),
            ("169.254.1.1", "only for one link"),
            ("fe80::1", "only for one link"),
            ("192.0.2.77", "on no interface"),
        ];
        for (text, expected) in rows {
            let complaint = unusable_reason(ip(text)).unwrap();
            assert!(complaint.contains(expected), "{complaint}");
        }
    }
}
