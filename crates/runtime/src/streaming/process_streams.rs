//! The streams of a process in a container: pipes, or a terminal.

use std::io;
use std::os::fd::OwnedFd;

use oarsman_shim::client::{AttachStreams, ExecTerminal};
use oarsman_streaming::relay::RemoteCommandStreams;
use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use rustix::pipe::{PipeFlags, pipe_with};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::unix::pipe;

use crate::error::{EmbeddedRuntimeError, Outcome};

/// Our ends of them.
#[derive(Default)]
pub(super) struct ProcessEnds {
    pub(super) stdin: Option<Box<dyn AsyncWrite + Send + Unpin>>,
    pub(super) stdout: Option<Box<dyn AsyncRead + Send + Unpin>>,
    pub(super) stderr: Option<Box<dyn AsyncRead + Send + Unpin>>,
}

/// Pipes for the wanted streams: our ends, and those that the shim gets.
pub(super) fn pipes(wanted: RemoteCommandStreams) -> Outcome<(ProcessEnds, AttachStreams)> {
    let made = || -> io::Result<_> {
        let (mut ends, mut given) = (ProcessEnds::default(), AttachStreams::default());
        if wanted.stdin {
            let (reader, writer) = pipe_with(PipeFlags::CLOEXEC)?;
            ends.stdin = Some(Box::new(pipe::Sender::from_owned_fd(writer)?));
            given.stdin = Some(reader);
        }
        for (is_wanted, end, shims) in [
            (wanted.stdout, &mut ends.stdout, &mut given.stdout),
            (wanted.stderr, &mut ends.stderr, &mut given.stderr),
        ] {
            if is_wanted {
                let (reader, writer) = pipe_with(PipeFlags::CLOEXEC)?;
                *end = Some(Box::new(pipe::Receiver::from_owned_fd(reader)?));
                *shims = Some(writer);
            }
        }
        Ok((ends, given))
    };
    made().map_err(EmbeddedRuntimeError::Streams)
}

/// A terminal is read and written as a pair of pipes is. It is read also when its output is not wanted: the process would wait otherwise.
pub(super) fn terminal_ends(
    terminal: &ExecTerminal,
    wanted: RemoteCommandStreams,
) -> Outcome<ProcessEnds> {
    let copy = || -> io::Result<OwnedFd> {
        let copy = terminal.descriptor().try_clone_to_owned()?;
        fcntl_setfl(&copy, fcntl_getfl(&copy)? | OFlags::NONBLOCK)?;
        Ok(copy)
    };
    let made = || -> io::Result<ProcessEnds> {
        let mut ends = ProcessEnds::default();
        if wanted.stdin {
            ends.stdin = Some(Box::new(pipe::Sender::from_owned_fd_unchecked(copy()?)?));
        }
        ends.stdout = Some(Box::new(pipe::Receiver::from_owned_fd_unchecked(copy()?)?));
        Ok(ends)
    };
    made().map_err(EmbeddedRuntimeError::Streams)
}
