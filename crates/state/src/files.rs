//! Small things about files that all three seams need.

use std::fs::{self, DirBuilder, File};
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::Path;

use oarsman_core::cri_spec::PodPaths;
use oarsman_core::ids::PodUid;
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

/// The names in a directory; none when there is no such directory.
pub(crate) fn names_in(directory: &Path) -> Result<Vec<String>, FileError> {
    let list = || -> io::Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in fs::read_dir(directory)? {
            // A name that is not text is not one that we or any kubelet gave.
            names.extend(entry?.file_name().into_string().ok());
        }
        names.sort();
        Ok(names)
    };
    unless_gone(list()).map_err(failed("list", directory))
}

/// What is gone already is as good as empty.
pub(crate) fn unless_gone<T: Default>(result: io::Result<T>) -> io::Result<T> {
    match result {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(T::default()),
        other => other,
    }
}

/// The last bytes of a plain file. What a container can write to is opened with care: a symlink is not followed, and a pipe does
/// not make us wait.
pub(crate) fn tail(path: &Path, limit: u64) -> io::Result<Vec<u8>> {
    let flags = rustix::fs::OFlags::NOFOLLOW | rustix::fs::OFlags::NONBLOCK;
    let flags = i32::try_from(flags.bits()).map_err(io::Error::other)?;
    let mut file = File::options().read(true).custom_flags(flags).open(path)?;
    let metadata = file.metadata()?;
    if !metadata.is_file() {
        return Err(io::Error::other("it is not a plain file"));
    }
    file.seek(SeekFrom::Start(metadata.len().saturating_sub(limit)))?;
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
