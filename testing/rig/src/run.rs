//! A run: one start of a test binary, its directory, and the resources that have its name.
//!
//! The directory is `/var/tmp/oarsman-rig.NAME`, and cgroups of the run begin with `/oarsman-rig-NAME`. The process outside of the namespaces
//! holds a lock on the directory as long as it runs, so that what a killed run has left can be told from what a running one needs.

use std::fs::{self, File, Permissions};
use std::io::ErrorKind;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use oarsman_host::{cgroups, mounts};

use crate::clock::wait_until;
use crate::parts::Parts;

/// The environment variable with the directory of the run.
pub(crate) const VARIABLE: &str = "OARSMAN_RIG_RUN";
/// Short, because paths of sockets may have no more than about a hundred characters.
const PARENT: &str = "/var/tmp";
const PREFIX: &str = "oarsman-rig.";
const GROUP_PREFIX: &str = "oarsman-rig-";
/// Other users may pass through, else processes in user namespaces cannot reach their files.
const MODE: u32 = 0o711;
/// How long a cgroup may be busy.
const MAX_WAIT: Duration = Duration::from_secs(5);

/// A run, as its tests use it.
#[derive(Debug, Clone)]
pub(crate) struct RigRun {
    directory: PathBuf,
}

/// A run, as the process that started it holds it.
pub(crate) struct OwnedRun {
    run: RigRun,
    _lock: File,
}

impl RigRun {
    /// The run that this process is part of.
    pub(crate) fn current() -> Result<Self> {
        let directory = std::env::var_os(VARIABLE)
            .context("not in a rig: give the tests to oarsman_rig::namespace::run")?;
        Ok(Self { directory: directory.into() })
    }

    pub(crate) fn directory(&self) -> &Path {
        &self.directory
    }

    /// The beginning of the names of all control groups of this run, without a slash.
    pub(crate) fn group_prefix(&self) -> String {
        let name = self.directory.extension().unwrap_or_default();
        format!("{GROUP_PREFIX}{}", name.to_string_lossy())
    }

    /// The components that were built when the run began.
    pub(crate) fn parts(&self) -> Result<Parts> {
        Ok(serde_json::from_slice(&fs::read(self.directory.join("parts.json"))?)?)
    }

    /// Removes the cgroups and the directory. To be called where nothing is mounted there.
    fn remove(&self) -> Result<()> {
        for (hierarchy, group) in groups_with_prefix(&self.group_prefix())? {
            remove_group(&hierarchy, &group)?;
        }
        fs::remove_dir_all(&self.directory)
            .with_context(|| format!("cannot remove {}", self.directory.display()))
    }
}

impl OwnedRun {
    /// Begins a run, and removes what killed runs have left.
    pub(crate) fn begin(parts: &Parts) -> Result<Self> {
        ensure!(rustix::process::geteuid().is_root(), "the rig needs root: run it with sudo");
        let _one_at_a_time = lock_all()?;
        sweep()?;
        let directory = tempfile::Builder::new().prefix(PREFIX).tempdir_in(PARENT)?.keep();
        make_passable(&directory)?;
        fs::write(directory.join("parts.json"), serde_json::to_vec(parts)?)?;
        let lock = File::create(directory.join("lock"))?;
        lock.lock()?;
        Ok(Self { run: RigRun { directory }, _lock: lock })
    }

    pub(crate) fn run(&self) -> &RigRun {
        &self.run
    }

    /// Removes all resources that have the run's name.
    pub(crate) fn end(self) -> Result<()> {
        let _one_at_a_time = lock_all()?;
        self.run.remove()
    }
}

/// Makes a directory that other users may pass through.
pub(crate) fn make_directory(path: &Path) -> Result<()> {
    fs::create_dir(path).with_context(|| format!("cannot make {}", path.display()))?;
    make_passable(path)
}

fn make_passable(path: &Path) -> Result<()> {
    Ok(fs::set_permissions(path, Permissions::from_mode(MODE))?)
}

/// The groups directly below the root of any hierarchy whose names begin with `prefix`.
fn groups_with_prefix(prefix: &str) -> Result<Vec<(cgroups::Hierarchy, PathBuf)>> {
    let mut found = Vec::new();
    for hierarchy in cgroups::hierarchies(&mounts::current()?) {
        for entry in fs::read_dir(&hierarchy.root)? {
            let name = entry?.file_name();
            if name.to_string_lossy().starts_with(prefix) {
                found.push((hierarchy.clone(), Path::new("/").join(name)));
            }
        }
    }
    Ok(found)
}

/// Removes a group and those below it, which are busy for a moment after their last process has died.
pub(crate) fn remove_group(hierarchy: &cgroups::Hierarchy, group: &Path) -> Result<()> {
    wait_until(MAX_WAIT, || hierarchy.remove(group).is_ok());
    Ok(hierarchy.remove(group)?)
}

/// Whether a group, given by its path, belongs to some run of a rig.
pub(crate) fn is_group_of_a_rig(group: &Path) -> bool {
    group.to_string_lossy().starts_with(&format!("/{GROUP_PREFIX}"))
}

/// Keeps one run from taking another's directory for an abandoned one while that is being made.
fn lock_all() -> Result<File> {
    let lock = File::create(Path::new(PARENT).join(format!("{PREFIX}lock")))?;
    lock.lock()?;
    Ok(lock)
}

/// Removes runs whose lock is not held any more.
fn sweep() -> Result<()> {
    for entry in fs::read_dir(PARENT)? {
        let entry = entry?;
        let is_run = entry.file_name().to_string_lossy().starts_with(PREFIX);
        if is_run && entry.file_type()?.is_dir() && !is_held(&entry.path())? {
            // Its last process may not be quite dead: then the next run finds it again.
            RigRun { directory: entry.path() }.remove().ok();
        }
    }
    Ok(())
}

fn is_held(directory: &Path) -> Result<bool> {
    match File::open(directory.join("lock")) {
        Ok(lock) => Ok(lock.try_lock().is_err()),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error.into()),
    }
}
