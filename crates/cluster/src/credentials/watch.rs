//! Files that somebody else may renew.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::time::Duration;

/// How often files are looked at.
pub(super) const EVERY: Duration = Duration::from_secs(5);

/// What tells one state of a file from another; none when it is not there.
pub(super) type Look = Option<(u64, u64, i64, i64)>;

/// How files are now; links are followed.
pub(super) fn look(files: &[PathBuf]) -> Vec<Look> {
    let of = |file: &PathBuf| {
        let found = fs::metadata(file).ok()?;
        Some((found.ino(), found.size(), found.mtime(), found.mtime_nsec()))
    };
    files.iter().map(of).collect()
}
