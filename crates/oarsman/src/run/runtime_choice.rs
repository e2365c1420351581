//! Chooses the runtime of `oarsman run`: the named one, one that listens, or the rig's containerd in a source tree.

use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use anyhow::{Context, Result, bail};

use super::source_tree;
use crate::find_runtime::{DEFAULT_ENDPOINTS, find_default, listens};

/// The script of the source tree that runs a command beside the rig's containerd.
const ON_RIG: &str = "xtask/on-rig";
/// The environment variable with directories that the namespaces of the rig must not hide.
const SHARED: &str = "OARSMAN_RIG_SHARED";

/// The runtime that pods will run on.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum RuntimeChoice {
    /// A runtime that listens.
    Runtime(String),
    /// No runtime listens, but the source tree can set one up.
    OnRig(PathBuf),
}

/// The runtime that is named, or the first that listens at a default socket.
pub(super) fn runtime(named: Option<&str>) -> Result<RuntimeChoice> {
    if let Some(named) = named {
        return answers(named).map(|()| RuntimeChoice::Runtime(named.to_owned()));
    }
    if let Some(there) = find_default() {
        return Ok(RuntimeChoice::Runtime(there));
    }
    let none = || {
        format!(
            "no container runtime was found (looked at {}): install containerd and start it, or name the socket of yours with --runtime",
            DEFAULT_ENDPOINTS.join(", ")
        )
    };
    match source_tree::find() {
        Some(tree) => {
            source_tree::trusted_file(&tree, ON_RIG).map(RuntimeChoice::OnRig).with_context(none)
        }
        None => bail!(none()),
    }
}

/// Whether a process listens there.
fn answers(endpoint: &str) -> Result<()> {
    listens(endpoint).with_context(|| {
        let socket = endpoint.strip_prefix("unix://").unwrap_or(endpoint);
        format!("no runtime listens at {socket}: start it, or name another with --runtime")
    })
}

/// Becomes the script, which sets up a runtime and starts this program anew beside it. Comes back only if it cannot.
pub(super) fn exec_on_rig(script: &Path, root: &Path) -> Result<ExitCode> {
    print_stderr(
        "no container runtime was found: setting up the containerd of this source tree (minutes the first time)",
    );
    let program = std::env::current_exe().context("cannot tell where this program lies")?;
    let arguments: Vec<OsString> = std::env::args_os().skip(1).collect();
    let error =
        Command::new(script).env(SHARED, root).arg("--").arg(program).args(arguments).exec();
    Err(error).with_context(|| format!("cannot run {}", script.display()))
}

#[expect(clippy::print_stderr, reason = "a person at a terminal should know")]
fn print_stderr(what: &str) {
    eprintln!("oarsman: {what}");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_runtime_that_is_named_must_be_there() {
        let directory = tempfile::tempdir().unwrap();
        let socket = directory.path().join("r.sock").display().to_string();
        let named = format!("unix://{socket}");
        let refused = format!("{:#}", runtime(Some(&named)).unwrap_err());
        assert!(
            refused.starts_with(&format!("no runtime listens at {socket}: start it")),
            "{refused}"
        );
        let _listener = std::os::unix::net::UnixListener::bind(&socket).unwrap();
        assert_eq!(runtime(Some(&named)).unwrap(), RuntimeChoice::Runtime(named.clone()));
        assert_eq!(runtime(Some(&socket)).unwrap(), RuntimeChoice::Runtime(socket));
    }
}
