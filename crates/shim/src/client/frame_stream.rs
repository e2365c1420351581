//! Frames over a socket, with descriptors beside them.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::io::Interest;
use tokio::net::UnixStream;

use crate::protocol::frame::{self, FrameError};
use crate::socket;

/// Why a frame did not go or come.
#[derive(Debug)]
pub(super) enum FrameStreamError {
    Io(io::Error),
    Frame(FrameError),
}

impl From<io::Error> for FrameStreamError {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

impl From<FrameError> for FrameStreamError {
    fn from(error: FrameError) -> Self {
        Self::Frame(error)
    }
}

/// A socket with what has come in of it.
#[derive(Debug)]
pub(super) struct FrameStream {
    stream: UnixStream,
    received: Vec<u8>,
    /// Those that have come and were not taken yet.
    pub(super) descriptors: Vec<OwnedFd>,
}

impl FrameStream {
    pub(super) fn new(stream: std::os::unix::net::UnixStream) -> io::Result<Self> {
        stream.set_nonblocking(true)?;
        let stream = UnixStream::from_std(stream)?;
        Ok(Self { stream, received: Vec::new(), descriptors: Vec::new() })
    }

    /// Sends a frame, and descriptors with its first byte.
    pub(super) async fn send<T: Serialize>(
        &self,
        message: &T,
        passed: &[BorrowedFd<'_>],
    ) -> Result<(), FrameStreamError> {
        let bytes = frame::encode(message)?;
        let mut rest = bytes.as_slice();
        let mut passed = passed;
        while !rest.is_empty() {
            let send = || socket::send(self.stream.as_fd(), rest, passed);
            let sent = self.stream.async_io(Interest::WRITABLE, send).await?;
            rest = rest.get(sent..).unwrap_or_default();
            passed = &[];
        }
        Ok(())
    }

    /// The next frame.
    pub(super) async fn receive<T: DeserializeOwned>(&mut self) -> Result<T, FrameStreamError> {
        loop {
            if let Some(message) = frame::take(&mut self.received)? {
                return Ok(message);
            }
            let mut buffer = vec![0; 16 << 10];
            let Self { stream, descriptors, received } = self;
            let receive = || socket::receive(stream.as_fd(), &mut buffer, descriptors);
            match stream.async_io(Interest::READABLE, receive).await? {
                0 => return Err(io::Error::from(io::ErrorKind::UnexpectedEof).into()),
                count => received.extend_from_slice(buffer.get(..count).unwrap_or_default()),
            }
        }
    }
}
