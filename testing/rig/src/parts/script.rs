//! Builds our own programs for containers, statically linked: their images hold nothing else.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};
use sha2::{Digest, Sha256};

use super::tools::output;
use super::{PartsCache, workspace};
use crate::cargo;

const PROGRAMS: [&str; 3] = ["script", "pause", "shell"];
/// Replaces the flags of the caller's own build.
const FLAGS: &str = "-C target-feature=+crt-static";

/// The directory of the programs.
pub(super) fn build(cache: &PartsCache) -> Result<PathBuf> {
    let compiler = output(Command::new("rustc").arg("-vV").current_dir(workspace()))?;
    let part = format!("script-{}", fingerprint(&compiler)?);
    Ok(cache.part(&part, |directory| compile(cache, &compiler, directory))?.join("bin"))
}

/// Changes with the list of programs, their sources and profile, and the compiler.
fn fingerprint(compiler: &str) -> Result<String> {
    let mut hash = Sha256::new_with_prefix(compiler);
    hash.update(FLAGS);
    hash.update(PROGRAMS.join(" "));
    hash.update(profile(&fs::read_to_string(workspace().join("Cargo.toml"))?));
    let script = workspace().join("testing/script");
    let manifest = script.join("Cargo.toml");
    let mut files = BTreeMap::from([(manifest.clone(), fs::read(manifest)?)]);
    read_tree(&script.join("src"), &mut files)?;
    for (path, content) in files {
        // Relative, so that another clone of the same sources finds what this one has built.
        let name = path.strip_prefix(&script)?.display();
        hash.update(format!("{name} {}\n", content.len()));
        hash.update(content);
    }
    Ok(hash.finalize().iter().take(8).map(|byte| format!("{byte:02x}")).collect())
}

/// The part of the workspace's manifest with the profile of `oarsman-script`; the rest changes often.
fn profile(manifest: &str) -> &str {
    let rest = manifest.split_once("[profile.script]").map_or("", |(_, rest)| rest);
    rest.split_once("\n[").map_or(rest, |(profile, _)| profile)
}

fn read_tree(directory: &Path, files: &mut BTreeMap<PathBuf, Vec<u8>>) -> Result<()> {
    for entry in fs::read_dir(directory)? {
        let path = entry?.path();
        if path.is_dir() {
            read_tree(&path, files)?;
        } else {
            files.insert(path.clone(), fs::read(path)?);
        }
    }
    Ok(())
}

fn compile(cache: &PartsCache, compiler: &str, directory: &Path) -> Result<()> {
    let host = compiler.lines().find_map(|line| line.strip_prefix("host: "));
    let host = host.context("rustc did not name its host")?;
    let target = cache.directory.join("script-target");
    let flags = format!("CARGO_TARGET_{}_RUSTFLAGS", host.to_uppercase().replace('-', "_"));
    let mut command = cargo();
    command
        .current_dir(workspace())
        .args(["build", "--package", "oarsman-script", "--bins", "--profile", "script"])
        .args(["--target", host])
        .env("CARGO_TARGET_DIR", &target)
        .env(flags, FLAGS)
        .env_remove("RUSTFLAGS")
        .env_remove("CARGO_ENCODED_RUSTFLAGS");
    output(&mut command)?;
    fs::create_dir(directory.join("bin"))?;
    for program in PROGRAMS {
        let built = target.join(host).join("script").join(program);
        fs::copy(built, directory.join("bin").join(program))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::profile;

    #[test]
    fn of_the_workspace_manifest_only_the_script_profile_counts() {
        let manifest = "[profile.dev]\na = 1\n\n[profile.script]\nb = 2\n\n[profile.sim]\nc = 3\n";
        assert_eq!(profile(manifest), "\nb = 2\n");
        assert_eq!(profile("[profile.script]\nb = 2\n"), "\nb = 2\n");
        assert_eq!(profile("[profile.dev]\n"), "");
    }
}
