//! `cargo xtask tidy`: checks of the source tree, so that no reviewer has to make them.

mod clocks;
mod layers;
mod manifests;
mod messages;
mod modules;
mod paths;
mod purity;
mod rules;
mod seams;
mod sources;
mod symbols;
mod type_names;

#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
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
    complaints.extend(symbols::check(root)?);
    let (mut functions, mut seams) = (BTreeSet::new(), seams::SeamTraits::default());
    let operating = std::fs::read_to_string(root.join(messages::PAGE))?;
    let mut messages = messages::Messages::of_page(&operating);
    let mut type_names = type_names::TypeNames::default();
    for package in metadata.workspace_packages() {
        for file in sources::rust_files(package)? {
            let source = std::fs::read_to_string(&file)?;
            functions.extend(rules::functions(&source).map(ToOwned::to_owned));
            complaints.extend(sources::check(root, &file)?);
            complaints.extend(purity::check_source(root, package, &file)?);
            complaints.extend(modules::check(root, package, &file)?);
            complaints.extend(clocks::check(root, package, &file)?);
            messages.read_file(root, package, &file)?;
            type_names.read_file(root, package, &file)?;
            if package.name.as_str() == seams::AGENT {
                let shown = file.strip_prefix(root).unwrap_or(&file);
                seams.read(&shown.display().to_string(), &source)?;
            }
        }
    }
    complaints.extend(seams.complaints());
    complaints.extend(messages.complaints());
    complaints.extend(type_names.complaints());
    let rules = std::fs::read_to_string(root.join("docs/rules.md"))?;
    complaints.extend(rules::complaints(&rules::named(&rules), &functions));
    complaints.extend(rules::missing_bullets(&rules));
    let testing = std::fs::read_to_string(root.join("docs/testing.md"))?;
    complaints.extend(crate::stages::budget_complaints(&testing));
    if complaints.is_empty() {
        println!("tidy: {} crates are in order", metadata.workspace_packages().len());
        return Ok(());
    }
    bail!("{}\ntidy: {} complaints", complaints.join("\n"), complaints.len())
}
