//! Reads the manifests at a path. This blocks: it is called where blocking is allowed.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::io::{self, ErrorKind};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use oarsman_host::files::{FileContents, read_regular};

use crate::manifest::MANIFEST_LIMIT;

#[cfg(test)]
mod tests;

/// What was found at a source's path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Scan {
    /// The path does not exist.
    Missing,
    /// The path exists and cannot be read.
    Unreadable(String),
    /// These files, by path.
    Files(BTreeMap<PathBuf, FileRead>),
}

/// The content of one file.
pub(super) type FileRead = Result<Vec<u8>, ManifestFileError>;

/// Why a file's bytes cannot be had.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum ManifestFileError {
    #[error("it cannot be read: {0}; make it a file that the agent may read")]
    Unreadable(String),
    #[error("it is a symbolic link to nothing; mend the link, or remove it")]
    Dangling,
    #[error("it is a symbolic link that leads back to itself; mend the link, or remove it")]
    LinkLoop,
    #[error("it has more than {MANIFEST_LIMIT} bytes, and no manifest needs so many")]
    TooLong,
    #[error("it is {0}, and only files are read here; move it elsewhere")]
    Other(&'static str),
}

/// Reads a single file, or the entries of a directory that are manifests by their names.
pub(super) fn scan(path: &Path, is_manifest: fn(&Path) -> bool) -> Scan {
    match fs::metadata(path) {
        Ok(found) if found.is_dir() => directory(path, is_manifest),
        Ok(_) => file(path),
        Err(error) if is_missing(&error) && !is_link(path) => Scan::Missing,
        Err(_) => file(path),
    }
}

fn file(path: &Path) -> Scan {
    match read_entry(path) {
        Some(found) => Scan::Files(BTreeMap::from([(path.to_owned(), found)])),
        None => Scan::Missing,
    }
}

fn directory(path: &Path, is_manifest: fn(&Path) -> bool) -> Scan {
    match entries(path, is_manifest) {
        Ok(files) => Scan::Files(files),
        Err(error) if error.kind() == ErrorKind::NotFound => Scan::Missing,
        Err(error) => Scan::Unreadable(error.to_string()),
    }
}

/// All entries but those whose names begin with a dot. A list that breaks off is no list: what is missing from it would
/// count as removed.
fn entries(path: &Path, is_manifest: fn(&Path) -> bool) -> io::Result<BTreeMap<PathBuf, FileRead>> {
    let mut files = BTreeMap::new();
    for entry in fs::read_dir(path)? {
        let entry = entry?;
        let path = entry.path();
        if !is_hidden(&entry.file_name()) && is_manifest(&path) {
            files.extend(read_entry(&path).map(|found| (path, found)));
        }
    }
    Ok(files)
}

fn is_hidden(name: &OsStr) -> bool {
    name.as_bytes().starts_with(b".")
}

/// None when it is gone.
fn read_entry(path: &Path) -> Option<FileRead> {
    let limit = u64::try_from(MANIFEST_LIMIT).unwrap_or(u64::MAX);
    match read_regular(path, limit) {
        Ok(FileContents::Bytes(bytes)) => Some(Ok(bytes)),
        Ok(FileContents::TooLong) => Some(Err(ManifestFileError::TooLong)),
        Ok(FileContents::Other(what)) => Some(Err(ManifestFileError::Other(what))),
        Err(error) if is_missing(&error) => {
            is_link(path).then_some(Err(ManifestFileError::Dangling))
        }
        Err(error) if is_link_loop(&error) => Some(Err(ManifestFileError::LinkLoop)),
        Err(error) => Some(Err(ManifestFileError::Unreadable(error.to_string()))),
    }
}

/// A path below something that is no directory is not there either.
fn is_missing(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory)
}

/// The standard library has no stable name for it.
fn is_link_loop(error: &io::Error) -> bool {
    error.raw_os_error() == Some(rustix::io::Errno::LOOP.raw_os_error())
}

fn is_link(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|found| found.is_symlink())
}
