//! Runs the agent as a real process on a rig.

mod command;
mod setup;

use std::fs::{self, File};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use oarsman_host::processes;
use oarsman_rig::{Manifests, wait_until};
use rustix::process::{Pid, Signal, kill_process};

use crate::manifest::PodManifest;
pub use command::{CommandOutput, wait_for_output};
pub use setup::{AgentSetup, NAME};

/// How many lines of the agent's log an error carries.
const LOG_TAIL: usize = 40;
/// Where an agent serves its embedded runtime, below its root directory.
pub(crate) const EMBEDDED_SOCKET: &str = "runtime/cri.sock";
/// How long it may take to come back.
const LONGEST_SOCKET_WAIT: Duration = Duration::from_secs(5);
const POLL_INTERVAL: Duration = Duration::from_millis(10);

/// An agent: its directories, and its process while it runs. It is killed when this is dropped.
pub struct AgentProcess {
    setup: AgentSetup,
    manifests: Manifests,
    process: Mutex<Option<Child>>,
}

impl AgentProcess {
    /// Makes the agent's directories; the process is still to be started.
    ///
    /// # Errors
    /// When they cannot be made.
    pub fn new(setup: AgentSetup) -> Result<Self> {
        let root = &setup.root;
        fs::create_dir_all(root).with_context(|| format!("cannot make {}", root.display()))?;
        let manifests = Manifests::create(setup.manifests.clone())?;
        Ok(Self { setup, manifests, process: Mutex::default() })
    }

    /// Starts the agent, which appends to its log.
    ///
    /// # Errors
    /// When it runs already, or its program cannot be started.
    pub fn start(&self) -> Result<()> {
        ensure!(!self.is_alive(), "the agent lives already");
        let log = File::options().create(true).append(true).open(self.log())?;
        let mut command = Command::new(&self.setup.program);
        command.args(self.setup.arguments()).envs(self.setup.environment.iter().cloned());
        command.stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log);
        let program = self.setup.program.display();
        let child = command.spawn().with_context(|| format!("cannot start {program}"))?;
        *self.lock() = Some(child);
        Ok(())
    }

    /// Kills the agent, as a crash would, and waits until it is dead. One that has ended is left alone.
    ///
    /// # Errors
    /// When it was never started.
    pub fn kill(&self) -> Result<()> {
        let mut child = self.lock().take().context("the agent was not started")?;
        child.kill()?;
        child.wait()?;
        Ok(())
    }

    /// Sends SIGTERM to the agent, and waits until it has ended.
    ///
    /// # Errors
    /// When it does not end in time: it is killed then. The error carries the end of its log.
    pub async fn terminate(&self, max_wait: Duration) -> Result<ExitStatus> {
        let mut child = self.lock().take().context("the agent was not started")?;
        kill_process(Pid::from_child(&child), Signal::TERM)?;
        let waiting = async {
            loop {
                if let Some(status) = child.try_wait()? {
                    return Ok(status);
                }
                tokio::time::sleep(POLL_INTERVAL).await;
            }
        };
        if let Ok(status) = tokio::time::timeout(max_wait, waiting).await {
            return status;
        }
        child.kill()?;
        child.wait()?;
        bail!("the agent did not end within {max_wait:?}; its log:\n{}", self.log_tail())
    }

    /// Kills the agent if it runs, and starts it anew on the same directories.
    ///
    /// # Errors
    /// When its program cannot be started.
    pub fn restart(&self) -> Result<()> {
        if self.is_alive() {
            self.kill()?;
        }
        self.start()?;
        self.wait_for_embedded_runtime();
        Ok(())
    }

    /// The CRI socket of an embedded runtime goes and comes with its agent, and scenarios look at pods by it. One that does not come is told by
    /// the next look.
    fn wait_for_embedded_runtime(&self) {
        let socket = self.root().join(EMBEDDED_SOCKET);
        let is_there = || !socket.exists() || UnixStream::connect(&socket).is_ok();
        wait_until(LONGEST_SOCKET_WAIT, || is_there() || !self.is_alive());
    }

    /// Whether the agent's process runs.
    pub fn is_alive(&self) -> bool {
        self.lock().as_mut().is_some_and(|child| matches!(child.try_wait(), Ok(None)))
    }

    /// The agent's exit code; none while it runs, or when a signal ended it.
    pub fn exit_code(&self) -> Option<i32> {
        self.lock().as_mut()?.try_wait().ok()??.code()
    }

    /// The pid of the agent.
    ///
    /// # Errors
    /// When it does not run; the error carries the end of its log.
    pub fn pid(&self) -> Result<u32> {
        let pid = self.lock().as_ref().map(Child::id);
        match pid {
            Some(pid) if self.is_alive() => Ok(pid),
            _ => bail!("the agent does not live; its log:\n{}", self.log_tail()),
        }
    }

    /// The processor time of the agent since its start, to the hundredth of a second.
    ///
    /// # Errors
    /// When it does not run.
    pub fn cpu_time(&self) -> Result<Duration> {
        Ok(processes::cpu_time(self.pid()?)?)
    }

    /// The memory of the agent in bytes, with its share of what it has in common with other processes.
    ///
    /// # Errors
    /// When it does not run.
    pub fn pss(&self) -> Result<u64> {
        Ok(processes::pss(self.pid()?)?)
    }

    /// The program that it runs.
    pub fn program(&self) -> &Path {
        &self.setup.program
    }

    /// The agent's root directory.
    pub fn root(&self) -> &Path {
        &self.setup.root
    }

    /// The directory of the agent's manifests.
    pub fn manifests(&self) -> &Manifests {
        &self.manifests
    }

    /// The agent's log file.
    pub fn log(&self) -> PathBuf {
        self.setup.manifests.with_extension("log")
    }

    /// The end of the agent's log.
    pub fn log_tail(&self) -> String {
        let log = fs::read(self.log()).unwrap_or_default();
        let log = String::from_utf8_lossy(&log);
        let lines: Vec<&str> = log.lines().collect();
        lines[lines.len().saturating_sub(LOG_TAIL)..].join("\n")
    }

    /// Writes a manifest to the agent's directory of manifests.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn apply(&self, name: &str, manifest: &PodManifest) -> Result<()> {
        self.manifests.write(name, &manifest.text())
    }

    fn lock(&self) -> MutexGuard<'_, Option<Child>> {
        self.process.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for AgentProcess {
    fn drop(&mut self) {
        if let Some(mut child) = self.lock().take() {
            // It may have ended by itself; either way nothing more can be done here.
            child.kill().ok();
            child.wait().ok();
        }
    }
}
