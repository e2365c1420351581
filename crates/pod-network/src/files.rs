//! Files and directories of ours.

use std::fs::{self, DirBuilder, File};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::Path;

use oarsman_host::files::{FileContents, read_regular};

use crate::error::{PodNetworkError, file_error};

/// What the name of a file ends with that is not written yet.
pub(crate) const UNFINISHED: &str = ".new";
/// Only root may look into our directories: the pins in them lead into pods.
const DIRECTORY_MODE: u32 = 0o700;
const FILE_MODE: u32 = 0o600;
/// No file of ours is longer.
const MAX_BYTES: u64 = 1024 * 1024;

/// Makes a directory and those above it where they are missing.
pub(crate) fn make_directory(path: &Path) -> Result<(), PodNetworkError> {
    let made = DirBuilder::new().recursive(true).mode(DIRECTORY_MODE).create(path);
    made.map_err(file_error("make the directory", path))
}

/// The names in a directory, sorted; none when there is no such directory.
pub(crate) fn names_in(directory: &Path) -> Result<Vec<String>, PodNetworkError> {
    let names = || -> io::Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in fs::read_dir(directory)? {
            names.extend(entry?.file_name().into_string());
        }
        names.sort();
        Ok(names)
    };
    unless_gone(names()).map_err(file_error("list", directory))
}

/// The bytes of a file; none when there is no such file.
pub(crate) fn read(path: &Path) -> Result<Option<Vec<u8>>, PodNetworkError> {
    match read_regular(path, MAX_BYTES) {
        Ok(FileContents::Bytes(bytes)) => Ok(Some(bytes)),
        Ok(FileContents::TooLong) => Err(io::ErrorKind::FileTooLarge.into()),
        Ok(FileContents::Other(kind)) => Err(io::Error::other(format!("it is {kind}"))),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
    .map_err(file_error("read", path))
}

/// Replaces a file as a whole: when this process is killed, it has the old or the new content. A lasting one has it after a crash of the
/// machine, too.
pub(crate) fn replace(path: &Path, content: &[u8], lasting: bool) -> Result<(), PodNetworkError> {
    let mut fresh = path.as_os_str().to_owned();
    fresh.push(UNFINISHED);
    let fresh = Path::new(&fresh);
    let write = || {
        let mut options = File::options();
        options.write(true).create(true).truncate(true).mode(FILE_MODE);
        let mut file = options.open(fresh)?;
        file.write_all(content)?;
        if lasting {
            file.sync_data()?;
        }
        fs::rename(fresh, path)?;
        match path.parent().filter(|_| lasting) {
            Some(parent) => File::open(parent)?.sync_all(),
            None => Ok(()),
        }
    };
    write().map_err(file_error("write", path))
}

/// Removes a file; fine when there is none.
pub(crate) fn remove_file(path: &Path) -> Result<(), PodNetworkError> {
    unless_gone(fs::remove_file(path)).map_err(file_error("remove", path))
}

/// Removes an empty directory; fine when there is none.
pub(crate) fn remove_directory(path: &Path) -> Result<(), PodNetworkError> {
    unless_gone(fs::remove_dir(path)).map_err(file_error("remove the directory", path))
}

fn unless_gone<T: Default>(result: io::Result<T>) -> io::Result<T> {
    match result {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(T::default()),
        other => other,
    }
}
