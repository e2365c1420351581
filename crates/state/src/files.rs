//! Small things about files that all three seams need.

use std::ffi::OsStr;
use std::fs::{self, DirBuilder, File};
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use oarsman_core::cri_spec::PodPaths;
use oarsman_core::ids::PodUid;
use oarsman_host::beneath::RootDirectory;
use oarsman_host::files::is_plain_name;
use oarsman_host::mounts;

use crate::error::{FileError, failed};

/// What the name of a file ends with that is not written yet.
const UNFINISHED: &str = ".new";

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

/// Names are validated by the API server, and here for static pods; one that is no plain name could lead anywhere.
pub(crate) fn check_container(name: &str) -> Result<(), FileError> {
    match is_plain_name(name) {
        true => Ok(()),
        false => {
            Err(failed("use the name of the container", Path::new(name))("it is not a plain name"))
        }
    }
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
    names_of(RootDirectory::open(directory), directory)
}

/// The names in a directory that is opened; none when there is no such directory. Of too many the first are taken.
pub(crate) fn names_of(
    opened: io::Result<RootDirectory>,
    directory: &Path,
) -> Result<Vec<String>, FileError> {
    let mut names = Vec::new();
    // A name that is not text is not one that we or any kubelet gave.
    let mut add = |name: &OsStr| {
        names.extend(name.to_str().map(str::to_owned));
        names.len() < MAX_NAMES
    };
    let listed = opened.and_then(|opened| opened.each_name(&mut add));
    unless_gone(listed).map_err(failed("list", directory))?;
    if names.len() == MAX_NAMES {
        tracing::warn!(path = %directory.display(), count = MAX_NAMES, "directory has too many entries, the rest is not read");
    }
    names.sort();
    Ok(names)
}

/// A path without links in it, so that one which is put there later is noticed. Of what cannot be resolved the directory above is.
pub(crate) fn resolved(path: &Path) -> PathBuf {
    let whole = path.canonicalize().or_else(|_| mounts::resolve_parent(path));
    whole.unwrap_or_else(|_| path.to_owned())
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
pub(crate) fn tail(root: &RootDirectory, below: &Path, limit: u64) -> io::Result<Vec<u8>> {
    let mut file = root.open_file(below)?;
    let length = file.metadata()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(limit)))?;
    let mut bytes = Vec::new();
    file.take(limit).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Replaces a file as a whole: a reader sees the old or the new content, also after a crash of the machine; of a lasting one it is the
/// new content then.
pub(crate) fn replace(path: &Path, content: &[u8], mode: u32, lasting: bool) -> io::Result<()> {
    replace_through(UNFINISHED, path, content, mode, lasting)
}

/// The same with another ending of the name of the unfinished file.
pub(crate) fn replace_through(
    unfinished: &str,
    path: &Path,
    content: &[u8],
    mode: u32,
    lasting: bool,
) -> io::Result<()> {
    let mut name = path.as_os_str().to_owned();
    name.push(unfinished);
    let fresh = Path::new(&name);
    // Of an earlier try there may be a remainder, with the mode it had then.
    unless_gone(fs::remove_file(fresh))?;
    let write = || {
        let mut file = File::options().write(true).create_new(true).mode(mode).open(fresh)?;
        io::Write::write_all(&mut file, content)?;
        // Without this the file may be empty after a crash of the machine, though the rename is not lost.
        file.sync_data()?;
        fs::rename(fresh, path)
    };
    write().inspect_err(|_| {
        // On a full disk it holds the last bytes; what cannot be removed now goes at the next start.
        fs::remove_file(fresh).ok();
    })?;
    if lasting { sync_parent(path) } else { Ok(()) }
}

/// Removes a file for good: it is not there again after a crash of the machine.
pub(crate) fn remove_for_good(path: &Path) -> io::Result<()> {
    unless_gone(fs::remove_file(path).and_then(|()| sync_parent(path)))
}

/// Makes sure that the name of a file or directory survives a crash of the machine.
pub(crate) fn sync_parent(path: &Path) -> io::Result<()> {
    path.parent().map_or(Ok(()), |parent| File::open(parent)?.sync_all())
}

/// Removes what writes that were cut off have left in a directory of ours. On a read-only disk it stays: it is never read, and the next
/// write of the same file removes it.
pub(crate) fn remove_unfinished(directory: &Path) -> Result<(), FileError> {
    let names = names_in(directory)?.into_iter().filter(|name| name.ends_with(UNFINISHED));
    for path in names.map(|name| directory.join(name)) {
        if let Err(error) = unless_gone(fs::remove_file(&path)) {
            tracing::warn!(path = %path.display(), %error, "unfinished file not removed, is ignored");
        }
    }
    Ok(())
}
