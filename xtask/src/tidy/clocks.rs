//! Checks that the machine's clocks are read in one file only: everything else gets a `Clock` or a time, so that it can be simulated.

use std::path::Path;

use anyhow::{Context, Result};
use cargo_metadata::Package;

use super::paths;

/// The files that may read a clock of the machine, each with the reason.
const READERS: &[(&str, &str)] = &[("crates/clock/src/lib.rs", "the system clock is here")];

/// Types whose `now` reads a clock of the machine, however they are imported.
const CLOCKS: &[&str] = &["Timestamp", "Zoned", "SystemTime", "Instant"];

/// Its `now` follows the time of the tokio runtime, which a simulation pauses.
const PAUSED: &str = "tokio::time::Instant::now";

/// Complaints about one source file of a product crate; tests may read clocks.
pub(super) fn check(root: &Path, package: &Package, path: &Path) -> Result<Vec<String>> {
    let directory = package.manifest_path.parent().context("a manifest has a directory")?;
    let is_product = directory.strip_prefix(root).is_ok_and(|d| d.starts_with("crates"));
    let (Ok(file), true) = (path.strip_prefix(directory), is_product) else {
        return Ok(Vec::new());
    };
    let shown = path.strip_prefix(root).unwrap_or(path).display().to_string();
    if paths::is_test(file) || READERS.iter().any(|(reader, _)| *reader == shown) {
        return Ok(Vec::new());
    }
    let text = std::fs::read_to_string(path).with_context(|| path.display().to_string())?;
    Ok(complaints(&shown, file, &text)?)
}

/// Complaints about the text of one file, which lies at `file` in its crate.
pub(super) fn complaints(shown: &str, file: &Path, text: &str) -> syn::Result<Vec<String>> {
    let reads = paths::of(file, text)?.into_iter().filter(|named| is_read(&named.path));
    let said = reads.map(|named| {
        format!(
            "{shown}:{}: `{}` reads the machine's clock; take a `Clock` or a time as an argument, \
             or name the file with a reason in xtask/src/tidy/clocks.rs",
            named.line, named.path
        )
    });
    Ok(said.collect())
}

fn is_read(path: &str) -> bool {
    let mut names = path.rsplit("::");
    match names.next() {
        Some("now") => path != PAUSED && names.next().is_some_and(|of| CLOCKS.contains(&of)),
        Some("clock_gettime") => true,
        _ => false,
    }
}
