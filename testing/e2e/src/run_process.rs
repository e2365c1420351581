//! Runs `oarsman run` as a process, as a user at a terminal would: start, output, Ctrl-C, exit code.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

use anyhow::{Context, Result};
use rustix::process::{Pid, Signal, kill_process};

use crate::inspect::eventually;
use crate::program;
use crate::scenario::ScenarioContext;

/// `oarsman run` as a process on a rig. It is killed when this is dropped.
pub struct RunProcess {
    child: Child,
    said: PathBuf,
    root: PathBuf,
}

impl RunProcess {
    /// Runs these manifests; `flags` come last.
    ///
    /// # Errors
    /// When the program cannot be started.
    pub fn start(cx: &ScenarioContext, places: &[&Path], flags: &[&str]) -> Result<Self> {
        let root = cx.rig().agents().join("person");
        cx.rig().prepare_agent(&root)?;
        let said = cx.scratch().join("said");
        let out = File::create(&said)?;
        let mut command = Command::new(program::path()?);
        command.arg("run").args(places).args(Self::flags(cx)).args(flags);
        command.stdin(Stdio::null()).stdout(out.try_clone()?).stderr(out);
        let child = command.spawn().context("cannot start the program")?;
        Ok(Self { child, said, root })
    }

    /// The flags that `run` needs on this rig.
    pub fn flags(cx: &ScenarioContext) -> [String; 3] {
        [
            format!("--root-dir={}", cx.rig().agents().join("person").display()),
            format!("--runtime={}", cx.rig().endpoint()),
            format!("--cgroup-root={}/person", cx.rig().cgroup_parent()),
        ]
    }

    /// What the program has printed so far.
    ///
    /// # Errors
    /// When that cannot be read.
    pub fn output(&self) -> Result<String> {
        Ok(fs::read_to_string(&self.said)?)
    }

    /// Waits until the program has printed a text.
    ///
    /// # Errors
    /// With all that it printed when the time is over.
    pub async fn wait_for_output(&self, what: &str, max_wait: Duration) -> Result<String> {
        let goal = format!("the program says {what:?}");
        eventually(max_wait, &goal, async || self.output(), |said| said.contains(what)).await
    }

    /// Sends SIGINT, as Ctrl-C does.
    ///
    /// # Errors
    /// When the program has been waited for already.
    pub fn interrupt(&self) -> Result<()> {
        Ok(kill_process(Pid::from_child(&self.child), Signal::INT)?)
    }

    /// Waits until the program has ended, and returns its exit code; 128 and the signal if it was killed.
    ///
    /// # Errors
    /// With all that it printed when the time is over.
    pub async fn wait_exit(&mut self, max_wait: Duration) -> Result<i32> {
        use std::os::unix::process::ExitStatusExt;
        let said = self.said.clone();
        let child = &mut self.child;
        let ended = async || child.try_wait()?.context("it still runs");
        let status = eventually(max_wait, "the program ends", ended, |_| true).await;
        let status = status.with_context(|| fs::read_to_string(&said).unwrap_or_default())?;
        Ok(status.code().or(status.signal().map(|signal| 128 + signal)).unwrap_or(-1))
    }

    /// Runs one of the other commands for the same root directory.
    ///
    /// # Errors
    /// When the program cannot be started.
    pub fn run_command(&self, command: &str, arguments: &[&str]) -> Result<Output> {
        let mut program = Command::new(program::path()?);
        program.arg(command).arg("--root-dir").arg(&self.root).args(arguments);
        Ok(program.stdin(Stdio::null()).output()?)
    }

    /// Its root directory.
    pub fn root(&self) -> &Path {
        &self.root
    }
}

impl Drop for RunProcess {
    fn drop(&mut self) {
        // It may have ended by itself.
        self.child.kill().ok();
        self.child.wait().ok();
        fs::remove_dir_all(&self.root).ok();
    }
}

/// An example of this repository.
pub fn example(name: &str) -> PathBuf {
    program::workspace().join("examples").join(name)
}
