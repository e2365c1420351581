//! `cargo xtask embedded`: the contract suite with its hundreds of kills, every scenario that the embedded runtime can run, and a layer of a million
//! entries.
//!
//! `./test` runs a part of it. The last result stands in docs/testing.md.

use std::path::Path;

use anyhow::Result;

use crate::command::cargo;
use crate::stages;

/// Runs all of it, and prints the time of each part.
pub(crate) fn run(root: &Path) -> Result<()> {
    let contract = ["test", "--workspace", "--test", "contract_on_embedded"];
    cargo(root, &[&contract[..], &["--", "--include-ignored"]].concat())?;
    let entries = ["test", "--workspace", "--lib", "--", "--ignored", "a_million_entries"];
    cargo(root, &entries)?;
    stages::run_on_embedded(root)
}
