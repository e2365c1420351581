//! The agent's side: starts shims, and speaks to them.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use tokio::io::Interest;
use tokio::net::UnixStream;
use tokio::process::Command;
use tokio::time::timeout;

use crate::directory::ShimDirectory;
use crate::protocol::frame::{self, FrameError};
use crate::protocol::{
    OLDEST_PROTOCOL, PROTOCOL, RefusalKind, ReplyFrame, RequestFrame, ShimHello, ShimReply,
    ShimRequest,
};
use crate::{shim, socket};

mod calls;
mod dead_shim;

pub use calls::{
    AttachStreams, ContainerExits, ExecLifetime, ExecSyncOutput, ExecTerminal, RunningExec,
};
pub use dead_shim::{clean_dead_shim, is_shim_alive, read_reports};

/// Why a shim did not do what the agent wanted.
#[derive(Debug, thiserror::Error)]
pub enum ShimError {
    /// It refused.
    #[error("the shim refused: {message}")]
    Refused {
        /// Of which kind.
        kind: RefusalKind,
        /// Its words.
        message: String,
    },
    /// It cannot be reached, or is gone.
    #[error("the shim of {} cannot be reached: {source}; it may have been killed", .directory.display())]
    Gone {
        /// Its directory.
        directory: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// It did not answer in time.
    #[error("the shim of {} did not answer within {deadline:?}", .directory.display())]
    Deadline {
        /// Its directory.
        directory: PathBuf,
        /// How long it had.
        deadline: Duration,
    },
    /// It is of a version that we do not understand.
    #[error("the shim of {} speaks version {theirs} of the protocol, and this program {OLDEST_PROTOCOL} to {PROTOCOL}", .directory.display())]
    Version {
        /// Its directory.
        directory: PathBuf,
        /// Its version.
        theirs: u32,
    },
    /// What it says is not understood.
    #[error("the shim of {} is not understood: {source}", .directory.display())]
    Frame {
        /// Its directory.
        directory: PathBuf,
        /// What is wrong.
        source: FrameError,
    },
    /// It answered something else.
    #[error("the shim answered {0:?}, which is no answer to the request")]
    Unexpected(Box<ShimReply>),
    /// It could not be started.
    #[error("the shim of {} cannot be started: {message}", .directory.display())]
    Spawn {
        /// Its directory.
        directory: PathBuf,
        /// What it said.
        message: String,
    },
}

/// Starts a shim, which then outlives this process, and waits until it listens.
///
/// # Errors
/// When it does not listen in time; a shim that lives there already is one reason.
pub async fn spawn_shim(
    program: &Path,
    directory: &ShimDirectory,
    deadline: Duration,
) -> Result<(), ShimError> {
    let path = || directory.path().to_owned();
    let mut command = Command::new(program);
    command.arg(shim::ARGUMENT).arg("launch").arg(directory.path());
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()).kill_on_drop(true);
    let output = timeout(deadline, command.output()).await;
    let output = output.map_err(|_| ShimError::Deadline { directory: path(), deadline })?;
    let output = output
        .map_err(|error| ShimError::Spawn { directory: path(), message: error.to_string() })?;
    if output.status.success() {
        return Ok(());
    }
    let message = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    Err(ShimError::Spawn { directory: path(), message })
}

/// A shim that answers. Each call has a connection of its own, so that a long one holds none up.
#[derive(Clone, Debug)]
pub struct ShimClient {
    directory: ShimDirectory,
    deadline: Duration,
}

/// One connection with a request under way.
#[derive(Debug)]
struct ShimCall {
    directory: PathBuf,
    stream: UnixStream,
    received: Vec<u8>,
    descriptors: Vec<OwnedFd>,
}

impl ShimClient {
    /// The shim of that directory; `deadline` is how long it has for each answer.
    pub fn new(directory: ShimDirectory, deadline: Duration) -> Self {
        Self { directory, deadline }
    }

    /// What it says of itself.
    ///
    /// # Errors
    /// When it is gone or too new.
    pub async fn hello(&self) -> Result<ShimHello, ShimError> {
        self.within(self.connect()).await.map(|(_, hello)| hello)
    }

    async fn connect(&self) -> Result<(ShimCall, ShimHello), ShimError> {
        let directory = self.directory.path().to_owned();
        let gone = |source| ShimError::Gone { directory: directory.clone(), source };
        let stream = socket::connect(&directory, ShimDirectory::SOCKET).map_err(gone)?;
        stream.set_nonblocking(true).map_err(gone)?;
        let stream = UnixStream::from_std(stream).map_err(gone)?;
        let mut call = ShimCall {
            directory: directory.clone(),
            stream,
            received: Vec::new(),
            descriptors: Vec::new(),
        };
        let hello: ShimHello = call.receive().await?;
        if (OLDEST_PROTOCOL..=PROTOCOL).contains(&hello.protocol) {
            return Ok((call, hello));
        }
        Err(ShimError::Version { directory, theirs: hello.protocol })
    }

    async fn within<T>(
        &self,
        work: impl Future<Output = Result<T, ShimError>>,
    ) -> Result<T, ShimError> {
        let late = |_| ShimError::Deadline {
            directory: self.directory.path().to_owned(),
            deadline: self.deadline,
        };
        timeout(self.deadline, work).await.map_err(late)?
    }

    /// Sends a request and waits for its first reply.
    async fn begin(
        &self,
        request: &ShimRequest,
        passed: &[BorrowedFd<'_>],
    ) -> Result<(ShimCall, ShimReply), ShimError> {
        self.within(async {
            let (mut call, _) = self.connect().await?;
            call.send(request, passed).await?;
            let reply = call.reply().await?;
            Ok((call, reply))
        })
        .await
    }

    async fn call(&self, request: &ShimRequest) -> Result<ShimReply, ShimError> {
        self.begin(request, &[]).await.map(|(_, reply)| reply)
    }

    async fn done(&self, request: &ShimRequest) -> Result<(), ShimError> {
        match self.call(request).await? {
            ShimReply::Done => Ok(()),
            other => Err(unexpected(other)),
        }
    }
}

fn unexpected(reply: ShimReply) -> ShimError {
    ShimError::Unexpected(Box::new(reply))
}

impl ShimCall {
    fn gone(&self, source: io::Error) -> ShimError {
        ShimError::Gone { directory: self.directory.clone(), source }
    }

    fn broken(&self, source: FrameError) -> ShimError {
        ShimError::Frame { directory: self.directory.clone(), source }
    }

    async fn send(
        &self,
        request: &ShimRequest,
        passed: &[BorrowedFd<'_>],
    ) -> Result<(), ShimError> {
        let request = serde_json::to_value(request).map_err(|error| self.broken(error.into()))?;
        let bytes = frame::encode(&RequestFrame { number: 1, request })
            .map_err(|error| self.broken(error))?;
        let mut rest = bytes.as_slice();
        let mut passed = passed;
        while !rest.is_empty() {
            let sent = self
                .stream
                .async_io(Interest::WRITABLE, || socket::send(self.stream.as_fd(), rest, passed))
                .await;
            rest = rest.get(sent.map_err(|error| self.gone(error))?..).unwrap_or_default();
            passed = &[];
        }
        Ok(())
    }

    async fn receive<T: serde::de::DeserializeOwned>(&mut self) -> Result<T, ShimError> {
        loop {
            if let Some(message) =
                frame::take(&mut self.received).map_err(|error| self.broken(error))?
            {
                return Ok(message);
            }
            let mut buffer = vec![0; 16 << 10];
            let descriptors = &mut self.descriptors;
            let stream = &self.stream;
            let received = stream.async_io(Interest::READABLE, || {
                socket::receive(stream.as_fd(), &mut buffer, descriptors)
            });
            match received.await {
                Ok(0) => return Err(self.gone(io::ErrorKind::UnexpectedEof.into())),
                Ok(count) => self.received.extend_from_slice(&buffer[..count]),
                Err(error) => return Err(self.gone(error)),
            }
        }
    }

    /// The next reply; a refusal is an error.
    async fn reply(&mut self) -> Result<ShimReply, ShimError> {
        match self.receive::<ReplyFrame>().await?.reply {
            ShimReply::Refused { kind, message } => Err(ShimError::Refused { kind, message }),
            reply => Ok(reply),
        }
    }
}
