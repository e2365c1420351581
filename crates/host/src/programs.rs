//! Runs programs that are not ours, such as plugins, to their end: with a deadline, bounded output, and a process group of their own.

use std::io;
use std::pin::pin;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::process::{Child, ChildStdin, Command};
use tokio::time::{sleep, timeout};

use crate::processes;

#[cfg(test)]
mod tests;

/// How long the pipes of a program that has ended are read on. Another process may hold them open for ever.
const LAST_OUTPUT: Duration = Duration::from_secs(1);
/// How long a killed program may take to be gone.
const KILL_WAIT: Duration = Duration::from_secs(5);
/// A program that is just being written cannot be executed.
const BUSY_TRIES: u32 = 25;
const BETWEEN_TRIES: Duration = Duration::from_millis(200);

/// What a program may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProgramLimits {
    /// How long it may run.
    pub deadline: Duration,
    /// The longest output, in bytes; a program with more is killed.
    pub output: usize,
    /// How much of what it says on stderr is kept, from the beginning; the rest is read and dropped.
    pub errors: usize,
}

/// What a program has left.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProgramOutput {
    /// How it ended.
    pub status: ExitStatus,
    /// What it wrote to stdout.
    pub output: Vec<u8>,
    /// The beginning of what it wrote to stderr.
    pub errors: Vec<u8>,
}

/// Why a program has no output.
#[derive(Debug, thiserror::Error)]
pub enum ProgramError {
    /// It could not be started.
    #[error("it cannot be started: {0}")]
    Start(#[source] io::Error),
    /// It ran for too long, and was killed.
    #[error("no answer within {deadline:?}")]
    Deadline {
        /// How long it had.
        deadline: Duration,
    },
    /// It wrote too much, and was killed.
    #[error("its answer is longer than {limit} bytes")]
    TooLong {
        /// How much it might write.
        limit: usize,
    },
    /// Its pipes failed.
    #[error("its output cannot be read: {0}")]
    Pipe(#[source] io::Error),
}

/// Starts a program in a process group of its own, writes its input and reads its output. If it is given up, by its deadline or by a caller
/// that waits no more, it is killed with all processes of its group.
///
/// # Errors
/// When it cannot be started, takes too long or writes too much. A program that fails by itself has output.
pub async fn run(
    command: &mut Command,
    input: &[u8],
    limits: &ProgramLimits,
) -> Result<ProgramOutput, ProgramError> {
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = spawn(command.kill_on_drop(true).process_group(0)).await;
    let mut running = RunningProgram { child: child.map_err(ProgramError::Start)? };
    let deadline = limits.deadline;
    let done = timeout(deadline, running.exchange(input, limits)).await;
    let done = done.unwrap_or(Err(ProgramError::Deadline { deadline }));
    if done.is_err() {
        running.end().await;
    }
    done
}

async fn spawn(command: &mut Command) -> io::Result<Child> {
    for _ in 0..BUSY_TRIES {
        match command.spawn() {
            Err(error) if error.kind() == io::ErrorKind::ExecutableFileBusy => {}
            other => return other,
        }
        sleep(BETWEEN_TRIES).await;
    }
    command.spawn()
}

struct RunningProgram {
    child: Child,
}

impl Drop for RunningProgram {
    /// As long as the program was not waited for, its number is not that of another one.
    fn drop(&mut self) {
        self.child.id().into_iter().for_each(processes::kill_group);
    }
}

impl RunningProgram {
    async fn exchange(
        &mut self,
        input: &[u8],
        limits: &ProgramLimits,
    ) -> Result<ProgramOutput, ProgramError> {
        let (stdin, stdout, stderr) =
            (self.child.stdin.take(), self.child.stdout.take(), self.child.stderr.take());
        let (mut output, mut errors) = (Vec::new(), Vec::new());
        let pipes = async {
            let answer = read_all(stdout, limits.output, &mut output);
            let complaint = read_beginning(stderr, limits.errors, &mut errors);
            tokio::try_join!(write_all(stdin, input), answer, complaint).map(drop)
        };
        let status = ended_beside(self.child.wait(), pipes).await?;
        Ok(ProgramOutput { status, output, errors })
    }

    /// Kills it with its group, and waits until it is gone.
    async fn end(&mut self) {
        self.child.id().into_iter().for_each(processes::kill_group);
        // One that hangs in the kernel is left to it.
        timeout(KILL_WAIT, self.child.wait()).await.ok();
    }
}

/// Waits for the end of a program while its pipes are served. That another process still holds one of them is no reason to wait for that, too.
async fn ended_beside(
    ended: impl Future<Output = io::Result<ExitStatus>>,
    pipes: impl Future<Output = Result<(), ProgramError>>,
) -> Result<ExitStatus, ProgramError> {
    let (mut ended, mut pipes) = (pin!(ended), pin!(pipes));
    let status = tokio::select! {
        served = &mut pipes => {
            served?;
            return ended.await.map_err(ProgramError::Pipe);
        }
        status = &mut ended => status.map_err(ProgramError::Pipe)?,
    };
    // What was not read yet.
    timeout(LAST_OUTPUT, pipes).await.unwrap_or(Ok(())).map(|()| status)
}

async fn write_all(to: Option<ChildStdin>, input: &[u8]) -> Result<(), ProgramError> {
    if let Some(mut to) = to {
        // One that needs no input may be gone before it has read it.
        to.write_all(input).await.ok();
    }
    Ok(())
}

/// Reads to the end, or to more than the limit.
async fn read_all(
    from: Option<impl AsyncRead + Unpin>,
    limit: usize,
    into: &mut Vec<u8>,
) -> Result<(), ProgramError> {
    let Some(from) = from else { return Ok(()) };
    let most = u64::try_from(limit).unwrap_or(u64::MAX).saturating_add(1);
    from.take(most).read_to_end(into).await.map_err(ProgramError::Pipe)?;
    match into.len() > limit {
        true => Err(ProgramError::TooLong { limit }),
        false => Ok(()),
    }
}

/// Keeps the beginning. The rest is read and dropped: a program that logs much must not die of a pipe that is closed.
async fn read_beginning(
    from: Option<impl AsyncRead + Unpin>,
    limit: usize,
    into: &mut Vec<u8>,
) -> Result<(), ProgramError> {
    let Some(mut from) = from else { return Ok(()) };
    let read = async {
        (&mut from).take(u64::try_from(limit).unwrap_or(u64::MAX)).read_to_end(into).await?;
        tokio::io::copy(&mut from, &mut tokio::io::sink()).await
    };
    read.await.map(drop).map_err(ProgramError::Pipe)
}
