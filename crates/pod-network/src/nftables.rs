//! nftables by netlink: transactions of whole tables, and what other tables do with forwarded packets.

mod base_chains;
mod rule;
mod table;

use std::io;

pub(crate) use base_chains::{BaseChain, forward_chains_that_drop};
pub(crate) use rule::Rule;
pub(crate) use table::{Chain, Hook, Table};

use crate::netlink::{Attributes, Message, NetlinkFamily, NetlinkSocket, Reply};

/// The number of nftables among the parts of netfilter.
const SUBSYSTEM: u16 = 10;
const NFNL_MSG_BATCH_BEGIN: u16 = 16;
const NFNL_MSG_BATCH_END: u16 = 17;

/// Tables for both IPv4 and IPv6.
const NFPROTO_INET: u8 = 1;

/// A socket for the tables of the namespace in which it was opened.
#[derive(Debug)]
pub(crate) struct NftablesSocket(NetlinkSocket);

impl NftablesSocket {
    /// Opens one in the network namespace of this thread.
    pub(crate) fn open() -> io::Result<Self> {
        NetlinkSocket::open(NetlinkFamily::Netfilter).map(Self)
    }

    /// Makes a table what it should be, as a whole: no packet meets a part of it.
    pub(crate) fn replace_table(&mut self, table: &Table) -> io::Result<()> {
        self.commit(&[table::removal(&table.name), table.creation()].concat())
    }

    /// Removes a table; fine when there is none.
    pub(crate) fn remove_table(&mut self, name: &str) -> io::Result<()> {
        self.commit(&table::removal(name))
    }

    /// Whether there is a table of ours with this name.
    pub(crate) fn has_table(&mut self, name: &str) -> io::Result<bool> {
        match self.0.get(&table::question(name)) {
            Ok(_) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(error),
        }
    }

    fn commit(&mut self, changes: &[Message]) -> io::Result<()> {
        let begin = batch_mark(NFNL_MSG_BATCH_BEGIN);
        self.0.transaction(&begin, changes, &batch_mark(NFNL_MSG_BATCH_END))
    }

    fn dump(&mut self, kind: u16, family: u8, attributes: &Attributes) -> io::Result<Vec<Reply>> {
        self.0.dump(&message(kind, family, attributes))
    }
}

/// The beginning or end of a transaction.
fn batch_mark(kind: u16) -> Message {
    let [high, low] = SUBSYSTEM.to_be_bytes();
    Message::new(kind, &[0, 0, high, low], &Attributes::new())
}

/// A message about an object of nftables. Its fixed header is family, version and two bytes that are not used.
fn message(kind: u16, family: u8, attributes: &Attributes) -> Message {
    Message::new(SUBSYSTEM << 8 | kind, &[family, 0, 0, 0], attributes)
}
