//! The source tree that this program was started in, if it was. A path of the machine it was built on means nothing here: another
//! user of this machine could have made it.

use std::env;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};

use crate::lock::is_trusted_group;

/// What `cargo run` tells the program it starts: the directory of its package.
const VARIABLE: &str = "CARGO_MANIFEST_DIR";
/// Where the package lies in the source tree.
const PACKAGE: &str = "crates/oarsman";
const STICKY: u32 = 0o1000;
const OTHERS_WRITE: u32 = 0o002;
const GROUP_WRITES: u32 = 0o020;

/// The tree of the `cargo run` that started this program, or the one whose `target` directory it was started from.
pub(super) fn find() -> Option<PathBuf> {
    match env::var_os(VARIABLE) {
        Some(package) => of_package(Path::new(&package)),
        None => of_program(Path::new(OsStr::from_bytes(rustix::param::linux_execfn().to_bytes()))),
    }
}

/// What tells the same tree to this program when it is started by another path.
pub(super) fn variable() -> Option<(&'static str, OsString)> {
    find().map(|tree| (VARIABLE, tree.join(PACKAGE).into_os_string()))
}

fn of_package(package: &Path) -> Option<PathBuf> {
    package.ends_with(PACKAGE).then(|| package.ancestors().nth(2).map(Path::to_owned))?
}

/// The path is the one that was executed, in which a `target` that is a link is not resolved.
fn of_program(program: &Path) -> Option<PathBuf> {
    let program = std::path::absolute(program).ok()?;
    let target = program.ancestors().nth(2).filter(|path| path.ends_with("target"))?;
    target.parent().filter(|tree| tree.join(PACKAGE).is_dir()).map(Path::to_owned)
}

/// A file of the tree that is to be executed: no other user may have written it, nor be able to exchange it.
pub(super) fn trusted_file(tree: &Path, name: &str) -> Result<PathBuf> {
    let path = tree.join(name);
    let real = path.canonicalize().with_context(|| format!("cannot use {}", path.display()))?;
    ensure!(real.is_file(), "{} is not a file", path.display());
    real.ancestors().try_for_each(|part| check(part, part == real))?;
    Ok(real)
}

fn check(path: &Path, is_file: bool) -> Result<()> {
    let metadata = fs::metadata(path).with_context(|| format!("cannot use {}", path.display()))?;
    let (mode, owner) = (metadata.mode(), metadata.uid());
    let is_trusted = owner == 0 || owner == rustix::process::geteuid().as_raw();
    let others = if is_trusted_group(metadata.gid()) { 0 } else { GROUP_WRITES } | OTHERS_WRITE;
    let is_closed = mode & others == 0 || (!is_file && mode & STICKY != 0);
    ensure!(
        is_trusted && is_closed,
        "nothing of this source tree is executed: {} can be written to by other users (owner {owner}, mode {:o})",
        path.display(),
        mode & 0o7777
    );
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::fs::Permissions;
    use std::os::unix::fs::{PermissionsExt, chown};

    use super::*;

    #[test]
    fn only_how_it_was_started_tells_the_source_tree() {
        let tree = tempfile::tempdir().unwrap();
        fs::create_dir_all(tree.path().join(PACKAGE)).unwrap();
        let rows = [("target/debug/oarsman", true), ("bin/oarsman", false), ("oarsman", false)];
        for (program, is_found) in rows {
            let found = of_program(&tree.path().join(program));
            assert_eq!(found.is_some(), is_found, "{program}");
        }
        assert_eq!(of_program(Path::new("/usr/bin/oarsman")), None);
        assert_eq!(of_program(Path::new("/nowhere/target/release/oarsman")), None);
        assert_eq!(of_package(&tree.path().join(PACKAGE)).as_deref(), Some(tree.path()));
        assert_eq!(of_package(&tree.path().join("xtask")), None);
    }

    #[test]
    fn a_file_that_other_users_can_exchange_is_not_executed() {
        let tree = tempfile::tempdir().unwrap();
        let (directory, name) = (tree.path().join("xtask"), "xtask/on-rig");
        let file = tree.path().join(name);
        assert!(trusted_file(tree.path(), name).is_err(), "there is none");
        fs::create_dir(&directory).unwrap();
        fs::write(&file, "").unwrap();
        trusted_file(tree.path(), name).unwrap();
        for path in [&file, &directory] {
            let mode = fs::metadata(path).unwrap().permissions();
            fs::set_permissions(path, Permissions::from_mode(0o777)).unwrap();
            let refused = trusted_file(tree.path(), name).unwrap_err().to_string();
            assert!(refused.contains(&path.display().to_string()), "{refused}");
            fs::set_permissions(path, mode).unwrap();
            chown(path, Some(65534), None).unwrap();
            let refused = trusted_file(tree.path(), name).unwrap_err().to_string();
            assert!(refused.contains("owner 65534"), "{refused}");
            chown(path, Some(0), Some(65534)).unwrap();
            fs::set_permissions(path, Permissions::from_mode(0o775)).unwrap();
            let refused = trusted_file(tree.path(), name).unwrap_err().to_string();
            assert!(refused.contains("mode 775"), "{refused}");
            chown(path, Some(0), Some(0)).unwrap();
            trusted_file(tree.path(), name).unwrap();
        }
    }
}
