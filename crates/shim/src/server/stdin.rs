//! Feeds a container's stdin from the client that is attached to it.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::event::PollFlags;
use rustix::io::{Errno, read, write};

use super::{ShimServer, Waited};

/// How many bytes are held between client and container.
const CHUNK: usize = 16 << 10;

/// A container's stdin: the end we write to, and the client we read from.
#[derive(Debug, Default)]
pub(super) struct ContainerStdin {
    sink: Option<OwnedFd>,
    source: Option<OwnedFd>,
    /// It can be attached to.
    wanted: bool,
    /// It ends with the first client's.
    once: bool,
    held: Vec<u8>,
}

impl ContainerStdin {
    pub(super) fn new(wanted: bool, once: bool) -> Self {
        Self { wanted, once, ..Self::default() }
    }

    /// The end to write to is there now.
    pub(super) fn connect(&mut self, sink: OwnedFd) -> rustix::io::Result<()> {
        rustix::io::ioctl_fionbio(&sink, true)?;
        self.sink = self.wanted.then_some(sink);
        Ok(())
    }

    /// Reads from this client; the one before it, if there is one, is let go.
    pub(super) fn attach(&mut self, source: OwnedFd) -> rustix::io::Result<()> {
        rustix::io::ioctl_fionbio(&source, true)?;
        self.source = self.sink.is_some().then_some(source);
        Ok(())
    }

    pub(super) fn is_open(&self) -> bool {
        self.sink.is_some()
    }

    /// The container has ended.
    pub(super) fn close(&mut self) {
        *self = Self::default();
    }

    pub(super) fn add_waits<'a>(
        &'a self,
        id: &str,
        add: &mut impl FnMut(Waited, BorrowedFd<'a>, PollFlags),
    ) {
        match (&self.sink, &self.source) {
            (Some(sink), _) if !self.held.is_empty() => {
                add(Waited::StdinSink(id.to_owned()), sink.as_fd(), PollFlags::OUT);
            }
            (Some(_), Some(source)) => {
                add(Waited::StdinSource(id.to_owned()), source.as_fd(), PollFlags::IN);
            }
            _ => {}
        }
    }

    fn pump(&mut self) {
        if self.held.is_empty() && !self.fill() {
            return;
        }
        let Some(sink) = &self.sink else { return };
        match write(sink, &self.held) {
            Ok(count) => drop(self.held.drain(..count)),
            Err(Errno::AGAIN | Errno::INTR) => {}
            // The container has closed it.
            Err(_) => self.close(),
        }
    }

    /// Reads from the client; false if there is nothing to write.
    fn fill(&mut self) -> bool {
        let Some(source) = &self.source else { return false };
        let mut buffer = [0; CHUNK];
        match read(source, &mut buffer) {
            Ok(count) if count > 0 => {
                self.held.extend_from_slice(&buffer[..count]);
                true
            }
            Err(Errno::AGAIN | Errno::INTR) => false,
            Ok(_) | Err(_) => {
                self.source = None;
                if self.once {
                    self.sink = None;
                }
                false
            }
        }
    }
}

impl ShimServer {
    pub(super) fn pump_stdin(&mut self, id: &str) {
        if let Some(container) = self.containers.get_mut(id) {
            container.stdin.pump();
        }
    }
}
