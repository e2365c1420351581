//! Whether a directory holds certain files, no more and no less.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::Path;

use oarsman_core::cri_spec::Payload;
use rustix::fs::{Mode, OFlags, open};

/// Anything unexpected is a no: then the files are written anew.
pub(super) fn holds_exactly(directory: &Path, files: &Payload) -> bool {
    let is_directory =
        fs::symlink_metadata(directory).is_ok_and(|there| there.file_type().is_dir());
    is_directory
        && count(directory).is_ok_and(|count| count == files.len())
        && files.iter().all(|(path, file)| {
            read(&directory.join(path)).is_ok_and(|there| *there == *file.bytes)
        })
}

pub(super) fn read(path: &Path) -> io::Result<Vec<u8>> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let mut bytes = Vec::new();
    File::from(open(path, flags, Mode::empty())?).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// How many things there are besides directories.
fn count(directory: &Path) -> io::Result<usize> {
    let mut count = 0;
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        count += if entry.file_type()?.is_dir() { self::count(&entry.path())? } else { 1 };
    }
    Ok(count)
}
