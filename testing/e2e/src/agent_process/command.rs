//! Commands asked of an agent, as a person types them.

use std::process::Stdio;

use anyhow::{Context, Result, ensure};
use serde_json::Value;
use tokio::process::{Child, Command};

use super::AgentProcess;

/// What a command said.
#[derive(Debug, Clone)]
pub struct CommandOutput {
    /// With what it ended; none when a signal ended it.
    pub code: Option<i32>,
    /// On stdout.
    pub out: String,
    /// On stderr.
    pub err: String,
}

impl CommandOutput {
    /// What it said on stdout, if all went well.
    ///
    /// # Errors
    /// When it did not; with what was said instead.
    pub fn success(self) -> Result<String> {
        ensure!(self.code == Some(0), "the command failed: {self:#?}");
        Ok(self.out)
    }

    /// The same as JSON.
    ///
    /// # Errors
    /// When it failed, or said something else.
    pub fn json(self) -> Result<Value> {
        let out = self.success()?;
        serde_json::from_str(&out).with_context(|| format!("this is not JSON: {out}"))
    }

    /// What it said on stderr, if it failed as commands do.
    ///
    /// # Errors
    /// When it did not.
    pub fn failure(self) -> Result<String> {
        let failed = self.code == Some(1) && self.err.starts_with("oarsman: ");
        ensure!(failed, "the command was to fail: {self:#?}");
        Ok(self.err)
    }
}

impl AgentProcess {
    /// Runs `oarsman ARGUMENTS --root-dir ROOT` to its end.
    ///
    /// # Errors
    /// When it cannot be started.
    pub async fn command(&self, arguments: &[&str]) -> Result<CommandOutput> {
        wait_for_output(self.begin(arguments)?).await
    }

    /// Begins the same; it is killed when what this returns is dropped.
    ///
    /// # Errors
    /// When it cannot be started.
    pub fn begin(&self, arguments: &[&str]) -> Result<Child> {
        let mut command = Command::new(&self.setup.program);
        command.args(arguments).arg("--root-dir").arg(self.root());
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let what = || format!("cannot start oarsman {arguments:?}");
        command.kill_on_drop(true).spawn().with_context(what)
    }
}

/// Waits until a command has said all.
///
/// # Errors
/// When it cannot be heard.
pub async fn wait_for_output(command: Child) -> Result<CommandOutput> {
    let output = command.wait_with_output().await?;
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    Ok(CommandOutput {
        code: output.status.code(),
        out: text(output.stdout),
        err: text(output.stderr),
    })
}
