//! Reads tar archives: old, ustar, GNU and pax, as Go's `archive/tar` does, which containerd and Docker use.
//!
//! By hand, because the `tar` crate reads GNU long names and pax headers into memory as long as their headers say (checked in 0.4.46:
//! `EntryFields::read_all`), keeps any number of extents of a sparse file, and does not know the sparse files of pax. Here every
//! header has a bound, and all numbers are checked.

use std::collections::BTreeMap;

mod header;
mod pax;
mod reader;
mod sparse;

pub(crate) use reader::{Skip, SkipByReading, TarReader};

/// What an entry is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EntryKind {
    Regular,
    HardLink,
    Symlink,
    CharDevice,
    BlockDevice,
    Directory,
    Fifo,
    /// One that we do not know, with its type flag.
    Other(u8),
}

/// One entry of an archive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    /// As it is in the archive.
    pub(crate) name: Vec<u8>,
    /// The target of a link.
    pub(crate) link: Vec<u8>,
    pub(crate) kind: EntryKind,
    /// Permissions, with set-user-id and the like.
    pub(crate) mode: u32,
    pub(crate) uid: u64,
    pub(crate) gid: u64,
    /// Seconds, which may be before 1970, and nanoseconds.
    pub(crate) mtime: (i64, u32),
    /// Major and minor.
    pub(crate) device: (u32, u32),
    /// How long the file is once it is unpacked.
    pub(crate) size: u64,
    /// Where the bytes in the archive belong, when there are holes: offset and length, in order.
    pub(crate) extents: Option<Vec<(u64, u64)>>,
    /// Extended attributes.
    pub(crate) xattrs: BTreeMap<Vec<u8>, Vec<u8>>,
}

/// Reads an archive of these bytes to its end, for fuzzing: whatever they are, there is an answer, and no entry is larger than said.
#[doc(hidden)]
pub fn fuzz_archive(bytes: &[u8]) {
    const HEADER: usize = 4096;
    let mut reader = TarReader::new(SkipByReading(bytes), HEADER);
    let mut buffer = [0; 1024];
    while let Ok(Some(entry)) = reader.next() {
        assert!(entry.name.len() <= HEADER && entry.link.len() <= HEADER, "a header has no bound");
        let stored: u64 = match &entry.extents {
            Some(extents) => extents.iter().map(|(_, length)| *length).sum(),
            None => entry.size,
        };
        let mut read = 0;
        while let Ok(more @ 1..) = reader.read_data(&mut buffer) {
            read += more as u64;
        }
        assert!(read <= stored, "an entry of {stored} bytes gives {read}");
    }
}
