//! The calls of a shim, typed.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::PathBuf;
use std::time::Duration;

use oci_spec::runtime::{LinuxResources, Process};
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::termios::{Winsize, tcsetwinsize};
use tokio::io::AsyncReadExt;
use tokio::net::unix::pipe;
use tokio::time::timeout;

use super::{ShimCall, ShimClient, ShimError, unexpected};
use crate::protocol::{
    ContainerReport, CreateRequest, ExecRequest, ExitReport, ShimReply, ShimRequest, StreamSet,
};

/// How much output of an exec-sync is kept of each stream; the rest is read and dropped.
const MOST_OUTPUT: usize = 16 << 20;
/// How long output is read after the process has ended, in case something it left behind holds the pipes.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(2);

/// The ends that a shim gets: it reads from `stdin`, and writes to the others.
#[derive(Debug, Default)]
pub struct AttachStreams {
    /// What the container reads.
    pub stdin: Option<OwnedFd>,
    /// Where its output goes.
    pub stdout: Option<OwnedFd>,
    /// Where its errors go.
    pub stderr: Option<OwnedFd>,
}

impl AttachStreams {
    fn set(&self) -> StreamSet {
        StreamSet {
            stdin: self.stdin.is_some(),
            stdout: self.stdout.is_some(),
            stderr: self.stderr.is_some(),
        }
    }

    fn descriptors(&self) -> Vec<BorrowedFd<'_>> {
        [&self.stdin, &self.stdout, &self.stderr].into_iter().flatten().map(AsFd::as_fd).collect()
    }
}

/// How long a process of an exec may run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExecLifetime {
    /// To its own end, also when its end is not waited for any more.
    Own,
    /// So long; then it is killed, with all that it has started.
    Limited(Duration),
    /// As long as its [`RunningExec`] is there; then it is killed, with all that it has started.
    Connection,
}

impl ExecLifetime {
    fn timeout_ms(self) -> Option<u64> {
        match self {
            Self::Limited(limit) => Some(u64::try_from(limit.as_millis()).unwrap_or(u64::MAX)),
            Self::Own | Self::Connection => None,
        }
    }
}

/// The agent's end of the terminal of an exec: what the process writes is read here, and the other way round.
#[derive(Debug)]
pub struct ExecTerminal(OwnedFd);

impl ExecTerminal {
    /// Changes its size.
    ///
    /// # Errors
    /// When the terminal is gone.
    pub fn resize(&self, width: u16, height: u16) -> io::Result<()> {
        Ok(tcsetwinsize(
            &self.0,
            Winsize { ws_row: height, ws_col: width, ws_xpixel: 0, ws_ypixel: 0 },
        )?)
    }

    /// The descriptor itself.
    pub fn descriptor(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// A process that was executed in a container and has not been waited for.
#[derive(Debug)]
pub struct RunningExec {
    /// Its pid, in the shim's pid namespace.
    pub pid: u32,
    /// Its terminal, if it has one.
    pub terminal: Option<ExecTerminal>,
    call: ShimCall,
}

impl RunningExec {
    /// Waits until it has ended.
    ///
    /// # Errors
    /// When the shim is gone.
    pub async fn wait(mut self) -> Result<ExitReport, ShimError> {
        match self.call.reply().await? {
            ShimReply::ExecExited { exit } => Ok(exit),
            other => Err(unexpected(other)),
        }
    }
}

/// What an exec-sync gives.
#[derive(Debug)]
pub struct ExecSyncOutput {
    /// How it ended; `timed_out` says that it was killed for want of time.
    pub exit: ExitReport,
    /// Its output, up to 16 MiB.
    pub stdout: Vec<u8>,
    /// Its errors, up to 16 MiB.
    pub stderr: Vec<u8>,
}

impl ShimClient {
    /// All containers with their states.
    ///
    /// # Errors
    /// As every call: when the shim is gone, late or refuses.
    pub async fn list(&self) -> Result<Vec<ContainerReport>, ShimError> {
        match self.call(&ShimRequest::List).await? {
            ShimReply::Containers { containers } => Ok(containers),
            other => Err(unexpected(other)),
        }
    }

    /// Makes a container; gives its first process.
    ///
    /// # Errors
    /// When it cannot be made; nothing of it is left then.
    pub async fn create(&self, request: CreateRequest) -> Result<u32, ShimError> {
        match self.call(&ShimRequest::Create(Box::new(request))).await? {
            ShimReply::Created { pid } => Ok(pid),
            other => Err(unexpected(other)),
        }
    }

    /// Runs the program of a container.
    ///
    /// # Errors
    /// When it is not waiting for that.
    pub async fn start(&self, container: &str) -> Result<(), ShimError> {
        self.done(&ShimRequest::Start { container: container.to_owned() }).await
    }

    /// Sends a signal to the first process of a container, or to `all` of them.
    ///
    /// # Errors
    /// When it has no process.
    pub async fn kill(&self, container: &str, signal: i32, all: bool) -> Result<(), ShimError> {
        self.done(&ShimRequest::Kill { container: container.to_owned(), signal, all }).await
    }

    /// Waits for the end of a container, as long as it takes.
    ///
    /// # Errors
    /// When the shim or the container goes away.
    pub async fn wait(&self, container: &str) -> Result<ExitReport, ShimError> {
        let (mut call, _) = self.within(self.connect()).await?;
        call.send(&ShimRequest::Wait { container: container.to_owned() }, &[]).await?;
        match call.reply().await? {
            ShimReply::Exited { exit, .. } => Ok(exit),
            other => Err(unexpected(other)),
        }
    }

    /// Removes a container; one that runs is killed.
    ///
    /// # Errors
    /// When something of it stays.
    pub async fn delete(&self, container: &str) -> Result<(), ShimError> {
        self.done(&ShimRequest::Delete { container: container.to_owned() }).await
    }

    /// Runs a process in a container. With a terminal the streams are none, and the terminal is in the answer.
    ///
    /// # Errors
    /// When it cannot be executed.
    pub async fn exec(
        &self,
        container: &str,
        process: Process,
        streams: AttachStreams,
        lifetime: ExecLifetime,
    ) -> Result<RunningExec, ShimError> {
        let request = ExecRequest {
            container: container.to_owned(),
            process,
            streams: streams.set(),
            timeout_ms: lifetime.timeout_ms(),
            ends_with_connection: lifetime == ExecLifetime::Connection,
        };
        let (mut call, reply) =
            self.begin(&ShimRequest::Exec(Box::new(request)), &streams.descriptors()).await?;
        let ShimReply::ExecStarted { pid } = reply else {
            return Err(unexpected(reply));
        };
        Ok(RunningExec { pid, terminal: call.stream.descriptors.pop().map(ExecTerminal), call })
    }

    /// Runs a process in a container to its end, or to its `limit`.
    ///
    /// # Errors
    /// When it cannot be executed, or the shim is gone.
    pub async fn exec_sync(
        &self,
        container: &str,
        process: Process,
        limit: Option<Duration>,
    ) -> Result<ExecSyncOutput, ShimError> {
        let gone = |source| ShimError::Gone { directory: self.directory.path().to_owned(), source };
        let pipe = || pipe_with(PipeFlags::CLOEXEC).map_err(io::Error::from).map_err(gone);
        let ((stdout, to_stdout), (stderr, to_stderr)) = (pipe()?, pipe()?);
        let streams =
            AttachStreams { stdin: None, stdout: Some(to_stdout), stderr: Some(to_stderr) };
        let lifetime = limit.map_or(ExecLifetime::Own, ExecLifetime::Limited);
        let exec = self.exec(container, process, streams, lifetime).await?;
        let (mut kept_out, mut kept_err) = (Vec::new(), Vec::new());
        let exit = {
            let both = async {
                tokio::join!(read_all(stdout, &mut kept_out), read_all(stderr, &mut kept_err))
            };
            let (mut reading, mut ended) = (std::pin::pin!(both), std::pin::pin!(exec.wait()));
            tokio::select! {
                exit = &mut ended => {
                    // What is left in the pipes is read; what holds them open otherwise is not waited for.
                    timeout(DRAIN_TIMEOUT, reading).await.ok();
                    exit?
                }
                _ = &mut reading => ended.await?,
            }
        };
        Ok(ExecSyncOutput { exit, stdout: kept_out, stderr: kept_err })
    }

    /// Joins the streams of a container's first process.
    ///
    /// # Errors
    /// When it has ended, or has no stdin that is open.
    pub async fn attach(&self, container: &str, streams: &AttachStreams) -> Result<(), ShimError> {
        let request =
            ShimRequest::Attach { container: container.to_owned(), streams: streams.set() };
        match self.begin(&request, &streams.descriptors()).await? {
            (_, ShimReply::Done) => Ok(()),
            (_, other) => Err(unexpected(other)),
        }
    }

    /// Changes the size of a container's terminal.
    ///
    /// # Errors
    /// When it has none.
    pub async fn resize(&self, container: &str, width: u16, height: u16) -> Result<(), ShimError> {
        self.done(&ShimRequest::Resize { container: container.to_owned(), width, height }).await
    }

    /// Writes a container's log to a new file at the same path.
    ///
    /// # Errors
    /// When that cannot be opened; the log continues in the old one.
    pub async fn reopen_log(&self, container: &str) -> Result<(), ShimError> {
        self.done(&ShimRequest::ReopenLog { container: container.to_owned() }).await
    }

    /// Changes the limits of a container.
    ///
    /// # Errors
    /// When the kernel does not take them.
    pub async fn update(
        &self,
        container: &str,
        resources: LinuxResources,
    ) -> Result<(), ShimError> {
        let resources = Box::new(resources);
        self.done(&ShimRequest::Update { container: container.to_owned(), resources }).await
    }

    /// The file of the pid namespace that the pod's containers can share. It belongs to their user namespace, if they have one.
    ///
    /// # Errors
    /// When it cannot be made.
    pub async fn pid_namespace(
        &self,
        user_namespace: Option<PathBuf>,
    ) -> Result<PathBuf, ShimError> {
        match self.call(&ShimRequest::PidNamespace { user_namespace }).await? {
            ShimReply::PidNamespace { path, .. } => Ok(path),
            other => Err(unexpected(other)),
        }
    }

    /// Every exit from now on. It ends when the shim does.
    ///
    /// # Errors
    /// When the shim is gone.
    pub async fn exits(&self) -> Result<ContainerExits, ShimError> {
        match self.begin(&ShimRequest::Events, &[]).await? {
            (call, ShimReply::Done) => Ok(ContainerExits(call)),
            (_, other) => Err(unexpected(other)),
        }
    }

    /// Ends the shim, which has no containers any more.
    ///
    /// # Errors
    /// When it has some.
    pub async fn shut_down(&self) -> Result<(), ShimError> {
        let (mut call, reply) = self.begin(&ShimRequest::Shutdown, &[]).await?;
        if reply != ShimReply::Done {
            return Err(unexpected(reply));
        }
        // The end of the connection is the end of the shim.
        self.within(async { Ok(call.reply().await.err()) }).await.map(drop)
    }
}

/// The exits of a shim's containers.
#[derive(Debug)]
pub struct ContainerExits(ShimCall);

impl ContainerExits {
    /// The next container that has ended.
    ///
    /// # Errors
    /// When the shim is gone, which is how it is noticed.
    pub async fn next(&mut self) -> Result<(String, ExitReport), ShimError> {
        match self.0.reply().await? {
            ShimReply::Exited { container, exit } => Ok((container, exit)),
            other => Err(unexpected(other)),
        }
    }
}

async fn read_all(descriptor: OwnedFd, kept: &mut Vec<u8>) -> io::Result<()> {
    let mut reader = pipe::Receiver::from_owned_fd(descriptor)?;
    let mut buffer = vec![0; 64 << 10];
    loop {
        let count = reader.read(&mut buffer).await?;
        if count == 0 {
            return Ok(());
        }
        let room = MOST_OUTPUT - kept.len();
        kept.extend_from_slice(buffer.get(..count.min(room)).unwrap_or_default());
    }
}
