//! A program that is started, killed and started again, and its log.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use rustix::process::{Pid, Signal, kill_process};

use crate::clock;

/// How many lines of the log an error carries.
const LOG_TAIL: usize = 40;
const POLL_INTERVAL: Duration = Duration::from_millis(10);

/// A program, and its process while it runs. It is killed when this is dropped.
pub(crate) struct ManagedProcess {
    name: String,
    program: PathBuf,
    arguments: Vec<String>,
    log: PathBuf,
    child: Mutex<Option<Child>>,
}

impl ManagedProcess {
    /// A program that is still to be started.
    pub(crate) fn new(name: &str, program: &Path, arguments: Vec<String>, log: PathBuf) -> Self {
        let (name, program) = (name.to_owned(), program.to_owned());
        Self { name, program, arguments, log, child: Mutex::default() }
    }

    /// Starts the program, which appends to its log.
    pub(crate) fn start(&self) -> Result<()> {
        ensure!(!self.is_alive(), "{} runs already", self.name);
        let log = File::options().create(true).append(true).open(&self.log)?;
        let mut command = Command::new(&self.program);
        command.args(&self.arguments);
        // Nothing of a test is left in /etc; others do not look at it.
        command.env("OARSMAN_CHECKPOINT_KEY_DIR", self.log.with_file_name("checkpoint-keys"));
        command.stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log);
        let cannot = || format!("cannot start {}", self.program.display());
        *self.lock() = Some(command.spawn().with_context(cannot)?);
        Ok(())
    }

    /// Kills the process, as a crash would, and waits until it is dead.
    pub(crate) fn kill(&self) -> Result<()> {
        let child = self.lock().take();
        let mut child = child.with_context(|| format!("{} was not started", self.name))?;
        child.kill()?;
        child.wait()?;
        Ok(())
    }

    /// Sends SIGTERM, and waits until the process has ended; one that does not is killed, and that is an error.
    pub(crate) async fn terminate(&self, max_wait: Duration) -> Result<ExitStatus> {
        let child = self.lock().take();
        let child = child.with_context(|| format!("{} was not started", self.name))?;
        let late = || {
            format!("{} did not end within {max_wait:?}; its log:\n{}", self.name, self.log_tail())
        };
        terminate(child, max_wait).await?.with_context(late)
    }

    /// Whether the process runs.
    pub(crate) fn is_alive(&self) -> bool {
        self.lock().as_mut().is_some_and(|child| matches!(child.try_wait(), Ok(None)))
    }

    /// The pid, or an error that carries the end of the log.
    pub(crate) fn pid(&self) -> Result<u32> {
        let pid = self.lock().as_ref().map(Child::id);
        match pid {
            Some(pid) if self.is_alive() => Ok(pid),
            _ => bail!("{} does not live; its log:\n{}", self.name, self.log_tail()),
        }
    }

    /// The arguments the program is started with.
    pub(crate) fn arguments(&self) -> &[String] {
        &self.arguments
    }

    /// The log file.
    pub(crate) fn log(&self) -> &Path {
        &self.log
    }

    /// The end of the log.
    pub(crate) fn log_tail(&self) -> String {
        self.log_end(LOG_TAIL)
    }

    /// The same, with so many lines.
    pub(crate) fn log_end(&self, count: usize) -> String {
        let log = fs::read(&self.log).unwrap_or_default();
        let log = String::from_utf8_lossy(&log);
        let lines: Vec<&str> = log.lines().collect();
        lines[lines.len().saturating_sub(count)..].join("\n")
    }

    fn lock(&self) -> MutexGuard<'_, Option<Child>> {
        self.child.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Sends SIGTERM, and waits until the process has ended; one that does not is killed, and has no status.
pub(crate) async fn terminate(mut child: Child, max_wait: Duration) -> Result<Option<ExitStatus>> {
    kill_process(Pid::from_child(&child), Signal::TERM)?;
    let start = clock::now();
    while start.elapsed() < max_wait {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status));
        }
        tokio::time::sleep(POLL_INTERVAL).await;
    }
    child.kill()?;
    child.wait()?;
    Ok(None)
}

impl Drop for ManagedProcess {
    fn drop(&mut self) {
        if let Some(mut child) = self.lock().take() {
            // It may have ended by itself; either way nothing more can be done here.
            child.kill().ok();
            child.wait().ok();
        }
    }
}
