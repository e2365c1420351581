//! Runs programs: prints the command line, and names it in errors.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};

/// Runs `cargo` with these arguments in the workspace.
pub(crate) fn cargo<S: AsRef<OsStr>>(root: &Path, arguments: &[S]) -> Result<()> {
    cargo_with(root, arguments, &[])
}

/// Runs `cargo` with these arguments and environment variables in the workspace.
pub(crate) fn cargo_with<S: AsRef<OsStr>>(
    root: &Path,
    arguments: &[S],
    environment: &[(&str, &OsStr)],
) -> Result<()> {
    let mut command = oarsman_rig::cargo();
    command.current_dir(root).args(arguments).envs(environment.iter().copied());
    run(&mut command)
}

/// Prints the command, runs it, and fails when it does.
pub(crate) fn run(command: &mut Command) -> Result<()> {
    println!("$ {}", shown(command));
    let status = command.status().with_context(|| format!("cannot run {}", shown(command)))?;
    if !status.success() {
        bail!("`{}` ended with {status}", shown(command));
    }
    Ok(())
}

/// The first line that a command prints.
pub(crate) fn first_line(command: &mut Command) -> Result<String> {
    let output = command.output().with_context(|| format!("cannot run {}", shown(command)))?;
    ensure!(output.status.success(), "`{}` ended with {}", shown(command), output.status);
    let text = String::from_utf8(output.stdout)?;
    Ok(text.lines().next().unwrap_or_default().trim().to_owned())
}

/// The directory of builds and tools, outside every clone.
pub(crate) fn cache() -> Result<PathBuf> {
    if let Some(cache) = std::env::var_os("OARSMAN_CACHE") {
        return Ok(PathBuf::from(cache));
    }
    let home = std::env::var_os("HOME").context("neither OARSMAN_CACHE nor HOME is set")?;
    Ok(PathBuf::from(home).join(".cache/oarsman"))
}

fn shown(command: &Command) -> String {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    words.map(|word| word.to_string_lossy().into_owned()).collect::<Vec<_>>().join(" ")
}
