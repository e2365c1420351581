//! A netlink socket on which one request is answered after the other.

use std::io;
use std::os::fd::OwnedFd;
use std::time::Duration;

use rustix::io::Errno;
use rustix::net::sockopt::{Timeout, set_socket_send_buffer_size_force, set_socket_timeout};
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, netlink, recv, send, socket_with,
};

use super::message::{HEADER, Message};

/// The kernel answers at once; it may hold the lock of all links for a while.
const PATIENCE: Duration = Duration::from_secs(30);
/// The kernel puts at most 32 KiB into one part of a dump.
const RECEIVE_BUFFER: usize = 64 * 1024;
/// A host's routes may be many; what is more than this is refused rather than held in memory.
const MAX_DUMP: usize = 64 * 1024 * 1024;
/// All rules of a table are sent as one.
const SEND_BUFFER: usize = 8 * 1024 * 1024;
/// How often a dump is repeated that was changed while it was read.
const MAX_TRIES: u32 = 8;

const NLM_F_REQUEST: u16 = 0x1;
const NLM_F_ACK: u16 = 0x4;
const NLM_F_DUMP_INTR: u16 = 0x10;
const NLM_F_DUMP: u16 = 0x300;
const NLMSG_ERROR: u16 = 2;
const NLMSG_DONE: u16 = 3;

/// Whom a socket speaks to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NetlinkFamily {
    /// Links, addresses and routes.
    Route,
    /// nftables and connection tracking.
    Netfilter,
}

/// One message of an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Reply {
    /// The kind of the message.
    pub(crate) kind: u16,
    /// What follows the header of netlink.
    pub(crate) body: Vec<u8>,
}

/// A socket, which stays in the network namespace in which it was opened.
#[derive(Debug)]
pub(crate) struct NetlinkSocket {
    socket: OwnedFd,
    sequence: u32,
}

impl NetlinkSocket {
    /// Opens one in the network namespace of this thread.
    pub(crate) fn open(family: NetlinkFamily) -> io::Result<Self> {
        let protocol = match family {
            NetlinkFamily::Route => None,
            NetlinkFamily::Netfilter => Some(netlink::NETFILTER),
        };
        let flags = SocketFlags::CLOEXEC;
        let socket = socket_with(AddressFamily::NETLINK, SocketType::RAW, flags, protocol)?;
        set_socket_timeout(&socket, Timeout::Recv, Some(PATIENCE))?;
        set_socket_timeout(&socket, Timeout::Send, Some(PATIENCE))?;
        Ok(Self { socket, sequence: 0 })
    }

    /// Has one change made.
    pub(crate) fn request(&mut self, message: &Message) -> io::Result<()> {
        self.get(message).map(drop)
    }

    /// Asks for one object.
    pub(crate) fn get(&mut self, message: &Message) -> io::Result<Vec<Reply>> {
        let sequence = self.next_sequence();
        self.send(&message.encode(NLM_F_REQUEST | NLM_F_ACK, sequence))?;
        self.receive(sequence, sequence).map(|answer| answer.replies)
    }

    /// Asks for all objects of a kind.
    pub(crate) fn dump(&mut self, message: &Message) -> io::Result<Vec<Reply>> {
        for _ in 0..MAX_TRIES {
            let sequence = self.next_sequence();
            self.send(&message.encode(NLM_F_REQUEST | NLM_F_DUMP, sequence))?;
            let answer = self.receive(sequence, sequence)?;
            if !answer.interrupted {
                return Ok(answer.replies);
            }
        }
        Err(io::Error::other("what is listed changes faster than it can be read"))
    }

    /// Has several changes made, all or none. `begin` and `end` are what the kernel wants around them.
    pub(crate) fn transaction(
        &mut self,
        begin: &Message,
        changes: &[Message],
        end: &Message,
    ) -> io::Result<()> {
        set_socket_send_buffer_size_force(&self.socket, SEND_BUFFER)?;
        let first = self.next_sequence();
        let mut bytes = begin.encode(NLM_F_REQUEST, first);
        let mut last = first;
        for (number, change) in changes.iter().enumerate() {
            last = self.next_sequence();
            // One acknowledgement of the last change tells that all were made; any refusal is told in any case.
            let acknowledge = if number + 1 == changes.len() { NLM_F_ACK } else { 0 };
            bytes.extend(change.encode(NLM_F_REQUEST | acknowledge, last));
        }
        bytes.extend(end.encode(NLM_F_REQUEST, self.next_sequence()));
        self.send(&bytes)?;
        self.receive(first, last).map(drop)
    }

    fn next_sequence(&mut self) -> u32 {
        self.sequence = self.sequence.wrapping_add(1);
        self.sequence
    }

    fn send(&self, bytes: &[u8]) -> io::Result<()> {
        let sent = again(|| send(&self.socket, bytes, SendFlags::empty()))?;
        if sent == bytes.len() { Ok(()) } else { Err(io::ErrorKind::WriteZero.into()) }
    }

    /// Reads until the message `last` is acknowledged, or one from `first` on is refused.
    fn receive(&self, first: u32, last: u32) -> io::Result<Answer> {
        let mut answer = Answer::default();
        let mut buffer = vec![0; RECEIVE_BUFFER];
        let mut read = 0;
        loop {
            let received = again(|| recv(&self.socket, buffer.as_mut_slice(), RecvFlags::TRUNC));
            let (_, length) = received.map_err(|error| match error {
                Errno::AGAIN => io::ErrorKind::TimedOut.into(),
                other => io::Error::from(other),
            })?;
            read += length;
            let Some(bytes) = buffer.get(..length).filter(|_| read <= MAX_DUMP) else {
                return Err(io::Error::other(format!("an answer of {read} bytes is too long")));
            };
            if answer.add(bytes, first, last)? {
                return Ok(answer);
            }
        }
    }
}

#[derive(Debug, Default)]
struct Answer {
    replies: Vec<Reply>,
    interrupted: bool,
}

impl Answer {
    /// Adds the messages of one datagram; true when the answer is complete.
    fn add(&mut self, mut bytes: &[u8], first: u32, last: u32) -> io::Result<bool> {
        while let Some(message) = ReplyHeader::read(bytes) {
            let body = bytes.get(HEADER..message.length).ok_or(io::ErrorKind::UnexpectedEof)?;
            bytes = bytes.get(message.length.next_multiple_of(4)..).unwrap_or_default();
            // An answer to an earlier request that was given up.
            if message.sequence.wrapping_sub(first) > last.wrapping_sub(first) {
                continue;
            }
            self.interrupted |= message.flags & NLM_F_DUMP_INTR != 0;
            match message.kind {
                NLMSG_ERROR | NLMSG_DONE => {
                    refusal(body)?;
                    if message.sequence == last {
                        return Ok(true);
                    }
                }
                kind => self.replies.push(Reply { kind, body: body.to_vec() }),
            }
        }
        Ok(false)
    }
}

/// The negative error number that begins an acknowledgement and the end of a dump; zero is none.
fn refusal(body: &[u8]) -> io::Result<()> {
    match body.first_chunk().map_or(0, |code| i32::from_ne_bytes(*code)) {
        0 => Ok(()),
        code => Err(io::Error::from_raw_os_error(code.saturating_neg())),
    }
}

struct ReplyHeader {
    length: usize,
    kind: u16,
    flags: u16,
    sequence: u32,
}

impl ReplyHeader {
    fn read(bytes: &[u8]) -> Option<Self> {
        let (length, rest) = bytes.split_first_chunk()?;
        let (kind, rest) = rest.split_first_chunk()?;
        let (flags, rest) = rest.split_first_chunk()?;
        let (sequence, _) = rest.split_first_chunk()?;
        let length = usize::try_from(u32::from_ne_bytes(*length)).ok()?;
        (length >= HEADER).then_some(Self {
            length,
            kind: u16::from_ne_bytes(*kind),
            flags: u16::from_ne_bytes(*flags),
            sequence: u32::from_ne_bytes(*sequence),
        })
    }
}

/// A signal to the process is no reason to give up.
fn again<T>(mut call: impl FnMut() -> rustix::io::Result<T>) -> rustix::io::Result<T> {
    rustix::io::retry_on_intr(&mut call)
}
