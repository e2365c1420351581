//! What a program can check about the tree, so that no reviewer has to.

mod layers;
mod manifests;
mod purity;
mod sources;

#[cfg(test)]
mod tests;

use std::path::Path;

use anyhow::{Result, bail};

/// Runs every check and reports every complaint, not just the first.
pub(crate) fn run(root: &Path) -> Result<()> {
    let metadata = cargo_metadata::MetadataCommand::new()
        .manifest_path(root.join("Cargo.toml"))
        .no_deps()
        .exec()?;
    let mut complaints = layers::check(&metadata);
    complaints.extend(purity::check_dependencies(&metadata));
    complaints.extend(manifests::check(&metadata)?);
    for package in metadata.workspace_packages() {
        for file in sources::rust_files(package)? {
            complaints.extend(sources::check(root, &file)?);
            complaints.extend(purity::check_source(root, package, &file)?);
        }
    }
    if complaints.is_empty() {
        println!("tidy: {} crates are in order", metadata.workspace_packages().len());
        return Ok(());
    }
    bail!("{}\ntidy: {} complaints", complaints.join("\n"), complaints.len())
}
