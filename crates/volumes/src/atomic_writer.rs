//! Replacing all files of a directory at once, so that a reader sees the old ones or the new ones, and never some of each.
//!
//! The layout is the Go kubelet's. The files lie in a directory named after the time, to which the link `..data` leads; every name
//! that people see is a link to `..data/name`. To replace the files is to rename one link.
//!
//! Containers cannot write here, and still nothing that is found here is trusted: links are read and renamed and never followed, and
//! nothing outside the directory is reached by a name that was found in it.

mod compare;
#[cfg(test)]
mod crash_tests;
#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::fs::{self, DirBuilder, OpenOptions, Permissions};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt, lchown, symlink};
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use oarsman_core::cri_spec::{Payload, PayloadFile};
use oarsman_host::tree;

/// The link to the files.
const DATA: &str = "..data";
/// The link that is about to be the one above.
const NEXT: &str = "..data_tmp";
/// Directories are readable by all; the volume sets the modes of files.
const DIRECTORY: u32 = 0o755;
/// What the pod's group may do with a file, and a directory.
const GROUP_READS: u32 = 0o440;
const GROUP_ENTERS: u32 = 0o2550;

/// The directory, owner and time of a write.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AtomicWriter<'a> {
    pub(crate) directory: &'a Path,
    /// The pod's group, which may read.
    pub(crate) group: Option<u32>,
    pub(crate) now: Timestamp,
}

/// Has the directory hold exactly these files. Nothing is written when it does already.
pub(crate) fn write(writer: &AtomicWriter<'_>, files: &Payload) -> io::Result<()> {
    let directory = writer.directory;
    let current = current(directory)?;
    let files = &with_kept(current.as_ref().map(|name| directory.join(name)).as_deref(), files);
    let holds = |name: &String| compare::holds_exactly(&directory.join(name), files);
    let name = match current.clone().filter(holds) {
        Some(name) => name,
        None => {
            let name = new_directory(writer, current.as_deref())?;
            let at = directory.join(&name);
            fill(writer, &name, files).inspect_err(|_| remove_unused(&at))?;
            name
        }
    };
    let names = files.keys().filter_map(|path| path.split('/').next()).collect();
    link(directory, &names)?;
    prune_if_current(directory, &names, &name)
}

/// The files to be written: those whose content is not known are as they are now, or not at all.
fn with_kept<'a>(current: Option<&Path>, files: &'a Payload) -> Cow<'a, Payload> {
    if files.values().all(|file| !file.keep) {
        return Cow::Borrowed(files);
    }
    let known = files.iter().filter_map(|(path, file)| match file.keep {
        false => Some((path.clone(), file.clone())),
        true => {
            let bytes = compare::read(&current?.join(path)).ok()?;
            Some((path.clone(), PayloadFile { bytes: bytes.into(), keep: false, ..file.clone() }))
        }
    });
    Cow::Owned(known.collect())
}

/// Writes the files into a new directory and has the link lead to it.
fn fill(writer: &AtomicWriter<'_>, name: &str, files: &Payload) -> io::Result<()> {
    let at = writer.directory.join(name);
    files.iter().try_for_each(|(path, file)| write_file(writer, &at, path, file))?;
    swap_data_link(writer.directory, name)
}

/// Removes a directory that nothing leads to: a write that fails is tried again every few seconds, and each would leave one. What cannot
/// be removed now goes with the next write that succeeds.
fn remove_unused(directory: &Path) {
    tree::remove_tree(directory).ok();
}

/// The directory that the files are in now.
fn current(directory: &Path) -> io::Result<Option<String>> {
    let link = match fs::read_link(directory.join(DATA)) {
        Ok(link) => link,
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::InvalidInput) => {
            return Ok(None);
        }
        Err(error) => return Err(error),
    };
    let name = link.to_str().filter(|name| name.starts_with("..") && !name.contains('/'));
    Ok(name.filter(|name| !matches!(*name, ".." | DATA | NEXT)).map(str::to_owned))
}

/// A new directory named after the time; its name. Within one second names count up from the current one: a container that has resolved
/// the link before two changes must not find the files of the second under the name that it knows.
fn new_directory(writer: &AtomicWriter<'_>, current: Option<&str>) -> io::Result<String> {
    let prefix = format!("..{}.", writer.now.strftime("%Y_%m_%d_%H_%M_%S"));
    let used = current.and_then(|name| name.strip_prefix(&prefix)?.parse::<u32>().ok());
    for number in used.map_or(0, |used| used.saturating_add(1))..=u32::MAX {
        let name = format!("{prefix}{number:010}");
        let path = writer.directory.join(&name);
        match DirBuilder::new().mode(DIRECTORY).create(&path) {
            Ok(()) => {
                let owned = set_owner_and_mode(writer, &path, DIRECTORY, GROUP_ENTERS);
                return owned.inspect_err(|_| remove_unused(&path)).map(|()| name);
            }
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
    }
    Err(io::Error::other("there are too many directories"))
}

fn write_file(
    writer: &AtomicWriter<'_>,
    at: &Path,
    path: &str,
    file: &PayloadFile,
) -> io::Result<()> {
    let mut place: PathBuf = at.to_owned();
    let (parents, name) =
        path.rsplit_once('/').map_or(("", path), |(parents, name)| (parents, name));
    for parent in parents.split('/').filter(|parent| !parent.is_empty()) {
        place.push(parent);
        match DirBuilder::new().mode(DIRECTORY).create(&place) {
            Ok(()) => set_owner_and_mode(writer, &place, DIRECTORY, GROUP_ENTERS)?,
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
    }
    place.push(name);
    // The file must not be readable before owner and mode are set.
    let made = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&place);
    made?.write_all(&file.bytes)?;
    file.owner.map_or(Ok(()), |owner| lchown(&place, Some(owner), None))?;
    set_owner_and_mode(writer, &place, file.mode, GROUP_READS)
}

/// Gives what was just made to the pod's group, and sets its mode, which no umask shall change.
fn set_owner_and_mode(
    writer: &AtomicWriter<'_>,
    path: &Path,
    mode: u32,
    of_group: u32,
) -> io::Result<()> {
    let mode = match writer.group {
        None => mode,
        Some(group) => {
            lchown(path, None, Some(group))?;
            mode | of_group
        }
    };
    fs::set_permissions(path, Permissions::from_mode(mode))
}

/// From here on the files in that directory are the files.
fn swap_data_link(directory: &Path, name: &str) -> io::Result<()> {
    let next = directory.join(NEXT);
    match fs::remove_file(&next) {
        Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
        Ok(()) | Err(_) => symlink(name, &next)?,
    }
    fs::rename(&next, directory.join(DATA))
}

/// Has every name that people see lead to its file.
fn link(directory: &Path, names: &BTreeSet<&str>) -> io::Result<()> {
    for name in names {
        let (path, target) = (directory.join(name), Path::new(DATA).join(name));
        if fs::read_link(&path).is_ok_and(|there| there == target) {
            continue;
        }
        match fs::remove_file(&path) {
            Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
            Ok(()) | Err(_) => symlink(&target, &path)?,
        }
    }
    Ok(())
}

/// What another write has put in place of these files meanwhile is not removed as unused.
fn prune_if_current(directory: &Path, names: &BTreeSet<&str>, name: &str) -> io::Result<()> {
    match current(directory)?.as_deref() == Some(name) {
        true => prune(directory, names, name),
        false => Err(io::Error::other("its files were replaced by another write at the same time")),
    }
}

/// Removes links to files that are gone, and data directories that are no longer in use.
fn prune(directory: &Path, names: &BTreeSet<&str>, current: &str) -> io::Result<()> {
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        let name = entry.file_name();
        let name = name.to_string_lossy();
        let kept = [DATA, current].contains(&&*name) || names.contains(&*name);
        if !kept && entry.file_type()?.is_dir() {
            tree::remove_tree(&entry.path()).map_err(io::Error::other)?;
        } else if !kept {
            fs::remove_file(entry.path())?;
        }
    }
    Ok(())
}
