//! Checks of every source file: a module doc, a limited length, no unsafe code outside `host`.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use cargo_metadata::Package;

/// A longer file should be split.
const LONGEST: usize = 600;

/// Every Rust file of a crate.
pub(super) fn rust_files(package: &Package) -> Result<Vec<PathBuf>> {
    let directory = package.manifest_path.parent().context("a manifest has a directory")?;
    let mut files = Vec::new();
    collect(directory.as_std_path(), &mut files)?;
    files.sort();
    Ok(files)
}

fn collect(directory: &Path, files: &mut Vec<PathBuf>) -> Result<()> {
    let entries = std::fs::read_dir(directory).with_context(|| directory.display().to_string())?;
    for entry in entries {
        let path = entry?.path();
        if path.is_dir() && !path.ends_with("target") {
            collect(&path, files)?;
        } else if path.extension().is_some_and(|e| e == "rs") {
            files.push(path);
        }
    }
    Ok(())
}

/// Complaints about one file.
pub(super) fn check(root: &Path, path: &Path) -> Result<Vec<String>> {
    let text = std::fs::read_to_string(path).with_context(|| path.display().to_string())?;
    let name = path.strip_prefix(root).unwrap_or(path);
    Ok(complaints(name, &text))
}

/// Complaints about one file's text.
pub(super) fn complaints(name: &Path, text: &str) -> Vec<String> {
    let mut complaints = Vec::new();
    let shown = name.display();
    if !text.starts_with("//!") {
        complaints.push(format!("{shown}: starts with no `//!` line that says what it is for"));
    }
    let lines = text.lines().count();
    if lines > LONGEST {
        complaints.push(format!("{shown}: {lines} lines; look for the second thing it is about"));
    }
    let marker = concat!("(unsafe", "_code");
    if text.contains(marker) && !name.starts_with("crates/host") {
        complaints.push(format!("{shown}: unsafe code belongs into crates/host"));
    }
    complaints
}
