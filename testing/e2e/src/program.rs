//! Builds and finds the program under test.

use std::env;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};

const NAME: &str = "oarsman";
/// The environment variable with a program that is built already, to be tested instead.
const PROGRAM_VARIABLE: &str = "OARSMAN_E2E_PROGRAM";

/// The path of the program: in the same build directory, and of the same profile, as the test that asks. Or the one that the environment names.
///
/// # Errors
/// When this is not a test that cargo has built.
pub fn path() -> Result<PathBuf> {
    if let Some(given) = env::var_os(PROGRAM_VARIABLE) {
        return Ok(given.into());
    }
    Ok(own_directory(profile_directory(&env::current_exe()?)?).join(NAME))
}

/// Clones may share a build directory, in which the last one to build has its program at the top.
fn own_directory(profile: &Path) -> PathBuf {
    profile.join(format!("e2e{}", workspace().display().to_string().replace('/', "-")))
}

/// Builds it, unless one is given. To be called where there is a network, for crates that cargo does not have yet.
///
/// # Errors
/// When it cannot be built; cargo has printed why on stderr.
pub fn build() -> Result<()> {
    if env::var_os(PROGRAM_VARIABLE).is_some() {
        return Ok(());
    }
    let test = env::current_exe()?;
    let directory = profile_directory(&test)?;
    let target = directory.parent().context("a profile is in a build directory")?;
    let profile = directory.file_name().context("a profile has a name")?.to_string_lossy();
    let profile = if profile == "debug" { "dev".into() } else { profile };
    let mut cargo = oarsman_rig::cargo();
    // With the whole workspace selected, its features are those that the tests were built with.
    cargo.args(["build", "--quiet", "--workspace", "--bin", NAME, "--profile", &profile]);
    cargo.arg("--target-dir").arg(target).current_dir(workspace());
    let status = cargo.status().context("cannot run cargo")?;
    ensure!(status.success(), "cargo could not build {NAME}");
    put_aside(directory)
}

/// In one step, because another test may be starting it just now.
fn put_aside(profile: &Path) -> Result<()> {
    let own = own_directory(profile);
    fs::create_dir_all(&own)?;
    let unfinished = own.join(std::process::id().to_string());
    fs::hard_link(profile.join(NAME), &unfinished)?;
    fs::rename(&unfinished, own.join(NAME))?;
    // Of two names of the same file the first stays when it is renamed to the second.
    fs::remove_file(unfinished).or_else(|error| match error.kind() {
        ErrorKind::NotFound => Ok(()),
        _ => Err(error.into()),
    })
}

/// cargo puts tests into `TARGET/PROFILE/deps`.
fn profile_directory(test: &Path) -> Result<&Path> {
    let deps = test.parent().filter(|directory| directory.ends_with("deps"));
    let directory = deps.and_then(Path::parent);
    directory.with_context(|| format!("{} was not built by cargo test", test.display()))
}

/// The root of this source tree.
pub fn workspace() -> &'static Path {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.ancestors().nth(2).unwrap_or(here)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_program_lies_beside_the_directory_of_the_tests() {
        let found = profile_directory(Path::new("/t/debug/deps/x-1")).unwrap();
        assert_eq!(found, Path::new("/t/debug"));
        assert!(profile_directory(Path::new("/t/debug/x")).is_err());
        assert!(path().unwrap().ends_with("oarsman"));
    }
}
