//! Who holds a lock that is not free.

use std::fs::{self, File, Metadata};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use super::directories::is_trusted;

/// Whether a process of another, unprivileged user holds a lock on the file.
///
/// One such process is proof that no agent does: an agent's lock is exclusive. The process is found by its descriptors and not
/// in `/proc/locks`, which names the process that took the lock, although that may have ended and left the descriptor to another.
pub(super) fn is_held_by_unprivileged(file: &File) -> io::Result<bool> {
    let wanted = file.metadata()?;
    for entry in fs::read_dir("/proc")? {
        let process = entry?.path();
        // The real user: a program with the setuid bit that inherits the descriptor is root in all but that.
        let is_foreign = real_uid(&process).is_some_and(|uid| !is_trusted(uid));
        if is_foreign && holds(&process, &wanted) {
            return Ok(true);
        }
    }
    Ok(false)
}

fn real_uid(process: &Path) -> Option<u32> {
    let status = fs::read_to_string(process.join("status")).ok()?;
    let uids = status.lines().find_map(|line| line.strip_prefix("Uid:"))?;
    uids.split_whitespace().next()?.parse().ok()
}

/// A process that ends meanwhile holds nothing.
fn holds(process: &Path, wanted: &Metadata) -> bool {
    let descriptors = fs::read_dir(process.join("fd")).into_iter().flatten().flatten();
    descriptors.into_iter().any(|descriptor| {
        // The inode first: to look at a file on a mount that hangs could hang, so nothing is opened or read there.
        let is_same = |found: Metadata| (found.dev(), found.ino()) == (wanted.dev(), wanted.ino());
        fs::metadata(descriptor.path()).is_ok_and(is_same)
            && has_lock(&process.join("fdinfo").join(descriptor.file_name()))
    })
}

fn has_lock(fdinfo: &Path) -> bool {
    let text = fs::read_to_string(fdinfo).unwrap_or_default();
    text.lines().any(|line| line.starts_with("lock:") && line.contains("FLOCK"))
}
