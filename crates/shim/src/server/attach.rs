//! Clients that read what a container writes.

use std::os::fd::OwnedFd;

use rustix::event::PollFlags;
use rustix::io::{Errno, write};

use super::ShimServer;
use crate::log::WrittenStream;

/// How many bytes wait for a client that does not read. One that is further behind is detached: the container and its log go on, and a stream
/// with a hole would be worse than one that ends.
const MOST_WAITING: usize = 1 << 20;

/// One stream of one client.
#[derive(Debug)]
pub(super) struct AttachedStream {
    pub(super) stream: WrittenStream,
    pub(super) descriptor: OwnedFd,
    waiting: Vec<u8>,
    ended: bool,
    broken: bool,
}

impl AttachedStream {
    pub(super) fn new(stream: WrittenStream, descriptor: OwnedFd) -> rustix::io::Result<Self> {
        rustix::io::ioctl_fionbio(&descriptor, true)?;
        Ok(Self { stream, descriptor, waiting: Vec::new(), ended: false, broken: false })
    }

    pub(super) fn send(&mut self, bytes: &[u8]) {
        if self.waiting.len() + bytes.len() > MOST_WAITING {
            self.broken = true;
            return;
        }
        self.waiting.extend_from_slice(bytes);
        self.flush();
    }

    /// Nothing comes any more; it is closed once all is written.
    pub(super) fn end(&mut self) {
        self.ended = true;
        self.flush();
    }

    fn flush(&mut self) {
        while !self.waiting.is_empty() {
            match write(&self.descriptor, &self.waiting) {
                Ok(count) => drop(self.waiting.drain(..count)),
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => return,
                Err(_) => return self.broken = true,
            }
        }
    }

    pub(super) fn is_behind(&self) -> bool {
        !self.waiting.is_empty()
    }

    pub(super) fn is_broken(&self) -> bool {
        self.broken || (self.ended && !self.is_behind())
    }
}

impl ShimServer {
    pub(super) fn flush_attached(&mut self, id: &str, at: usize, events: PollFlags) {
        let Some(container) = self.containers.get_mut(id) else { return };
        if let Some(client) = container.attached.get_mut(at) {
            if events.intersects(PollFlags::ERR | PollFlags::NVAL) {
                client.broken = true;
            } else {
                client.flush();
            }
        }
        // Removed later: the places of the others are still used in this round.
        container.has_broken_clients |= container.attached.iter().any(AttachedStream::is_broken);
    }
}
