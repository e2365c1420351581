//! Reads what containers write: into their logs, and to the clients that are attached.

use std::io;
use std::os::fd::OwnedFd;

use oarsman_clock::Clock;
use rustix::io::{Errno, read};

use super::ShimServer;
use super::attach::AttachedStream;
use super::container::HeldContainer;
use crate::log::{CriLineSplitter, WrittenStream};

/// How many bytes are read at once.
const CHUNK: usize = 32 << 10;
/// How many chunks are read from one stream before the others have their turn.
const MOST_CHUNKS: usize = 8;

/// The end of a pipe or terminal that a container writes to.
#[derive(Debug)]
pub(super) struct OutputPump {
    pub(super) stream: WrittenStream,
    pub(super) descriptor: OwnedFd,
    splitter: CriLineSplitter,
    /// Removed at the end of the round: the places of the others are still used in it.
    pub(super) ended: bool,
}

impl OutputPump {
    pub(super) fn new(stream: WrittenStream, descriptor: OwnedFd) -> io::Result<Self> {
        rustix::io::ioctl_fionbio(&descriptor, true)?;
        Ok(Self { stream, descriptor, splitter: CriLineSplitter::new(stream), ended: false })
    }
}

impl ShimServer {
    pub(super) fn read_output(&mut self, id: &str, at: usize) {
        let now = self.now();
        let Some(container) = self.containers.get_mut(id) else { return };
        let mut buffer = [0; CHUNK];
        for _ in 0..MOST_CHUNKS {
            // Lines are longer in the log than they came.
            if container.log.as_mut().is_some_and(|log| !log.has_room(now)) {
                break;
            }
            let Some(output) = container.outputs.get(at).filter(|output| !output.ended) else {
                break;
            };
            match read(&output.descriptor, &mut buffer) {
                Ok(count) if count > 0 => {
                    take_bytes(container, at, &buffer[..count], self.clock.wall());
                }
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => break,
                // A terminal whose last process has gone answers EIO.
                Ok(_) | Err(_) => end_output(container, at, self.clock.wall()),
            }
        }
        container.flush_log(now);
    }
}

fn take_bytes(container: &mut HeldContainer, at: usize, bytes: &[u8], wall: jiff::Timestamp) {
    let HeldContainer { outputs, log, attached, .. } = container;
    let Some(output) = outputs.get_mut(at) else { return };
    output.splitter.add(bytes, wall, |line| {
        if let Some(log) = log {
            log.add(line);
        }
    });
    for client in attached.iter_mut().filter(|client| client.stream == output.stream) {
        client.send(bytes);
    }
    container.has_broken_clients |= container.attached.iter().any(AttachedStream::is_broken);
}

fn end_output(container: &mut HeldContainer, at: usize, wall: jiff::Timestamp) {
    let Some(output) = container.outputs.get_mut(at) else { return };
    output.ended = true;
    let log = &mut container.log;
    output.splitter.end(wall, |line| {
        if let Some(log) = log {
            log.add(line);
        }
    });
    let stream = output.stream;
    for client in container.attached.iter_mut().filter(|client| client.stream == stream) {
        client.end();
    }
    container.has_broken_clients |= container.attached.iter().any(AttachedStream::is_broken);
}
