//! Addresses and routes.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::{NLM_F_CREATE, NLM_F_EXCL, RouteSocket, unless};
use crate::netlink::{Attributes, Message, Reply, find_attribute, read_u32};
use crate::subnet::Subnet;

const RTM_NEWADDR: u16 = 20;
const RTM_GETADDR: u16 = 22;
const RTM_NEWROUTE: u16 = 24;
const RTM_GETROUTE: u16 = 26;

const IFA_ADDRESS: u16 = 1;
const IFA_LOCAL: u16 = 2;
/// Usable at once: no other host is asked whether it has the address.
const IFA_F_NODAD: u8 = 2;

const RTA_DST: u16 = 1;
const RTA_OIF: u16 = 4;
const RTA_GATEWAY: u16 = 5;
const RT_TABLE_MAIN: u8 = 254;
const RTPROT_STATIC: u8 = 4;
/// A route that a router on the link has announced.
const RTPROT_RA: u8 = 9;
const RTN_UNICAST: u8 = 1;

const AF_INET: u8 = 2;
const AF_INET6: u8 = 10;
/// The length of the headers of messages about addresses and about routes.
const ADDRESS_HEADER: usize = 8;
const ROUTE_HEADER: usize = 12;

/// An address of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct InterfaceAddress {
    pub(crate) link: u32,
    pub(crate) address: IpAddr,
    /// Whether it means something beyond its link and host.
    pub(crate) is_global: bool,
}

/// What we look at of a route.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RouteEntry {
    pub(crate) destination: Subnet,
    /// The link that it leads to; none for one with several or none.
    pub(crate) link: Option<u32>,
    /// Whether packets are sent on by it.
    pub(crate) is_unicast: bool,
    /// Whether a router on the link has announced it.
    pub(crate) is_announced: bool,
}

impl RouteEntry {
    /// Whether it leads to the rest of the world.
    pub(crate) fn is_default(&self) -> bool {
        self.destination.prefix() == 0 && self.is_unicast
    }
}

impl RouteSocket {
    /// Gives a link an address in a subnet; fine when it has it.
    pub(crate) fn add_address(
        &mut self,
        link: u32,
        address: IpAddr,
        subnet: Subnet,
    ) -> io::Result<()> {
        let flags = if address.is_ipv6() { IFA_F_NODAD } else { 0 };
        let mut header = [0; ADDRESS_HEADER];
        header[..3].copy_from_slice(&[family(address), subnet.prefix(), flags]);
        header[4..].copy_from_slice(&link.to_ne_bytes());
        let bytes = octets(address);
        let attributes = Attributes::new().bytes(IFA_LOCAL, &bytes).bytes(IFA_ADDRESS, &bytes);
        let message = Message::new(RTM_NEWADDR, &header, &attributes);
        let added = self.0.request(&message.with_flags(NLM_F_CREATE | NLM_F_EXCL));
        unless(io::ErrorKind::AlreadyExists, added)
    }

    /// The addresses of all links.
    pub(crate) fn addresses(&mut self) -> io::Result<Vec<InterfaceAddress>> {
        let all = Message::new(RTM_GETADDR, &[0; ADDRESS_HEADER], &Attributes::new());
        let replies = self.0.dump(&all)?;
        Ok(replies.iter().filter_map(interface_address).collect())
    }

    /// Sends what is for no other route to a gateway; fine when that is so already.
    pub(crate) fn add_default_route(&mut self, link: u32, gateway: IpAddr) -> io::Result<()> {
        let mut header = [0; ROUTE_HEADER];
        header[0] = family(gateway);
        header[4..8].copy_from_slice(&[RT_TABLE_MAIN, RTPROT_STATIC, 0, RTN_UNICAST]);
        let attributes =
            Attributes::new().bytes(RTA_GATEWAY, &octets(gateway)).number(RTA_OIF, link);
        let message = Message::new(RTM_NEWROUTE, &header, &attributes);
        let added = self.0.request(&message.with_flags(NLM_F_CREATE | NLM_F_EXCL));
        unless(io::ErrorKind::AlreadyExists, added)
    }

    /// The routes of all tables, those to the host's own addresses too.
    pub(crate) fn routes(&mut self) -> io::Result<Vec<RouteEntry>> {
        let all = Message::new(RTM_GETROUTE, &[0; ROUTE_HEADER], &Attributes::new());
        let replies = self.0.dump(&all)?;
        Ok(replies.iter().filter_map(route_entry).collect())
    }
}

fn interface_address(reply: &Reply) -> Option<InterfaceAddress> {
    let (header, attributes) = reply.body.split_first_chunk::<ADDRESS_HEADER>()?;
    let local = find_attribute(attributes, IFA_LOCAL);
    Some(InterfaceAddress {
        link: read_u32(&header[4..])?,
        address: read_address(local.or_else(|| find_attribute(attributes, IFA_ADDRESS))?)?,
        is_global: header[3] == 0,
    })
    .filter(|_| reply.kind == RTM_NEWADDR)
}

fn route_entry(reply: &Reply) -> Option<RouteEntry> {
    let (header, attributes) = reply.body.split_first_chunk::<ROUTE_HEADER>()?;
    let any: IpAddr = match header[0] {
        AF_INET => Ipv4Addr::UNSPECIFIED.into(),
        AF_INET6 => Ipv6Addr::UNSPECIFIED.into(),
        _ => return None,
    };
    let address = find_attribute(attributes, RTA_DST).map_or(Some(any), read_address)?;
    Some(RouteEntry {
        destination: Subnet::of(address, header[1])?,
        link: find_attribute(attributes, RTA_OIF).and_then(read_u32),
        is_unicast: header[7] == RTN_UNICAST,
        is_announced: header[5] == RTPROT_RA,
    })
    .filter(|_| reply.kind == RTM_NEWROUTE)
}

fn family(address: IpAddr) -> u8 {
    if address.is_ipv4() { AF_INET } else { AF_INET6 }
}

/// An address as it is sent.
pub(crate) fn octets(address: IpAddr) -> Vec<u8> {
    match address {
        IpAddr::V4(address) => address.octets().to_vec(),
        IpAddr::V6(address) => address.octets().to_vec(),
    }
}

/// An address as it is received.
pub(crate) fn read_address(bytes: &[u8]) -> Option<IpAddr> {
    match bytes.len() {
        4 => bytes.first_chunk::<4>().map(|bytes| Ipv4Addr::from(*bytes).into()),
        16 => bytes.first_chunk::<16>().map(|bytes| Ipv6Addr::from(*bytes).into()),
        _ => None,
    }
}
