//! The program's part of the first command: `oarsman run examples/hello.yaml`.

use std::ffi::OsString;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use tokio::process::Command;

use crate::command::cache;

const EXAMPLE: &str = "examples/hello.yaml";

/// A command, and the root directory that it makes.
pub(super) struct FirstCommand {
    words: Vec<OsString>,
    directory: PathBuf,
    root: PathBuf,
}

impl FirstCommand {
    /// A program of this machine, with a root directory beside the other files of tests.
    pub(super) fn on_this_machine(workspace: &Path, program: &Path) -> Result<Self> {
        let program = program.canonicalize().context("there is no such program")?;
        let root = cache()?.join("first-run/agent");
        let words = vec![
            program.into(),
            "run".into(),
            workspace.join(EXAMPLE).into(),
            "--root-dir".into(),
            root.clone().into(),
        ];
        Ok(Self { words, directory: workspace.to_owned(), root })
    }

    /// The program that was built in another root, there.
    pub(super) fn within(machine: &Path, source: &str) -> Self {
        let script = format!("cd {source} && exec target/release/oarsman run {EXAMPLE}");
        let words = ["chroot".into(), machine.into(), "sh".into(), "-c".into(), script.into()];
        let root = machine.join("var/lib/oarsman");
        Self { words: words.into(), directory: "/".into(), root }
    }

    /// The command, ready to be started.
    pub(super) fn command(&self) -> Command {
        let mut command = Command::new(&self.words[0]);
        command.args(&self.words[1..]).current_dir(&self.directory).kill_on_drop(true);
        command
    }

    /// Each time is the first one.
    pub(super) fn remove_root(&self) -> Result<()> {
        match fs::remove_dir_all(&self.root) {
            Err(error) if error.kind() != ErrorKind::NotFound => {
                Err(error).with_context(|| format!("cannot remove {}", self.root.display()))
            }
            _ => Ok(()),
        }
    }
}
