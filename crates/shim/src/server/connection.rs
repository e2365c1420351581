//! One connection of the agent.

use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;

use rustix::event::PollFlags;

use crate::protocol::frame::{self, FrameError, MOST_FRAME};
use crate::protocol::{ReplyFrame, RequestFrame, ShimReply};
use crate::socket::{self, MOST_DESCRIPTORS};

/// How much an agent that does not read may leave unread before it is disconnected.
const MOST_UNSENT: usize = MOST_FRAME;

/// A connection with what has come in and what has to go out.
#[derive(Debug)]
pub(super) struct ShimConnection {
    socket: UnixStream,
    received: Vec<u8>,
    descriptors: Vec<OwnedFd>,
    unsent: VecDeque<(Vec<u8>, Option<OwnedFd>)>,
    unsent_bytes: usize,
    broken: bool,
}

impl ShimConnection {
    pub(super) fn new(socket: UnixStream) -> io::Result<Self> {
        socket.set_nonblocking(true)?;
        Ok(Self {
            socket,
            received: Vec::new(),
            descriptors: Vec::new(),
            unsent: VecDeque::new(),
            unsent_bytes: 0,
            broken: false,
        })
    }

    pub(super) fn wants(&self) -> PollFlags {
        if self.unsent.is_empty() { PollFlags::IN } else { PollFlags::IN | PollFlags::OUT }
    }

    pub(super) fn socket(&self) -> &UnixStream {
        &self.socket
    }

    pub(super) fn is_broken(&self) -> bool {
        self.broken
    }

    /// Takes in what has come; the requests that are complete now, and whether the agent is gone.
    pub(super) fn receive(&mut self) -> Vec<RequestFrame> {
        let mut buffer = [0; 16 << 10];
        loop {
            match socket::receive(&self.socket, &mut buffer, &mut self.descriptors) {
                Ok(0) => break self.broken = true,
                Ok(count) => self.received.extend_from_slice(&buffer[..count]),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => break self.broken = true,
            }
            if self.received.len() > MOST_FRAME + buffer.len()
                || self.descriptors.len() > 8 * MOST_DESCRIPTORS
            {
                break;
            }
        }
        self.take_requests().unwrap_or_else(|_| {
            self.broken = true;
            Vec::new()
        })
    }

    fn take_requests(&mut self) -> Result<Vec<RequestFrame>, FrameError> {
        let mut requests = Vec::new();
        while let Some(request) = frame::take(&mut self.received)? {
            requests.push(request);
        }
        if self.received.is_empty() {
            self.received.shrink_to(0);
        }
        Ok(requests)
    }

    /// The descriptors that came with the request.
    pub(super) fn take_descriptors(&mut self, count: usize) -> Option<Vec<OwnedFd>> {
        (count <= self.descriptors.len()).then(|| self.descriptors.drain(..count).collect())
    }

    pub(super) fn reply(&mut self, number: u64, reply: ShimReply, descriptor: Option<OwnedFd>) {
        self.send(&ReplyFrame { number, reply }, descriptor);
    }

    pub(super) fn send<T: serde::Serialize>(&mut self, message: &T, descriptor: Option<OwnedFd>) {
        match frame::encode(message) {
            Ok(bytes) if self.unsent_bytes + bytes.len() <= MOST_UNSENT => {
                self.unsent_bytes += bytes.len();
                self.unsent.push_back((bytes, descriptor));
                self.flush();
            }
            _ => self.broken = true,
        }
    }

    pub(super) fn flush(&mut self) {
        while let Some((bytes, descriptor)) = self.unsent.front_mut() {
            let passed: Vec<_> = descriptor.iter().map(AsFd::as_fd).collect();
            match socket::send(&self.socket, bytes, &passed) {
                Ok(count) => {
                    self.unsent_bytes -= count;
                    bytes.drain(..count);
                    *descriptor = None;
                    if bytes.is_empty() {
                        self.unsent.pop_front();
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                Err(_) => return self.broken = true,
            }
        }
    }
}
