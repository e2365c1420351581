//! The corpus of a target: an archive in the repository, a directory while it is fuzzed.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};

use super::engine::{Engine, EngineTarget};

/// What the archive of one target may have, in bytes: all archives together stay below 4 MB.
const MOST_BYTES: u64 = 160 << 10;
/// What an input takes in an archive besides its bytes, which are filled up to a multiple of this.
const BLOCK: u64 = 512;

/// Puts the archive of the repository, the seeds and the regressions into the working corpus.
pub(super) fn fill(
    root: &Path,
    engine: &Engine,
    target: &EngineTarget,
    inputs: &Path,
) -> Result<()> {
    let archive = archive(root, target);
    if archive.exists() {
        check(Command::new("tar").arg("-xf").arg(archive).arg("-C").arg(inputs))?;
    }
    check(engine.command(target).env("OARSMAN_FUZZ_SEEDS", inputs))?;
    let regressions = root.join("testing/fuzz/regressions").join(&target.name);
    for path in files(&regressions).unwrap_or_default() {
        let name = path.file_name().context("a regression without name")?;
        fs::copy(&path, inputs.join(name))?;
    }
    Ok(())
}

/// Minimises the working corpus into the archive of the repository; says how many inputs that has. Of what covers the same, the
/// smallest input stays; the largest are left out if all are too large together.
pub(super) fn store(
    root: &Path,
    engine: &Engine,
    target: &EngineTarget,
    inputs: &Path,
    place: &Path,
) -> Result<usize> {
    let minimal = place.join("minimal");
    if minimal.exists() {
        fs::remove_dir_all(&minimal)?;
    }
    fs::create_dir_all(&minimal)?;
    let mut merge = engine.command(target);
    merge.arg("-merge=1").arg(&minimal).arg(inputs);
    check(&mut merge)?;
    let kept = drop_largest(&minimal)?;
    let archive = archive(root, target);
    fs::create_dir_all(archive.parent().context("an archive has a directory")?)?;
    let mut tar = Command::new("tar");
    tar.args(["--sort=name", "--mtime=@0", "--owner=0", "--group=0", "--numeric-owner"]);
    tar.args(["--mode=0644", "-cf"]).arg(archive).arg("-C").arg(&minimal);
    let names = files(&minimal)?;
    tar.args(names.iter().filter_map(|path| path.file_name()));
    check(&mut tar)?;
    Ok(kept)
}

/// How many files a directory has.
pub(super) fn count_files(directory: &Path) -> Result<u64> {
    Ok(u64::try_from(files(directory)?.len())?)
}

fn archive(root: &Path, target: &EngineTarget) -> PathBuf {
    root.join("testing/fuzz/corpus").join(format!("{}.tar", target.name))
}

fn drop_largest(directory: &Path) -> Result<usize> {
    let sized = |path: PathBuf| Ok((fs::metadata(&path)?.len(), path));
    let mut files = files(directory)?.into_iter().map(sized).collect::<Result<Vec<_>>>()?;
    files.sort();
    let (mut bytes, mut kept) = (0, 0);
    for (size, path) in files {
        bytes += BLOCK + size.next_multiple_of(BLOCK);
        if bytes > MOST_BYTES {
            fs::remove_file(path)?;
        } else {
            kept += 1;
        }
    }
    Ok(kept)
}

fn files(directory: &Path) -> Result<Vec<PathBuf>> {
    let entries = fs::read_dir(directory).with_context(|| directory.display().to_string())?;
    entries.map(|entry| Ok(entry?.path())).collect()
}

fn check(command: &mut Command) -> Result<()> {
    let output = command.stdin(Stdio::null()).output().with_context(|| format!("{command:?}"))?;
    let told = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{command:?}: {}\n{told}", output.status);
    Ok(())
}
