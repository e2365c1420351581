//! Runs the program's commands against an agent.

use std::process::Stdio;

use anyhow::{Context, Result, ensure};
use serde_json::Value;
use tokio::process::{Child, Command};

use super::AgentProcess;

/// The output of a command.
#[derive(Debug, Clone)]
pub struct CommandOutput {
    /// The exit code; none when a signal ended it.
    pub code: Option<i32>,
    /// The text of stdout.
    pub out: String,
    /// The text of stderr.
    pub err: String,
}

impl CommandOutput {
    /// The text of stdout, if the command succeeded.
    ///
    /// # Errors
    /// When it failed; with the text of stderr.
    pub fn success(self) -> Result<String> {
        ensure!(self.code == Some(0), "the command failed: {self:#?}");
        Ok(self.out)
    }

    /// The same as JSON.
    ///
    /// # Errors
    /// When it failed, or printed no JSON.
    pub fn json(self) -> Result<Value> {
        let out = self.success()?;
        serde_json::from_str(&out).with_context(|| format!("this is not JSON: {out}"))
    }

    /// The text of stderr, if the command failed with the usual exit code.
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
    /// Runs `oarsman COMMAND --root-dir ROOT ARGUMENTS` to its end.
    ///
    /// # Errors
    /// When it cannot be started.
    pub async fn command(&self, arguments: &[&str]) -> Result<CommandOutput> {
        wait_for_output(self.begin(arguments)?).await
    }

    /// Starts the same without waiting; it is killed when the returned child is dropped.
    ///
    /// # Errors
    /// When it cannot be started.
    pub fn begin(&self, arguments: &[&str]) -> Result<Child> {
        self.begin_with(arguments, Stdio::null())
    }

    /// The same with an input.
    ///
    /// # Errors
    /// When it cannot be started.
    pub fn begin_with(&self, arguments: &[&str], input: Stdio) -> Result<Child> {
        let mut command = Command::new(&self.setup.program);
        // Before the others: words after `--` are not the command's own.
        let (name, rest) = arguments.split_first().context("a command has a name")?;
        command.arg(name).arg("--root-dir").arg(self.root()).args(rest);
        command.stdin(input).stdout(Stdio::piped()).stderr(Stdio::piped());
        let what = || format!("cannot start oarsman {arguments:?}");
        command.kill_on_drop(true).spawn().with_context(what)
    }
}

/// Waits until a command has ended, with its output.
///
/// # Errors
/// When its output cannot be read.
pub async fn wait_for_output(command: Child) -> Result<CommandOutput> {
    let output = command.wait_with_output().await?;
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    Ok(CommandOutput {
        code: output.status.code(),
        out: text(output.stdout),
        err: text(output.stderr),
    })
}
