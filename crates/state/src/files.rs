//! Small things about files that all three seams need.

use std::ffi::OsStr;
use std::fs::{self, DirBuilder, File};
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::Path;

use oarsman_core::cri_spec::PodPaths;
use oarsman_core::ids::PodUid;
use oarsman_host::beneath::RootDirectory;
use oarsman_host::files::is_plain_name;

use crate::error::{FileError, failed};

/// Only root and its group may list the agent's directories.
pub(crate) const OUR_DIRECTORY: u32 = 0o750;

/// The paths of a pod. A UID may be given in a manifest: one that is no plain name could lead anywhere.
pub(crate) fn paths(root: &Path, uid: &PodUid) -> Result<PodPaths, FileError> {
    if !is_plain_name(uid.as_str()) {
        let why = "its uid is not a plain name: set metadata.uid to letters, digits and dashes";
        return Err(failed("use the uid of", Path::new(uid.as_str()))(why));
    }
    Ok(PodPaths::new(root, uid))
}

/// Makes a directory and those above it where they are missing.
pub(crate) fn make_directory(path: &Path, mode: u32) -> Result<(), FileError> {
    let made = DirBuilder::new().recursive(true).mode(mode).create(path);
    made.map_err(failed("make the directory", path))
}

/// No directory of ours or of pods' logs holds as many: a process that fills one does not fill the agent's memory.
const MAX_NAMES: usize = 65_536;

/// The names in a directory; none when there is no such directory. Of too many the first are taken.
pub(crate) fn names_in(directory: &Path) -> Result<Vec<String>, FileError> {
    let mut names = Vec::new();
    each_name(directory, &mut |name| {
        names.push(name.to_owned());
        names.len() < MAX_NAMES
    })?;
    if names.len() == MAX_NAMES {
        tracing::warn!(path = %directory.display(), count = MAX_NAMES, "directory has too many entries, the rest is not read");
    }
    names.sort();
    Ok(names)
}

/// Calls back for every name in a directory, without keeping them, until it says `false`; for none when there is no such directory.
pub(crate) fn each_name(
    directory: &Path,
    each: &mut dyn FnMut(&str) -> bool,
) -> Result<(), FileError> {
    // A name that is not text is not one that we or any kubelet gave.
    let mut text = |name: &OsStr| name.to_str().is_none_or(&mut *each);
    let listed = RootDirectory::open(directory).and_then(|opened| opened.each_name(&mut text));
    unless_gone(listed).map_err(failed("list", directory))
}

/// What is gone already is as good as empty.
pub(crate) fn unless_gone<T: Default>(result: io::Result<T>) -> io::Result<T> {
    match result {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(T::default()),
        other => other,
    }
}

/// The last bytes of a regular file below a directory. What a container can write to is opened with care: no link is followed on the
/// way, and a pipe does not make us wait.
pub(crate) fn tail(root: &Path, below: &Path, limit: u64) -> io::Result<Vec<u8>> {
    let mut file = RootDirectory::open(root)?.open_file(below)?;
    let length = file.metadata()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(limit)))?;
    let mut bytes = Vec::new();
    file.take(limit).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Replaces a file as a whole: a reader sees the old or the new content. A lasting one outlives a crash of the machine.
pub(crate) fn replace(path: &Path, content: &[u8], mode: u32, lasting: bool) -> io::Result<()> {
    let mut name = path.as_os_str().to_owned();
    name.push(".new");
    let fresh = Path::new(&name);
    // Of an earlier try there may be a remainder, with the mode it had then.
    unless_gone(fs::remove_file(fresh))?;
    let mut file = File::options().write(true).create_new(true).mode(mode).open(fresh)?;
    io::Write::write_all(&mut file, content)?;
    if lasting {
        file.sync_all()?;
    }
    fs::rename(fresh, path)?;
    match path.parent().filter(|_| lasting) {
        Some(parent) => File::open(parent)?.sync_all(),
        None => Ok(()),
    }
}
