//! Builds the program of another commit for release, and keeps it in the cache.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};

use crate::command::{cache, cargo, first_line};
use crate::kubelet_kind::build_directory;

/// A commit of this repository.
#[derive(Debug, Clone)]
pub(crate) struct Commit {
    id: String,
}

impl Commit {
    /// The commit that a name means, such as `main` or the first digits of its id.
    pub(crate) fn find(root: &Path, name: &str) -> Result<Self> {
        let mut git = Command::new("git");
        git.current_dir(root).args(["rev-parse", "--verify", &format!("{name}^{{commit}}")]);
        Ok(Self { id: first_line(&mut git).with_context(|| format!("{name} is no commit here"))? })
    }

    /// The first digits of its id.
    pub(crate) fn short(&self) -> &str {
        self.id.get(..12).unwrap_or(&self.id)
    }

    /// The path of its program once it is built.
    pub(crate) fn program(&self) -> Result<PathBuf> {
        Ok(self.directory()?.join("oarsman"))
    }

    /// Builds its program from a copy of its sources, unless that was done before. Third-party crates are shared with our own build.
    pub(crate) fn build(&self, root: &Path) -> Result<()> {
        let program = self.program()?;
        if program.exists() {
            return Ok(());
        }
        let sources = self.directory()?.join("sources");
        self.extract(root, &sources)?;
        let target = build_directory()?;
        let shown = target.display().to_string();
        cargo(&sources, &["build", "--release", "--package", "oarsman", "--target-dir", &shown])?;
        let unfinished = program.with_extension("unfinished");
        fs::copy(target.join("release/oarsman"), &unfinished)?;
        Ok(fs::rename(unfinished, program)?)
    }

    fn directory(&self) -> Result<PathBuf> {
        Ok(cache()?.join("commits").join(&self.id))
    }

    fn extract(&self, root: &Path, to: &Path) -> Result<()> {
        fs::create_dir_all(to)?;
        let mut git = Command::new("git");
        git.current_dir(root).args(["archive", &self.id]).stdout(Stdio::piped());
        let mut git = git.spawn().context("cannot run git")?;
        let archive = git.stdout.take().context("git has no output")?;
        let tar = Command::new("tar").arg("-x").current_dir(to).stdin(archive).status()?;
        ensure!(git.wait()?.success() && tar.success(), "cannot extract commit {}", self.id);
        Ok(())
    }
}
