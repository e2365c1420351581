//! Links: reading them, the bridge, and veth pairs.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

use rustix::io::Errno;

use super::{NLM_F_CREATE, NLM_F_EXCL, RouteSocket};
use crate::netlink::{Attributes, Message, Reply, find_attribute, read_text, read_u32};

const RTM_NEWLINK: u16 = 16;
const RTM_DELLINK: u16 = 17;
const RTM_GETLINK: u16 = 18;
const RTM_SETLINK: u16 = 19;

const IFLA_ADDRESS: u16 = 1;
const IFLA_IFNAME: u16 = 3;
const IFLA_MTU: u16 = 4;
const IFLA_MASTER: u16 = 10;
const IFLA_PROTINFO: u16 = 12;
const IFLA_OPERSTATE: u16 = 16;
const IFLA_LINKINFO: u16 = 18;
const IFLA_IFALIAS: u16 = 20;
const IFLA_NET_NS_FD: u16 = 28;
const IFLA_INFO_KIND: u16 = 1;
const IFLA_INFO_DATA: u16 = 2;
const VETH_INFO_PEER: u16 = 1;
const IFLA_BRPORT_MODE: u16 = 4;

const AF_UNSPEC: u8 = 0;
const AF_BRIDGE: u8 = 7;
const IFF_UP: u32 = 1;
/// States of operation (RFC 2863).
const IF_OPER_UNKNOWN: u8 = 0;
const IF_OPER_UP: u8 = 6;
/// The length of the header of messages about links.
const HEADER: usize = 16;

/// What we look at of a link.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct LinkState {
    pub(crate) index: u32,
    pub(crate) name: String,
    pub(crate) mtu: u32,
    /// What people and programs call it beside its name.
    pub(crate) alias: String,
    /// The bridge that it is a port of.
    pub(crate) master: Option<u32>,
    /// Whether it is set up.
    pub(crate) is_up: bool,
    /// Whether the kernel sends by it: it drops packets from when it is set up to when it has looked at the other end.
    pub(crate) operation: LinkOperation,
}

/// Whether the kernel sends by a link.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum LinkOperation {
    /// The other end is there, and the kernel has seen it.
    Up,
    /// The kernel has not looked, and sends meanwhile if it did before.
    #[default]
    Unknown,
    /// Packets are dropped.
    Down,
}

/// A bridge that is to be made.
#[derive(Clone, Debug)]
pub(crate) struct NewBridge<'a> {
    pub(crate) name: &'a str,
    pub(crate) mtu: u32,
    pub(crate) hardware_address: [u8; 6],
}

/// A veth pair that is to be made, with one end as port of a bridge and the other one in a pod.
#[derive(Clone, Debug)]
pub(crate) struct NewPair<'a> {
    /// The name of the host's end.
    pub(crate) name: &'a str,
    /// The bridge.
    pub(crate) master: u32,
    pub(crate) mtu: u32,
    /// The pod's network namespace.
    pub(crate) namespace: BorrowedFd<'a>,
    /// The name of the pod's end.
    pub(crate) pod_name: &'a str,
    pub(crate) pod_hardware_address: [u8; 6],
}

impl RouteSocket {
    /// All links.
    pub(crate) fn links(&mut self) -> io::Result<Vec<LinkState>> {
        let all = Message::new(RTM_GETLINK, &header(AF_UNSPEC, 0, 0), &Attributes::new());
        let replies = self.0.dump(&all)?;
        Ok(replies.iter().filter_map(link_state).collect())
    }

    /// The link of a name, if there is one.
    pub(crate) fn link(&mut self, name: &str) -> io::Result<Option<LinkState>> {
        let attributes = Attributes::new().text(IFLA_IFNAME, name);
        let one = Message::new(RTM_GETLINK, &header(AF_UNSPEC, 0, 0), &attributes);
        match self.0.get(&one) {
            Ok(replies) => Ok(replies.iter().find_map(link_state)),
            Err(error) if is_no_device(&error) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Makes a bridge that is up.
    pub(crate) fn add_bridge(&mut self, bridge: &NewBridge<'_>) -> io::Result<()> {
        let attributes = Attributes::new()
            .text(IFLA_IFNAME, bridge.name)
            .number(IFLA_MTU, bridge.mtu)
            .bytes(IFLA_ADDRESS, &bridge.hardware_address)
            .nested(IFLA_LINKINFO, &Attributes::new().text(IFLA_INFO_KIND, "bridge"));
        self.create_link(&attributes)
    }

    /// Makes a veth pair with all that can be said at once: a crash leaves all of it or nothing. The host's end is up.
    pub(crate) fn add_pair(&mut self, pair: &NewPair<'_>) -> io::Result<()> {
        let namespace = u32::try_from(pair.namespace.as_raw_fd()).unwrap_or(u32::MAX);
        // This end cannot be up yet: the kernel connects the ends after it has made both.
        let peer = Attributes::after(&header(AF_UNSPEC, 0, 0))
            .text(IFLA_IFNAME, pair.pod_name)
            .number(IFLA_MTU, pair.mtu)
            .bytes(IFLA_ADDRESS, &pair.pod_hardware_address)
            .number(IFLA_NET_NS_FD, namespace);
        let kind = Attributes::new()
            .text(IFLA_INFO_KIND, "veth")
            .nested(IFLA_INFO_DATA, &Attributes::new().nested(VETH_INFO_PEER, &peer));
        let attributes = Attributes::new()
            .text(IFLA_IFNAME, pair.name)
            .number(IFLA_MTU, pair.mtu)
            .number(IFLA_MASTER, pair.master)
            .nested(IFLA_LINKINFO, &kind);
        self.create_link(&attributes)
    }

    /// Makes a link that is up, and passes on what is redirected to it.
    pub(crate) fn add_intermediate(&mut self, name: &str, mtu: u32) -> io::Result<()> {
        let attributes = Attributes::new()
            .text(IFLA_IFNAME, name)
            .number(IFLA_MTU, mtu)
            .nested(IFLA_LINKINFO, &Attributes::new().text(IFLA_INFO_KIND, "ifb"));
        self.create_link(&attributes)
    }

    fn create_link(&mut self, attributes: &Attributes) -> io::Result<()> {
        let message = Message::new(RTM_NEWLINK, &header(AF_UNSPEC, 0, IFF_UP), attributes);
        self.0.request(&message.with_flags(NLM_F_CREATE | NLM_F_EXCL))
    }

    /// Sets what people and programs call a link beside its name.
    pub(crate) fn set_alias(&mut self, index: u32, alias: &str) -> io::Result<()> {
        let attributes = Attributes::new().bytes(IFLA_IFALIAS, alias.as_bytes());
        self.change_link(AF_UNSPEC, index, 0, &attributes)
    }

    /// Makes a link a port of a bridge.
    pub(crate) fn set_master(&mut self, index: u32, master: u32) -> io::Result<()> {
        self.change_link(AF_UNSPEC, index, 0, &Attributes::new().number(IFLA_MASTER, master))
    }

    /// Lets a port of a bridge send back what came from it.
    pub(crate) fn set_hairpin(&mut self, index: u32) -> io::Result<()> {
        let port = Attributes::new().byte(IFLA_BRPORT_MODE, 1);
        self.change_link(AF_BRIDGE, index, 0, &Attributes::new().nested(IFLA_PROTINFO, &port))
    }

    /// Sets a link up.
    pub(crate) fn set_link_up(&mut self, index: u32) -> io::Result<()> {
        self.change_link(AF_UNSPEC, index, IFF_UP, &Attributes::new())
    }

    fn change_link(
        &mut self,
        family: u8,
        index: u32,
        flags: u32,
        attributes: &Attributes,
    ) -> io::Result<()> {
        self.0.request(&Message::new(RTM_SETLINK, &header(family, index, flags), attributes))
    }

    /// Removes a link, and with one end of a veth pair the other; fine when there is none.
    pub(crate) fn delete_link(&mut self, name: &str) -> io::Result<()> {
        let attributes = Attributes::new().text(IFLA_IFNAME, name);
        let message = Message::new(RTM_DELLINK, &header(AF_UNSPEC, 0, 0), &attributes);
        match self.0.request(&message) {
            Err(error) if is_no_device(&error) => Ok(()),
            other => other,
        }
    }
}

/// Family, padding, type, index, flags, and which flags are meant.
fn header(family: u8, index: u32, flags: u32) -> [u8; HEADER] {
    let mut bytes = [0; HEADER];
    bytes[0] = family;
    bytes[4..8].copy_from_slice(&index.to_ne_bytes());
    bytes[8..12].copy_from_slice(&flags.to_ne_bytes());
    bytes[12..].copy_from_slice(&flags.to_ne_bytes());
    bytes
}

fn link_state(reply: &Reply) -> Option<LinkState> {
    let (header, attributes) = reply.body.split_at_checked(HEADER)?;
    let of = |kind| find_attribute(attributes, kind);
    (reply.kind == RTM_NEWLINK).then_some(LinkState {
        index: read_u32(header.get(4..)?)?,
        is_up: read_u32(header.get(8..)?)? & IFF_UP != 0,
        operation: of(IFLA_OPERSTATE).map(operation).unwrap_or_default(),
        name: of(IFLA_IFNAME).map(read_text)?,
        mtu: of(IFLA_MTU).and_then(read_u32).unwrap_or_default(),
        alias: of(IFLA_IFALIAS).map(read_text).unwrap_or_default(),
        master: of(IFLA_MASTER).and_then(read_u32),
    })
}

fn operation(state: &[u8]) -> LinkOperation {
    match state.first() {
        Some(&IF_OPER_UP) => LinkOperation::Up,
        None | Some(&IF_OPER_UNKNOWN) => LinkOperation::Unknown,
        Some(_) => LinkOperation::Down,
    }
}

fn is_no_device(error: &io::Error) -> bool {
    error.raw_os_error() == Some(Errno::NODEV.raw_os_error())
}
