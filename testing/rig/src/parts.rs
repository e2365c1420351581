//! The components of the rig, built into a cache: programs of containerd, runc, CNI, Kubernetes, and our own.
//!
//! Everything is built by name and version from public registries into a cache outside of the
//! clone, so that a fresh clone on a machine that had one before builds nothing.

pub mod conformance;
mod debian;
mod go;
pub mod kubernetes;
mod script;
mod tools;

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};

use crate::clock;

/// The paths of the components.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Parts {
    /// The directory of containerd, its runc shim and ctr.
    pub containerd: PathBuf,
    /// The directory of runc.
    pub runc: PathBuf,
    /// The directory of the CNI plugins.
    pub cni: PathBuf,
    /// The directory of our own static programs, `script`, `pause` and `shell`.
    pub script: PathBuf,
    /// A static busybox.
    pub busybox: PathBuf,
    /// The upstream description of CRI v1, to compare ours with.
    pub cri_proto: PathBuf,
    /// Programs of Debian's packages; not on a machine without apt.
    pub debian: Option<Debian>,
}

/// The paths of Debian's containerd 1.6.20, runc 1.1.5 and kubectl 1.20.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Debian {
    /// The directory of containerd, its runc shim and ctr.
    pub containerd: PathBuf,
    /// The directory of runc.
    pub runc: PathBuf,
    /// kubectl.
    pub kubectl: PathBuf,
}

/// Builds what is not in the cache, and prints to stderr what was built and how long it took.
///
/// # Errors
/// In one line that names what is missing on this machine and how to get it, or with the end of a failed build's output.
pub fn prepare() -> Result<Parts> {
    tools::check()?;
    let cache = PartsCache::open()?;
    Ok(Parts {
        containerd: go::CONTAINERD.install(&cache)?,
        runc: go::RUNC.install(&cache)?,
        cni: go::CNI.install(&cache)?,
        script: script::build(&cache)?,
        busybox: tools::BUSYBOX.into(),
        cri_proto: go::cri_proto(&cache)?,
        debian: debian::fetch(&cache)?,
    })
}

/// Builds metrics-server, unless it is in the cache.
///
/// # Errors
/// With the end of a failed build's output.
pub fn metrics_server() -> Result<PathBuf> {
    Ok(go::METRICS_SERVER.install(&PartsCache::open()?)?.join("metrics-server"))
}

/// Builds the program that tells how Go judges the subjects of client certificates, unless it is in the cache.
///
/// # Errors
/// With the end of a failed build's output.
pub fn client_names() -> Result<PathBuf> {
    go::client_names(&PartsCache::open()?)
}

/// Debian's promtool, which checks metrics, unless it is in the cache; none on a machine without apt.
///
/// # Errors
/// When its package cannot be downloaded or unpacked.
pub fn promtool() -> Result<Option<PathBuf>> {
    debian::promtool(&PartsCache::open()?)
}

/// The directory in which built parts are kept, each in a directory named after all that it
/// depends on.
struct PartsCache {
    directory: PathBuf,
}

impl PartsCache {
    fn open() -> Result<Self> {
        let root = match std::env::var_os("OARSMAN_CACHE") {
            Some(root) => PathBuf::from(root),
            None => home()?.join(".cache/oarsman"),
        };
        let directory = root.join("rig");
        fs::create_dir_all(&directory)
            .with_context(|| format!("cannot make the cache {}", directory.display()))?;
        Ok(Self { directory })
    }

    /// The directory of a part. If it does not exist, `build` fills a directory that is renamed to it: a part is whole or absent, whichever
    /// process is killed when.
    fn part(&self, name: &str, build: impl FnOnce(&Path) -> Result<()>) -> Result<PathBuf> {
        let directory = self.directory.join(name);
        if directory.exists() {
            return Ok(directory);
        }
        let _one_at_a_time = self.lock()?;
        if !directory.exists() {
            let start = clock::now();
            let unfinished = tempfile::tempdir_in(&self.directory)?;
            build(unfinished.path()).with_context(|| format!("cannot build {name}"))?;
            fs::rename(unfinished.keep(), &directory)?;
            print_progress(&format!("built {name} in {:.1} s", start.elapsed().as_secs_f64()));
        }
        Ok(directory)
    }

    /// Held until dropped, so that two runs do not build the same part at once.
    fn lock(&self) -> Result<File> {
        let file = File::create(self.directory.join("lock"))?;
        if file.try_lock().is_err() {
            print_progress("waiting for another run that builds parts");
            file.lock()?;
        }
        Ok(file)
    }
}

fn home() -> Result<PathBuf> {
    std::env::home_dir().context("no home directory: set HOME, or OARSMAN_CACHE to a directory")
}

/// The workspace this was compiled from.
fn workspace() -> &'static Path {
    let rig = Path::new(env!("CARGO_MANIFEST_DIR"));
    rig.ancestors().nth(2).unwrap_or(rig)
}

/// Prints progress to stderr.
pub(crate) fn print_progress(what: &str) {
    // Nothing can be done if stderr is closed.
    writeln!(std::io::stderr(), "rig: {what}").ok();
}

#[cfg(test)]
mod tests {
    use anyhow::bail;

    use super::*;

    #[test]
    fn a_part_is_built_once_and_only_if_it_can_be_built() {
        let directory = tempfile::tempdir().unwrap();
        let cache = PartsCache { directory: directory.path().to_owned() };
        let parts = || -> Vec<PathBuf> {
            let entries = fs::read_dir(directory.path()).unwrap();
            entries.map(|entry| entry.unwrap().path()).filter(|path| path.is_dir()).collect()
        };
        let failed = cache.part("x-1", |unfinished| {
            fs::write(unfinished.join("half"), "")?;
            bail!("no compiler")
        });
        assert_eq!(format!("{:#}", failed.unwrap_err()), "cannot build x-1: no compiler");
        assert!(parts().is_empty());
        let built = cache.part("x-1", |part| Ok(fs::write(part.join("program"), "")?)).unwrap();
        assert_eq!(parts(), std::slice::from_ref(&built));
        assert!(built.join("program").exists());
        assert_eq!(cache.part("x-1", |_| bail!("built again")).unwrap(), built);
    }
}
