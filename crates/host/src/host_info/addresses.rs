//! Looks for the addresses of this machine.

use std::net::{IpAddr, ToSocketAddrs, UdpSocket};
use std::time::Duration;

use oarsman_core::node::addresses::unreachable_kind;

/// Documentation addresses that no machine has; nothing is sent to them, only the route is looked up.
const PROBE_DESTINATIONS: [(&str, &str); 2] =
    [("0.0.0.0:0", "192.0.2.1:9"), ("[::]:0", "[2001:db8::1]:9")];

/// How long the resolver may take.
pub(super) const RESOLVE_TIMEOUT: Duration = Duration::from_secs(2);

/// The source addresses of the default routes.
pub(super) fn routed() -> Vec<IpAddr> {
    let towards = |(from, to)| -> Option<IpAddr> {
        let socket = UdpSocket::bind(from).ok()?;
        socket.connect(to).ok()?;
        Some(socket.local_addr().ok()?.ip())
    };
    PROBE_DESTINATIONS.into_iter().filter_map(towards).collect()
}

/// The addresses that the resolver gives for a name. It may hang for long.
pub(super) fn resolved(name: &str) -> Vec<IpAddr> {
    let found = (name, 0).to_socket_addrs().into_iter().flatten();
    found.map(|address| address.ip()).collect()
}

/// Whether the machine has this address.
pub(super) fn is_on_interface(ip: IpAddr) -> bool {
    UdpSocket::bind((ip, 0)).is_ok()
}

/// Why the API server could not reach a node at this address.
pub fn unusable_reason(ip: IpAddr) -> Option<String> {
    let elsewhere = || (!is_on_interface(ip)).then_some("on no interface of this machine");
    let kind = unreachable_kind(ip).or_else(elsewhere)?;
    Some(format!("{ip} is {kind}; give an address at which other machines reach this one"))
}
