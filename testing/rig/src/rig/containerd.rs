//! Starts, stops and pauses containerd, or what is in its place.

use std::env;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process, waitid};

use crate::parts::Parts;
use crate::process;
use crate::rig::RigLayout;

/// The process, if it runs.
#[derive(Default)]
pub(super) struct ContainerdProcess {
    /// The program whose `oarsman cri` is in the place of containerd, if so.
    oarsman: Option<PathBuf>,
    process: Mutex<Option<Child>>,
}

impl ContainerdProcess {
    /// One that is still to be started: a containerd, or `oarsman cri` of that program.
    pub(super) fn new(oarsman: Option<PathBuf>) -> Self {
        Self { oarsman, process: Mutex::default() }
    }

    /// Starts it. It appends to its log, so that the log of a crash is kept.
    pub(super) fn start(&self, layout: &RigLayout, parts: &Parts) -> Result<()> {
        let mut process = self.lock();
        ensure!(process.is_none(), "containerd runs already");
        let log = File::options().create(true).append(true).open(layout.log())?;
        let mut command = match &self.oarsman {
            None => containerd(layout, parts)?,
            Some(program) => oarsman_cri(program, layout),
        };
        command.stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log);
        *process = Some(command.spawn().with_context(|| format!("cannot start {command:?}"))?);
        Ok(())
    }

    /// Fails if it has ended by itself.
    pub(super) fn check_alive(&self) -> Result<()> {
        let mut process = self.lock();
        let process = process.as_mut().context("containerd was not started")?;
        let status = process.try_wait()?;
        ensure!(status.is_none(), "containerd has ended: {status:?}");
        Ok(())
    }

    /// Sends SIGTERM, and waits until it has ended.
    pub(super) async fn terminate(&self, max_wait: Duration) -> Result<ExitStatus> {
        let child = self.take().context("the runtime does not run")?;
        let ended = process::terminate(child, max_wait).await?;
        ended.with_context(|| format!("the runtime did not end within {max_wait:?}"))
    }

    /// Stops it by SIGSTOP, and waits until all its threads have stopped.
    pub(super) fn pause(&self) -> Result<()> {
        let pid = self.pid()?;
        kill_process(pid, Signal::STOP)?;
        // An end is waited for as well, but not reaped here.
        let options = WaitIdOptions::STOPPED | WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
        waitid(WaitId::Pid(pid), options)?;
        Ok(())
    }

    /// Continues it by SIGCONT.
    pub(super) fn resume(&self) -> Result<()> {
        Ok(kill_process(self.pid()?, Signal::CONT)?)
    }

    fn pid(&self) -> Result<Pid> {
        self.lock().as_ref().map(Pid::from_child).context("containerd does not run")
    }

    /// Hands the process over to be ended.
    pub(super) fn take(&self) -> Option<Child> {
        self.lock().take()
    }

    fn lock(&self) -> MutexGuard<'_, Option<Child>> {
        self.process.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn containerd(layout: &RigLayout, parts: &Parts) -> Result<Command> {
    let mut command = Command::new(parts.containerd.join("containerd"));
    command.arg("--config").arg(layout.config()).env("PATH", path(parts)?);
    Ok(command)
}

fn oarsman_cri(program: &Path, layout: &RigLayout) -> Command {
    let mut command = Command::new(program);
    command.arg("cri").arg("--listen").arg(layout.socket()).arg("--root-dir").arg(layout.root());
    command.env("RUST_BACKTRACE", "1");
    command
}

/// containerd looks for its shim in PATH first.
fn path(parts: &Parts) -> Result<std::ffi::OsString> {
    let inherited = env::var_os("PATH").unwrap_or_default();
    let ours = [parts.containerd.clone(), parts.runc.clone()];
    Ok(env::join_paths(ours.into_iter().chain(env::split_paths(&inherited)))?)
}
