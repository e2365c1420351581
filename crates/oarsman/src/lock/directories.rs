//! Directories that only we and root can put something into.

use std::fs::{self, DirBuilder, Permissions};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::Path;

use anyhow::{Context, Result, ensure};

const STICKY: u32 = 0o1000;
const OTHERS_WRITE: u32 = 0o002;
const GROUP_WRITES: u32 = 0o020;

/// Makes a root directory, and those above it, unless it is there. It is as others made it or 0750, before anything lies in it.
///
/// # Errors
/// When another user could put something into it, or exchange it as a whole.
pub(crate) fn prepare_root(root: &Path) -> Result<()> {
    prepare(root, 0o750)
        .with_context(|| format!("cannot use the root directory {}", root.display()))
}

/// Makes a directory that only root enters, and those above it, unless it is there.
///
/// # Errors
/// When another user could put something into it, or exchange it as a whole.
pub(crate) fn prepare_directory(directory: &Path) -> Result<()> {
    prepare(directory, 0o700)
}

/// Makes a directory that is only ours; one of an older version is closed to others.
pub(super) fn prepare_own(directory: &Path) -> Result<()> {
    prepare(directory, 0o700)?;
    let is_open = fs::metadata(directory)?.mode() & 0o077 != 0;
    if is_open {
        fs::set_permissions(directory, Permissions::from_mode(0o700))?;
    }
    Ok(())
}

fn prepare(directory: &Path, mode: u32) -> Result<()> {
    let exists = |path: &&Path| path.symlink_metadata().is_ok();
    let above = directory.ancestors().skip(1).find(exists);
    above.map_or(Ok(()), check_all)?;
    DirBuilder::new().recursive(true).mode(mode).create(directory)?;
    check(directory, 0)?;
    directory.canonicalize()?.parent().map_or(Ok(()), check_all)
}

/// A user who can write to a directory above the root directory can exchange the root directory.
fn check_all(above: &Path) -> Result<()> {
    above.canonicalize()?.ancestors().try_for_each(|directory| check(directory, STICKY))
}

/// In a sticky directory others can put files beside ours, but not take ours away: enough above a root, too little for one.
fn check(directory: &Path, harmless: u32) -> Result<()> {
    let (metadata, path) = (fs::metadata(directory)?, directory.display());
    let (mode, owner) = (metadata.mode(), metadata.uid());
    ensure!(
        is_trusted(owner),
        "{path} belongs to user {owner}, who could exchange what lies in it: give it to root with `chown root {path}`, or choose another directory"
    );
    ensure!(
        mode & OTHERS_WRITE == 0 || mode & harmless != 0,
        "{path} can be written to by all users: close it with `chmod o-w {path}`, or choose another directory"
    );
    let group = metadata.gid();
    ensure!(
        mode & GROUP_WRITES == 0 || mode & harmless != 0 || is_trusted_group(group),
        "{path} can be written to by group {group}: close it with `chmod g-w {path}`, or choose another directory"
    );
    Ok(())
}

/// The groups of root and of the user that we are.
fn is_trusted_group(gid: u32) -> bool {
    gid == 0 || gid == rustix::process::getgid().as_raw()
}

/// Root and the user that we are can do all that we can.
pub(super) fn is_trusted(uid: u32) -> bool {
    uid == 0 || uid == rustix::process::getuid().as_raw()
}
