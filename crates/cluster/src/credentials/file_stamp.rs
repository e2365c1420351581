//! Detects changes of files that others may renew.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::time::Duration;

/// How often files are checked.
pub(super) const CHECK_PERIOD: Duration = Duration::from_secs(5);

/// Inode, size and modification time of a file; none when it does not exist.
pub(super) type CredentialFileStamp = Option<(u64, u64, i64, i64)>;

/// The stamps of files; links are followed.
pub(super) fn file_stamps(files: &[PathBuf]) -> Vec<CredentialFileStamp> {
    let of = |file: &PathBuf| {
        let found = fs::metadata(file).ok()?;
        Some((found.ino(), found.size(), found.mtime(), found.mtime_nsec()))
    };
    files.iter().map(of).collect()
}
