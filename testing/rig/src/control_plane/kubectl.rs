//! Runs kubectl with a given kubeconfig.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use serde_json::Value;
use tokio::io::AsyncWriteExt;
use tokio::process::Command;

use crate::parts::kubernetes::KUBECTL;

/// The deadline of a command, unless its caller gives another.
const MAX_WAIT: Duration = Duration::from_secs(60);

/// kubectl with one kubeconfig.
#[derive(Debug, Clone)]
pub struct Kubectl {
    program: PathBuf,
    kubeconfig: PathBuf,
}

impl Kubectl {
    pub(super) fn new(kubeconfig: &Path) -> Result<Self> {
        Ok(Self { program: KUBECTL.path()?, kubeconfig: kubeconfig.to_owned() })
    }

    /// Another kubectl with the same kubeconfig.
    #[must_use]
    pub fn with_program(self, program: &Path) -> Self {
        Self { program: program.to_owned(), ..self }
    }

    /// The program.
    pub fn program(&self) -> &Path {
        &self.program
    }

    /// The variables that it needs. Its cache is in the home directory, and the real one is outside of the rig.
    pub fn variables(&self) -> [(&'static str, String); 2] {
        let path = |path: &Path| path.display().to_string();
        [("KUBECONFIG", path(&self.kubeconfig)), ("HOME", path(&self.home()))]
    }

    /// The command with these arguments, which is killed when its child is dropped.
    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(&self.program);
        command.args(arguments).envs(self.variables()).kill_on_drop(true);
        command
    }

    /// Runs it with these arguments, and returns its stdout.
    ///
    /// # Errors
    /// With its stderr, or when it takes more than a minute.
    pub async fn run(&self, arguments: &[&str]) -> Result<String> {
        self.run_for(MAX_WAIT, arguments, None).await
    }

    /// The same with `--output=json`.
    ///
    /// # Errors
    /// As `run`.
    pub async fn json(&self, arguments: &[&str]) -> Result<Value> {
        let text = self.run(&[arguments, &["--output=json"]].concat()).await?;
        serde_json::from_str(&text).with_context(|| format!("this is not JSON: {text}"))
    }

    /// Applies an object or a list of them.
    ///
    /// # Errors
    /// As `run`.
    pub async fn apply(&self, object: &Value) -> Result<String> {
        let text = object.to_string();
        self.run_for(MAX_WAIT, &["apply", "--filename=-"], Some(&text)).await
    }

    /// Runs it with this input and deadline.
    ///
    /// # Errors
    /// With its stderr, or when it takes longer.
    pub async fn run_for(
        &self,
        max_wait: Duration,
        arguments: &[&str],
        input: Option<&str>,
    ) -> Result<String> {
        let words = arguments.join(" ");
        tokio::time::timeout(max_wait, self.output(arguments, input))
            .await
            .with_context(|| format!("kubectl {words} takes longer than {max_wait:?}"))?
            .with_context(|| format!("kubectl {words}"))
    }

    async fn output(&self, arguments: &[&str], input: Option<&str>) -> Result<String> {
        let mut command = self.command(arguments);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn()?;
        if let Some(mut stdin) = child.stdin.take() {
            stdin.write_all(input.unwrap_or_default().as_bytes()).await?;
        }
        let output = child.wait_with_output().await?;
        if !output.status.success() {
            bail!("{}", String::from_utf8_lossy(&output.stderr).trim());
        }
        Ok(String::from_utf8(output.stdout)?)
    }

    fn home(&self) -> PathBuf {
        self.kubeconfig.with_file_name(OsStr::new("kubectl-home"))
    }
}
