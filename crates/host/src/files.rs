//! Reads files that other users or containers may have written, without blocking on a pipe and up to a limit of bytes.

use std::fs::{self, File, FileType};
use std::io::{self, Read};
use std::os::unix::fs::FileTypeExt;
use std::path::Path;

use rustix::fs::{Mode, OFlags, open};

#[cfg(test)]
mod tests;

/// What a path turned out to hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FileContents {
    /// All bytes of a regular file.
    Bytes(Vec<u8>),
    /// A regular file with more bytes than wanted.
    TooLong,
    /// Something that is not read, such as `a directory`.
    Other(&'static str),
}

/// Reads a regular file, at the end of symbolic links too. Nothing else is opened, and nothing here waits for a writer.
///
/// # Errors
/// Those of the system: nothing is there, links lead in a circle, it may not be read.
pub fn read_regular(path: &Path, limit: u64) -> io::Result<FileContents> {
    // Opening a device may already have an effect.
    if let Some(other) = not_regular(fs::metadata(path)?.file_type()) {
        return Ok(FileContents::Other(other));
    }
    // The file may have been replaced since; a pipe without a writer must not block us.
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let file = File::from(open(path, flags, Mode::empty())?);
    match not_regular(file.metadata()?.file_type()) {
        Some(other) => Ok(FileContents::Other(other)),
        None => read_up_to(file, limit),
    }
}

fn read_up_to(file: File, limit: u64) -> io::Result<FileContents> {
    let mut bytes = Vec::new();
    let mut one_more = file.take(limit.saturating_add(1));
    let read = one_more.read_to_end(&mut bytes)?;
    let fits = u64::try_from(read).is_ok_and(|read| read <= limit);
    Ok(if fits { FileContents::Bytes(bytes) } else { FileContents::TooLong })
}

pub(crate) fn not_regular(kind: FileType) -> Option<&'static str> {
    let kinds = [
        (kind.is_file(), None),
        (kind.is_dir(), Some("a directory")),
        (kind.is_fifo(), Some("a pipe")),
        (kind.is_socket(), Some("a socket")),
        (kind.is_char_device() || kind.is_block_device(), Some("a device")),
    ];
    kinds.into_iter().find_map(|(is, name)| is.then_some(name)).unwrap_or(Some("no file"))
}

/// Whether a name is one part of a path and nothing else.
pub fn is_plain_name(name: &str) -> bool {
    !matches!(name, "" | "." | "..") && !name.contains(['/', '\0'])
}
