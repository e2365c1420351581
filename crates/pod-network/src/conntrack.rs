//! Connections that the kernel remembers. Of UDP they outlive the pod that they lead to, for as long as the client goes on sending: a new
//! pod with the same host port would get nothing of them.

use std::io;
use std::net::IpAddr;

use crate::host_port::{HostPort, PortProtocol};
use crate::netlink::{Attributes, Message, NetlinkFamily, NetlinkSocket, Reply, find_attribute};
use crate::route::read_address;

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
/// Family, version and two bytes that are not used.
const HEADER: usize = 4;
const FAMILIES: [u8; 2] = [2, 10];

/// Has the kernel forget the connections of UDP to these host ports that do not lead to these addresses.
pub(crate) fn forget_others(ports: &[HostPort], addresses: &[IpAddr]) -> io::Result<()> {
    if !ports.iter().any(|port| port.protocol == PortProtocol::Udp) {
        return Ok(());
    }
    let mut socket = NetlinkSocket::open(NetlinkFamily::Netfilter)?;
    for family in FAMILIES {
        let replies = match socket.dump(&message(IPCTNL_MSG_CT_GET, family, &Attributes::new())) {
            // A kernel without CONFIG_NF_CT_NETLINK: stale connections end by themselves once their clients pause for two minutes.
            Err(error) if error.kind() == io::ErrorKind::InvalidInput => return Ok(()),
            other => other?,
        };
        for stale in replies.iter().filter_map(|reply| stale_tuple(reply, ports, addresses)) {
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

/// What names a connection to one of the ports, if it does not lead to one of the addresses.
fn stale_tuple<'a>(reply: &'a Reply, ports: &[HostPort], addresses: &[IpAddr]) -> Option<&'a [u8]> {
    let attributes = reply.body.get(HEADER..)?;
    let original = find_attribute(attributes, CTA_TUPLE_ORIG)?;
    let protocol = find_attribute(original, CTA_TUPLE_PROTO)?;
    let number = *find_attribute(protocol, CTA_PROTO_NUM)?.first()?;
    let port = find_attribute(protocol, CTA_PROTO_DST_PORT)?.first_chunk()?;
    let port = u16::from_be_bytes(*port);
    let is_ours = |held: &HostPort| {
        held.protocol == PortProtocol::Udp
            && held.protocol.number() == number
            && held.host_port == port
    };
    // Answers come from where the connection leads to.
    let answers = find_attribute(attributes, CTA_TUPLE_REPLY)?;
    let answers = find_attribute(answers, CTA_TUPLE_IP)?;
    let from = CTA_IP_SOURCES.iter().find_map(|kind| find_attribute(answers, *kind));
    let leads_to_us = from.and_then(read_address).is_some_and(|from| addresses.contains(&from));
    (ports.iter().any(is_ours) && !leads_to_us).then_some(original)
}

fn message(kind: u16, family: u8, attributes: &Attributes) -> Message {
    Message::new(SUBSYSTEM << 8 | kind, &[family, 0, 0, 0], attributes)
}
