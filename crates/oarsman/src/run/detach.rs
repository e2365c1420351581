//! `run --detach`: starts the same program in the background, and waits until its agent answers with its pods.

use std::ffi::OsString;
use std::fs::{self, File, Permissions};
use std::io;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::Path;
use std::process::{Child, Command, ExitCode, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, bail};

use crate::local_api::LocalClient;
use crate::lock::{holder_of_root, prepare_root};

/// The flag by which the started program knows that it runs in the background.
pub(super) const BACKGROUND: &str = "--in-background";
/// The file for stdout and stderr of the background program.
const LOG: &str = "detached.log";
/// How often the started agent is asked for its report.
const POLL_INTERVAL: Duration = Duration::from_millis(50);
/// A remote runtime may be slow to answer.
const MAX_WAIT: Duration = Duration::from_secs(60);
/// How many lines of that file an error carries.
const LOG_TAIL: usize = 20;

/// Starts the program in the background, waits until it answers, and prints how to reach it.
#[expect(clippy::print_stdout, reason = "a person at a terminal asked for this")]
pub(super) async fn detach(root: &Path) -> Result<ExitCode> {
    // An agent that holds the root directory already would answer in place of the started one.
    if let Some(holder) = holder_of_root(root) {
        let root = root.display();
        bail!(
            "pods of {root} run already ({holder}): stop them with `oarsman stop --all --root-dir {root}`, or give these another --root-dir"
        );
    }
    let process = wait_until_started(root).await?;
    let usual = root == Path::new(super::ROOT);
    let whom = if usual { String::new() } else { format!(" --root-dir {}", root.display()) };
    println!("in the background, process {process}");
    println!("  see:   oarsman ps{whom}");
    println!("  stop:  oarsman stop --all{whom}");
    Ok(ExitCode::SUCCESS)
}

/// The pid in this namespace: the agent may be in a pid namespace in which it has another.
async fn wait_until_started(root: &Path) -> Result<u32> {
    let log = root.join(LOG);
    let mut child = start(root, &log)?;
    let answer = async {
        loop {
            if let Some(status) = child.try_wait()? {
                bail!("it ended with {status} before it could be asked:\n{}", tail(&log));
            }
            match LocalClient::new(root).report().await {
                // The agent answers before it knows its pods.
                Ok(report) if !report.pods.is_empty() => return Ok(child.id()),
                Ok(_) | Err(_) => tokio::time::sleep(POLL_INTERVAL).await,
            }
        }
    };
    let waited = tokio::time::timeout(MAX_WAIT, answer).await;
    waited.with_context(|| format!("no answer within {MAX_WAIT:?}: see {}", log.display()))?
}

fn start(root: &Path, log: &Path) -> Result<Child> {
    prepare_root(root)?;
    let said = create_log(log).with_context(|| format!("cannot write {}", log.display()))?;
    let program = std::env::current_exe().context("cannot tell where this program lies")?;
    let arguments: Vec<OsString> = std::env::args_os().skip(1).collect();
    let mut command = Command::new(&program);
    command.args(arguments).arg(BACKGROUND).stdin(Stdio::null());
    command.stdout(said.try_clone()?).stderr(said);
    command.spawn().with_context(|| format!("cannot start {}", program.display()))
}

/// What pods print may be in it, so it is for root only, also one that an older version made.
fn create_log(log: &Path) -> io::Result<File> {
    let file = File::options().write(true).create(true).truncate(true).mode(0o600).open(log)?;
    file.set_permissions(Permissions::from_mode(0o600))?;
    Ok(file)
}

/// A terminal that is closed must not end what was started from it.
pub(super) fn leave_terminal() -> Result<()> {
    rustix::process::setsid().map(drop).context("cannot leave the terminal")
}

fn tail(log: &Path) -> String {
    let said = fs::read(log).unwrap_or_default();
    let said = String::from_utf8_lossy(&said);
    let lines: Vec<&str> = said.lines().collect();
    lines[lines.len().saturating_sub(LOG_TAIL)..].join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lock::FileLock;

    #[test]
    fn the_log_is_for_root_only() {
        let root = tempfile::tempdir().unwrap();
        let log = root.path().join(LOG);
        fs::write(&log, "of an older version").unwrap();
        fs::set_permissions(&log, Permissions::from_mode(0o644)).unwrap();
        let file = create_log(&log).unwrap();
        assert_eq!(file.metadata().unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(fs::read(&log).unwrap(), b"");
    }

    #[tokio::test]
    async fn an_agent_that_runs_already_is_not_taken_for_the_started_one() {
        let root = tempfile::tempdir().unwrap();
        let _there_already = FileLock::of_root(root.path()).unwrap();
        let refused = detach(root.path()).await.unwrap_err().to_string();
        assert!(refused.contains("run already (process "), "{refused}");
        assert!(refused.contains("oarsman stop --all --root-dir "), "{refused}");
        assert!(!root.path().join(LOG).exists(), "the log of the other one is not its own");
    }
}
