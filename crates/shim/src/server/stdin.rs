//! Feeds a container's stdin from the clients that are attached to it.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::event::PollFlags;
use rustix::io::{Errno, read, write};

use super::{ShimServer, Waited};

/// How many bytes are held between client and container.
const CHUNK: usize = 16 << 10;

/// Clients whose input is read at once. The first one makes room for one more.
const MOST_SOURCES: usize = 32;

/// A container's stdin: the end we write to, and the clients we read from.
#[derive(Debug, Default)]
pub(super) struct ContainerStdin {
    sink: Option<OwnedFd>,
    sources: Vec<OwnedFd>,
    /// It can be attached to.
    wanted: bool,
    /// It ends with the input of a client, whichever is the first.
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

    /// Reads from this client, too.
    pub(super) fn attach(&mut self, source: OwnedFd) -> rustix::io::Result<()> {
        rustix::io::ioctl_fionbio(&source, true)?;
        if self.sink.is_some() {
            if self.sources.len() >= MOST_SOURCES {
                self.sources.remove(0);
            }
            self.sources.push(source);
        }
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
        let Some(sink) = &self.sink else { return };
        if !self.held.is_empty() {
            return add(Waited::StdinSink(id.to_owned()), sink.as_fd(), PollFlags::OUT);
        }
        for (at, source) in self.sources.iter().enumerate() {
            add(Waited::StdinSource(id.to_owned(), at), source.as_fd(), PollFlags::IN);
        }
    }

    fn flush(&mut self) {
        let Some(sink) = self.sink.as_ref().filter(|_| !self.held.is_empty()) else { return };
        match write(sink, &self.held) {
            Ok(count) => drop(self.held.drain(..count)),
            Err(Errno::AGAIN | Errno::INTR) => {}
            // The container has closed it.
            Err(_) => self.close(),
        }
    }

    /// Reads from a client, unless what another has sent is still held. A place that is another's meanwhile has nothing to read, which does no harm.
    fn fill(&mut self, at: usize) {
        let Some(source) = self.sources.get(at).filter(|_| self.held.is_empty()) else { return };
        let mut buffer = [0; CHUNK];
        match read(source, &mut buffer) {
            Ok(count) if count > 0 => self.held.extend_from_slice(&buffer[..count]),
            Err(Errno::AGAIN | Errno::INTR) => {}
            Ok(_) | Err(_) => {
                self.sources.remove(at);
                if self.once {
                    self.close();
                }
            }
        }
    }
}

impl ShimServer {
    pub(super) fn read_stdin(&mut self, id: &str, at: usize) {
        if let Some(container) = self.containers.get_mut(id) {
            container.stdin.fill(at);
            container.stdin.flush();
        }
    }

    pub(super) fn write_stdin(&mut self, id: &str) {
        if let Some(container) = self.containers.get_mut(id) {
            container.stdin.flush();
        }
    }
}
