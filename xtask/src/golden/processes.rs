//! Processes of the task: in a network namespace of their own, and ended with the task.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use anyhow::{Context, Result, ensure};

/// A process that is killed, by its id, when this is dropped.
pub(super) struct ChildProcess(Child);

impl ChildProcess {
    /// Starts a process whose output goes to a file.
    pub(super) fn start(command: &mut Command, log: &Path) -> Result<Self> {
        let output = File::create(log).with_context(|| format!("making {}", log.display()))?;
        let child = command
            .stdin(Stdio::null())
            .stdout(output.try_clone()?)
            .stderr(output)
            .spawn()
            .with_context(|| format!("starting {command:?}"))?;
        Ok(Self(child))
    }

    /// Whether it has ended.
    pub(super) fn has_ended(&mut self) -> Result<bool> {
        Ok(self.0.try_wait()?.is_some())
    }
}

impl Drop for ChildProcess {
    fn drop(&mut self) {
        // It may have ended by itself.
        if self.0.kill().is_ok() {
            drop(self.0.wait());
        }
    }
}

/// A network namespace with loopback only, held open by a process that sleeps in it.
pub(super) struct NetworkNamespace {
    holder: ChildProcess,
}

impl NetworkNamespace {
    /// Makes the network; needs root.
    pub(super) fn make() -> Result<Self> {
        let mut holder = ending_with_us("unshare")
            .args([
                "--net",
                "--",
                "sh",
                "-c",
                "ip link set lo up && echo up && exec sleep infinity",
            ])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .context("starting unshare")?;
        let said = holder.stdout.take().context("unshare has no output")?;
        let holder = ChildProcess(holder);
        let mut line = String::new();
        BufReader::new(said).read_line(&mut line)?;
        ensure!(line.trim() == "up", "cannot make a network namespace: run this as root");
        Ok(Self { holder })
    }

    /// A command that will run in this network.
    pub(super) fn command(&self, program: &Path) -> Command {
        let mut command = ending_with_us("nsenter");
        command.arg(format!("--net=/proc/{}/ns/net", self.holder.0.id())).arg("--").arg(program);
        command
    }
}

/// A command whose process ends when this one does, however that happens.
fn ending_with_us(program: &str) -> Command {
    let mut command = Command::new("setpriv");
    command.args(["--pdeathsig", "KILL", program]);
    command
}

/// Runs a command and fails when it does.
pub(super) fn run_to_end(command: &mut Command) -> Result<()> {
    let status = command.status().with_context(|| format!("starting {command:?}"))?;
    ensure!(status.success(), "{command:?} ended with {status}");
    Ok(())
}
