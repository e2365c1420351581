//! Connections that the kernel remembers. Of UDP they outlive the pod that they lead to, for as long as the client goes on sending: a new
//! pod with the same host port would get nothing of them.

use std::io;
use std::net::IpAddr;

use crate::host_port::{HostPort, PortProtocol};
use crate::netlink::{Attributes, Message, NetlinkFamily, NetlinkSocket, Reply, find_attribute};
use crate::route::{RouteSocket, read_address};

/// The number of connection tracking among the parts of netfilter, and its messages.
const SUBSYSTEM: u16 = 1;
const IPCTNL_MSG_CT_GET: u16 = 1;
const IPCTNL_MSG_CT_DELETE: u16 = 2;
const CTA_TUPLE_ORIG: u16 = 1;
const CTA_TUPLE_REPLY: u16 = 2;
const CTA_TUPLE_IP: u16 = 1;
const CTA_TUPLE_PROTO: u16 = 2;
const CTA_PROTO_NUM: u16 = 1;
const CTA_PROTO_DST_PORT: u16 = 3;
/// The source address of IPv4 and of IPv6.
const CTA_IP_SOURCES: [u16; 2] = [1, 3];
/// The destination address of IPv4 and of IPv6.
const CTA_IP_DESTINATIONS: [u16; 2] = [2, 4];
/// Family, version and two bytes that are not used.
const HEADER: usize = 4;
const FAMILIES: [u8; 2] = [2, 10];

/// Has the kernel forget the connections of UDP to these host ports that do not lead to these addresses.
pub(crate) fn forget_others(ports: &[HostPort], addresses: &[IpAddr]) -> io::Result<()> {
    if !ports.iter().any(|port| port.protocol == PortProtocol::Udp) {
        return Ok(());
    }
    let local = RouteSocket::open()?.addresses()?;
    let local: Vec<IpAddr> = local.into_iter().map(|it| it.address).collect();
    let targets = StaleTargets { ports, addresses, local: &local };
    let mut socket = NetlinkSocket::open(NetlinkFamily::Netfilter)?;
    for family in FAMILIES {
        let replies = match socket.dump(&message(IPCTNL_MSG_CT_GET, family, &Attributes::new())) {
            // A kernel without CONFIG_NF_CT_NETLINK: stale connections end by themselves once their clients pause for two minutes.
            Err(error) if error.kind() == io::ErrorKind::InvalidInput => return Ok(()),
            other => other?,
        };
        for stale in replies.iter().filter_map(|reply| stale_tuple(reply, &targets)) {
            let attributes = Attributes::new().nested_bytes(CTA_TUPLE_ORIG, stale);
            match socket.request(&message(IPCTNL_MSG_CT_DELETE, family, &attributes)) {
                // It has ended meanwhile.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                other => other?,
            }
        }
    }
    Ok(())
}

/// Which connections are stale: those to host ports of a pod that lead elsewhere than to the pod.
struct StaleTargets<'a> {
    ports: &'a [HostPort],
    addresses: &'a [IpAddr],
    /// The addresses of the host.
    local: &'a [IpAddr],
}

impl StaleTargets<'_> {
    /// Whether one of the ports is meant. Connections to that port of other hosts are not ours.
    fn is_host_port(&self, number: u8, destination: IpAddr, port: u16) -> bool {
        let is_local = destination.is_loopback() || self.local.contains(&destination);
        let is_address = |held: Option<IpAddr>| match held {
            None => is_local,
            Some(all) if all.is_unspecified() => is_local && all.is_ipv4() == destination.is_ipv4(),
            Some(one) => one == destination,
        };
        self.ports.iter().any(|held| {
            held.protocol == PortProtocol::Udp
                && held.protocol.number() == number
                && held.host_port == port
                && is_address(held.host_ip)
        })
    }
}

/// What names a connection to one of the ports, if it does not lead to one of the addresses.
fn stale_tuple<'a>(reply: &'a Reply, targets: &StaleTargets<'_>) -> Option<&'a [u8]> {
    let attributes = reply.body.get(HEADER..)?;
    let original = find_attribute(attributes, CTA_TUPLE_ORIG)?;
    let protocol = find_attribute(original, CTA_TUPLE_PROTO)?;
    let number = *find_attribute(protocol, CTA_PROTO_NUM)?.first()?;
    let port = find_attribute(protocol, CTA_PROTO_DST_PORT)?.first_chunk()?;
    let port = u16::from_be_bytes(*port);
    let destination = address(original, CTA_IP_DESTINATIONS)?;
    // Answers come from where the connection leads to.
    let answers = find_attribute(attributes, CTA_TUPLE_REPLY)?;
    let leads_to_us =
        address(answers, CTA_IP_SOURCES).is_some_and(|from| targets.addresses.contains(&from));
    (targets.is_host_port(number, destination, port) && !leads_to_us).then_some(original)
}

fn address(tuple: &[u8], kinds: [u16; 2]) -> Option<IpAddr> {
    let addresses = find_attribute(tuple, CTA_TUPLE_IP)?;
    kinds.iter().find_map(|kind| find_attribute(addresses, *kind)).and_then(read_address)
}

fn message(kind: u16, family: u8, attributes: &Attributes) -> Message {
    Message::new(SUBSYSTEM << 8 | kind, &[family, 0, 0, 0], attributes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn port(host_ip: Option<&str>) -> HostPort {
        let host_ip = host_ip.map(|ip| ip.parse().unwrap());
        HostPort { protocol: PortProtocol::Udp, host_ip, host_port: 53, pod_port: 5353 }
    }

    #[test]
    fn only_connections_to_the_hosts_own_addresses_are_forgotten() {
        let local = ["192.0.2.1", "2001:db8::1"].map(|it| it.parse().unwrap());
        let rows = [
            (None, "192.0.2.1", 53, true),
            (None, "127.0.0.5", 53, true),
            (None, "2001:db8::1", 53, true),
            (None, "192.0.2.1", 54, false),
            // Questions of the host and of its pods to a name server elsewhere.
            (None, "198.51.100.7", 53, false),
            (Some("192.0.2.1"), "192.0.2.1", 53, true),
            (Some("192.0.2.1"), "127.0.0.1", 53, false),
            (Some("0.0.0.0"), "192.0.2.1", 53, true),
            (Some("0.0.0.0"), "2001:db8::1", 53, false),
        ];
        for (host_ip, destination, number, is_ours) in rows {
            let ports = [port(host_ip)];
            let targets = StaleTargets { ports: &ports, addresses: &[], local: &local };
            let found = targets.is_host_port(17, destination.parse().unwrap(), number);
            assert_eq!(found, is_ours, "{host_ip:?} {destination} {number}");
            assert!(!targets.is_host_port(6, destination.parse().unwrap(), number), "TCP");
        }
    }
}
