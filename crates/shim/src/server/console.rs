//! Receives the terminal of a container or exec from libcontainer's console socket.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::{UnixListener, UnixStream};

use super::ShimServer;
use crate::directory::ContainerDirectory;
use crate::socket;

/// What has come of a terminal so far.
#[derive(Debug)]
pub(super) enum StepConsole {
    Listening(UnixListener),
    Connected(UnixStream),
    Received(OwnedFd),
    Failed,
}

impl StepConsole {
    pub(super) fn listen(directory: &ContainerDirectory, step: &str) -> io::Result<Self> {
        let listener = socket::listen(directory.path(), &format!("{step}.console"))?;
        listener.set_nonblocking(true)?;
        Ok(Self::Listening(listener))
    }

    pub(super) fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        match self {
            Self::Listening(listener) => Some(listener.as_fd()),
            Self::Connected(stream) => Some(stream.as_fd()),
            Self::Received(_) | Self::Failed => None,
        }
    }

    /// Goes on as far as it can without waiting.
    pub(super) fn advance(self) -> Self {
        match self {
            Self::Listening(listener) => match listener.accept() {
                Ok((stream, _)) => match stream.set_nonblocking(true) {
                    Ok(()) => Self::Connected(stream).advance(),
                    Err(_) => Self::Failed,
                },
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    Self::Listening(listener)
                }
                Err(_) => Self::Failed,
            },
            Self::Connected(stream) => {
                let mut passed = Vec::new();
                match socket::receive(&stream, &mut [0; 64], &mut passed) {
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                        Self::Connected(stream)
                    }
                    _ => passed.pop().map_or(Self::Failed, Self::Received),
                }
            }
            other => other,
        }
    }
}

impl ShimServer {
    pub(super) fn receive_console(&mut self, number: u64) {
        if let Some(step) = self.steps.get_mut(&number) {
            step.console = step.console.take().map(StepConsole::advance);
        }
    }
}
