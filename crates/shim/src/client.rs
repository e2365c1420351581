//! The agent's side: starts shims, and speaks to them.

use std::io;
use std::os::fd::BorrowedFd;
use std::path::PathBuf;
use std::time::Duration;

use tokio::time::timeout;

use crate::directory::ShimDirectory;
use crate::protocol::frame::FrameError;
use crate::protocol::{
    OLDEST_PROTOCOL, PROTOCOL, RefusalKind, ReplyFrame, RequestFrame, ShimHello, ShimReply,
    ShimRequest,
};
use crate::socket;

mod calls;
mod dead_shim;
mod frame_stream;
mod spawner;

pub use calls::{
    AttachStreams, ContainerExits, ExecLifetime, ExecSyncOutput, ExecTerminal, RunningExec,
};
pub use dead_shim::{clean_dead_shim, read_reports};
use frame_stream::{FrameStream, FrameStreamError};
pub use spawner::ShimSpawner;

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
    stream: FrameStream,
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
        let stream = FrameStream::new(stream).map_err(gone)?;
        let mut call = ShimCall { directory: directory.clone(), stream };
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
    fn failed(&self, error: FrameStreamError) -> ShimError {
        let directory = self.directory.clone();
        match error {
            FrameStreamError::Io(source) => ShimError::Gone { directory, source },
            FrameStreamError::Frame(source) => ShimError::Frame { directory, source },
        }
    }

    async fn send(
        &self,
        request: &ShimRequest,
        passed: &[BorrowedFd<'_>],
    ) -> Result<(), ShimError> {
        let request = serde_json::to_value(request).map_err(FrameError::from);
        let request = request.map_err(|error| self.failed(error.into()))?;
        let sent = self.stream.send(&RequestFrame { number: 1, request }, passed).await;
        sent.map_err(|error| self.failed(error))
    }

    async fn receive<T: serde::de::DeserializeOwned>(&mut self) -> Result<T, ShimError> {
        let received = self.stream.receive().await;
        received.map_err(|error| self.failed(error))
    }

    /// The next reply; a refusal is an error.
    async fn reply(&mut self) -> Result<ShimReply, ShimError> {
        match self.receive::<ReplyFrame>().await?.reply {
            ShimReply::Refused { kind, message } => Err(ShimError::Refused { kind, message }),
            reply => Ok(reply),
        }
    }
}
