//! Links, addresses, routes and limits of a network namespace, by rtnetlink.

mod addresses;
mod link_changes;
mod links;
mod traffic_control;

use std::io;

pub(crate) use addresses::{RouteEntry, octets, read_address};
pub(crate) use link_changes::LinkChanges;
pub(crate) use links::{LinkOperation, LinkState, NewBridge, NewPair};
pub(crate) use traffic_control::RateLimit;

use crate::netlink::{NetlinkFamily, NetlinkSocket};

/// Flags of messages that create: take the place of what is there, or fail when there is one already.
const NLM_F_REPLACE: u16 = 0x100;
const NLM_F_CREATE: u16 = 0x400;
const NLM_F_EXCL: u16 = 0x200;

/// A socket for the links, addresses and routes of the namespace in which it was opened.
#[derive(Debug)]
pub(crate) struct RouteSocket(NetlinkSocket);

impl RouteSocket {
    /// Opens one in the network namespace of this thread.
    pub(crate) fn open() -> io::Result<Self> {
        NetlinkSocket::open(NetlinkFamily::Route).map(Self)
    }
}

/// What is there already, or gone already, is as it should be.
fn unless(kind: io::ErrorKind, result: io::Result<()>) -> io::Result<()> {
    match result {
        Err(error) if error.kind() == kind => Ok(()),
        other => other,
    }
}
