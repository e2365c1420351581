//! Starts, stops and pauses containerd.

use std::env;
use std::fs::File;
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};

use anyhow::{Context, Result, ensure};
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process, waitid};

use crate::parts::Parts;
use crate::rig::RigLayout;

/// The process, if it runs.
#[derive(Default)]
pub(super) struct ContainerdProcess {
    process: Mutex<Option<Child>>,
}

impl ContainerdProcess {
    /// Starts containerd, which appends to its log, so that the log of a crash is kept.
    pub(super) fn start(&self, layout: &RigLayout, parts: &Parts) -> Result<()> {
        let mut process = self.lock();
        ensure!(process.is_none(), "containerd runs already");
        let log = File::options().create(true).append(true).open(layout.log())?;
        let mut command = Command::new(parts.containerd.join("containerd"));
        command.arg("--config").arg(layout.config()).env("PATH", path(parts)?);
        command.stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log);
        *process = Some(command.spawn().context("cannot start containerd")?);
        Ok(())
    }

    /// Fails if containerd has ended by itself.
    pub(super) fn check_alive(&self) -> Result<()> {
        let mut process = self.lock();
        let process = process.as_mut().context("containerd was not started")?;
        let status = process.try_wait()?;
        ensure!(status.is_none(), "containerd has ended: {status:?}");
        Ok(())
    }

    /// Stops containerd by SIGSTOP, and waits until all its threads have stopped.
    pub(super) fn pause(&self) -> Result<()> {
        let pid = self.pid()?;
        kill_process(pid, Signal::STOP)?;
        // An end is waited for as well, but not reaped here.
        let options = WaitIdOptions::STOPPED | WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
        waitid(WaitId::Pid(pid), options)?;
        Ok(())
    }

    /// Continues containerd by SIGCONT.
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

/// containerd looks for its shim in PATH first.
fn path(parts: &Parts) -> Result<std::ffi::OsString> {
    let inherited = env::var_os("PATH").unwrap_or_default();
    let ours = [parts.containerd.clone(), parts.runc.clone()];
    Ok(env::join_paths(ours.into_iter().chain(env::split_paths(&inherited)))?)
}
