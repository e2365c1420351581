//! Known vulnerabilities of the crates we use, where this machine has the database of them.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

use anyhow::{Context, Result};

use crate::command::{cache, run};

/// Names the directory that `cargo deny fetch` keeps databases in.
const VARIABLE: &str = "OARSMAN_ADVISORY_DB";
/// Where it keeps them, below cargo's home, when it is not told.
const USUAL: [&str; 2] = ["advisory-dbs", "advisory-db"];

/// Checks the advisories, or says that it did not: the database is a git repository that a machine without internet cannot reach.
pub(super) fn check(root: &Path, cargo_deny: &Path) -> Result<()> {
    let Some(database) = database() else {
        println!(
            "advisories were NOT checked: no database; run `cargo deny fetch` where there is internet, or name its directory in {VARIABLE}"
        );
        return Ok(());
    };
    println!("advisories are checked with the database in {}", database.display());
    let configuration = configuration(root, &database)?;
    let mut command = Command::new(cargo_deny);
    command.current_dir(root).arg("check").arg("--config").arg(configuration);
    run(command.args(["--disable-fetch", "advisories"]))
}

fn database() -> Option<PathBuf> {
    let named = env::var_os(VARIABLE).map(PathBuf::from);
    let home = env::var_os("CARGO_HOME").map(PathBuf::from);
    let home = home.or_else(|| Some(PathBuf::from(env::var_os("HOME")?).join(".cargo")))?;
    named.into_iter().chain(USUAL.map(|name| home.join(name))).find(|path| path.is_dir())
}

/// The usual configuration, with the place of the database.
fn configuration(root: &Path, database: &Path) -> Result<PathBuf> {
    let text = fs::read_to_string(root.join("deny.toml")).context("cannot read deny.toml")?;
    let path = cache()?.join("deny-advisories.toml");
    fs::write(
        &path,
        format!("{text}\n[advisories]\ndb-path = {:?}\n", database.display().to_string()),
    )
    .with_context(|| format!("cannot write {}", path.display()))?;
    Ok(path)
}
