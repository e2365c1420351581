//! Checks that every crate's manifest takes version, edition, licence and lints from the workspace.

use anyhow::{Context, Result};
use cargo_metadata::Metadata;

const WANTED: &[&str] = &[
    "version.workspace = true",
    "edition.workspace = true",
    "license.workspace = true",
    "publish.workspace = true",
    "[lints]\nworkspace = true",
];

/// Complaints about manifests that have values of their own.
pub(super) fn check(metadata: &Metadata) -> Result<Vec<String>> {
    let mut complaints = Vec::new();
    for package in metadata.workspace_packages() {
        let path = &package.manifest_path;
        let text = std::fs::read_to_string(path).with_context(|| format!("reading {path}"))?;
        for line in WANTED.iter().filter(|line| !text.contains(**line)) {
            complaints.push(format!("{path}: lacks `{}`", line.replace('\n', " ")));
        }
    }
    Ok(complaints)
}
