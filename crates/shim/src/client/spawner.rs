//! Starts shims, by a process that they are forked from.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use rustix::pipe::{PipeFlags, pipe_with};
use tokio::io::AsyncReadExt;
use tokio::net::unix::pipe;
use tokio::process::{Child, Command};
use tokio::sync::Mutex;
use tokio::time::timeout;

use super::{FrameStream, FrameStreamError, ShimError};
use crate::directory::ShimDirectory;
use crate::shim;
use crate::spawner::{READY, SpawnRequest, SpawnerHello};

/// The longest text in which a shim says why it cannot start.
const MOST_TEXT: u64 = 4096;

/// Starts shims, which then outlive this process. They are forked from a process that is started with the first one and ends when this is dropped; when
/// that one was killed, the next shim gets another.
#[derive(Debug)]
pub struct ShimSpawner {
    program: PathBuf,
    process: Mutex<Option<SpawnerProcess>>,
}

#[derive(Debug)]
struct SpawnerProcess {
    stream: FrameStream,
    /// It is killed when this is dropped.
    _child: Child,
}

impl ShimSpawner {
    /// Shims of that program, which calls [`shim::main`] first thing.
    pub fn new(program: impl Into<PathBuf>) -> Self {
        Self { program: program.into(), process: Mutex::new(None) }
    }

    /// Starts the shim of a directory, and waits until it listens.
    ///
    /// # Errors
    /// When it does not listen in time; a shim that lives there already is one reason.
    pub async fn spawn(
        &self,
        directory: &ShimDirectory,
        deadline: Duration,
    ) -> Result<(), ShimError> {
        let path = || directory.path().to_owned();
        let said = timeout(deadline, self.ask(directory)).await;
        let said = said.map_err(|_| ShimError::Deadline { directory: path(), deadline })?;
        let message = match said {
            Ok(said) if said == READY => return Ok(()),
            Ok(said) if said.is_empty() => "it ended at once".to_owned(),
            Ok(said) => said,
            Err(error) => error.to_string(),
        };
        Err(ShimError::Spawn { directory: path(), message })
    }

    /// What the shim says.
    async fn ask(&self, directory: &ShimDirectory) -> io::Result<String> {
        let (answer, told) = pipe_with(PipeFlags::CLOEXEC)?;
        self.request(directory, told).await?;
        let mut said = String::new();
        let answer = pipe::Receiver::from_owned_fd(answer)?;
        answer.take(MOST_TEXT).read_to_string(&mut said).await?;
        Ok(said)
    }

    async fn request(&self, directory: &ShimDirectory, told: OwnedFd) -> io::Result<()> {
        let request = SpawnRequest { directory: directory.path().to_owned() };
        let mut process = self.process.lock().await;
        if let Some(running) = process.as_ref() {
            match running.stream.send(&request, &[told.as_fd()]).await {
                // It was killed.
                Err(FrameStreamError::Io(_)) => *process = None,
                sent => return sent.map_err(text),
            }
        }
        let started = SpawnerProcess::start(&self.program).await?;
        started.stream.send(&request, &[told.as_fd()]).await.map_err(text)?;
        *process = Some(started);
        Ok(())
    }
}

impl SpawnerProcess {
    async fn start(program: &PathBuf) -> io::Result<Self> {
        let (ours, theirs) = UnixStream::pair()?;
        let mut command = Command::new(program);
        command.args([shim::ARGUMENT, shim::SPAWNER]).kill_on_drop(true);
        command.stdin(OwnedFd::from(theirs)).stdout(Stdio::null()).stderr(Stdio::null());
        let child = command.spawn()?;
        // It has the only other end of the socket now, and its end is seen.
        drop(command);
        let mut stream = FrameStream::new(ours)?;
        let hello: SpawnerHello = stream.receive().await.map_err(text)?;
        match hello.error {
            Some(error) => Err(io::Error::other(error)),
            None => Ok(Self { stream, _child: child }),
        }
    }
}

fn text(error: FrameStreamError) -> io::Error {
    match error {
        FrameStreamError::Io(source) => {
            let message = format!("the process that shims are forked from is gone: {source}");
            io::Error::new(source.kind(), message)
        }
        FrameStreamError::Frame(source) => io::Error::other(source),
    }
}
