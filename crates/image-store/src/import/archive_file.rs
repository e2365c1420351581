//! The files of an archive that can be read in any order.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufReader, Read, Seek, SeekFrom};

use crate::archive::{EntryKind, Skip, TarReader};
use crate::compression::{Compression, decompress};
use crate::lease::Lease;
use crate::oci::Descriptor;
use crate::unpack::UnpackBounds;

use super::BlobSource;

/// Files of an archive of images: blobs, and some more for each.
const MAX_FILES: usize = 100_000;
/// Links that lead to links: old versions of Docker write one for a layer that two images share.
const MAX_LINKS: usize = 8;

/// An archive and where its files are.
pub(super) struct ArchiveFile {
    file: File,
    files: BTreeMap<String, Place>,
}

enum Place {
    Bytes { offset: u64, size: u64 },
    Link(String),
}

/// Reads headers through a buffer, and jumps over the rest.
struct Jumping(BufReader<File>, u64);

impl Read for Jumping {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        self.0.read(into)
    }
}

impl Skip for Jumping {
    fn skip(&mut self, bytes: u64) -> io::Result<()> {
        // A seek beyond the end is no error, but what follows is not there.
        let end = self.0.stream_position()?.checked_add(bytes).filter(|end| *end <= self.1);
        let end = end.ok_or(io::ErrorKind::UnexpectedEof)?;
        self.0.seek(SeekFrom::Start(end)).map(drop)
    }
}

impl ArchiveFile {
    /// The archive as a plain file: itself, or a copy that was decompressed.
    pub(super) fn seekable(
        mut file: File,
        lease: &Lease,
        bounds: UnpackBounds,
    ) -> io::Result<File> {
        let mut start = Vec::new();
        if file.metadata()?.is_file() {
            (&file).take(6).read_to_end(&mut start)?;
            file.rewind()?;
            if Compression::of(&start)? == Compression::None {
                return Ok(file);
            }
        }
        let path = lease.new_path();
        let mut copy = File::options().read(true).write(true).create_new(true).open(path)?;
        let plain = decompress(file)?;
        let copied = io::copy(&mut plain.take(bounds.bytes.saturating_add(1)), &mut copy)?;
        if copied > bounds.bytes {
            let why = format!("it decompresses to more than {} bytes", bounds.bytes);
            return Err(io::Error::other(why));
        }
        copy.rewind()?;
        Ok(copy)
    }

    /// Finds the files of an archive.
    pub(super) fn open(file: File, bounds: UnpackBounds) -> io::Result<Self> {
        let length = file.metadata()?.len();
        let jumping = Jumping(BufReader::new(file.try_clone()?), length);
        let mut reader = TarReader::new(jumping, bounds.header_bytes);
        let mut files = BTreeMap::new();
        while let Some(entry) = reader.next()? {
            let Some(name) = clean(&entry.name) else { continue };
            match entry.kind {
                EntryKind::Regular if entry.extents.is_none() => {
                    let (offset, size) = reader.place();
                    files.insert(name, Place::Bytes { offset, size });
                }
                EntryKind::Symlink | EntryKind::HardLink => {
                    let link = String::from_utf8_lossy(&entry.link).into_owned();
                    let link = match entry.kind {
                        EntryKind::Symlink => beside(&name, &link),
                        _ => clean(link.as_bytes()).unwrap_or_default(),
                    };
                    files.insert(name, Place::Link(link));
                }
                _ => {}
            }
            if files.len() > MAX_FILES {
                let why = format!("it has more than {MAX_FILES} files");
                return Err(io::Error::other(why));
            }
        }
        Ok(Self { file, files })
    }

    pub(super) fn has(&self, name: &str) -> bool {
        self.find(name).is_some()
    }

    /// The bytes of a file of the archive, and how many there are.
    pub(super) fn read(&mut self, name: &str) -> io::Result<(impl Read + '_, u64)> {
        let found = clean(name.as_bytes()).and_then(|name| self.find(&name));
        let (offset, size) = found
            .ok_or_else(|| io::Error::other(format!("there is no file {name:?} in the archive")))?;
        self.file.seek(SeekFrom::Start(offset))?;
        Ok(((&self.file).take(size), size))
    }

    fn find(&self, name: &str) -> Option<(u64, u64)> {
        let mut place = self.files.get(name)?;
        for _ in 0..MAX_LINKS {
            match place {
                Place::Bytes { offset, size } => return Some((*offset, *size)),
                Place::Link(target) => place = self.files.get(target)?,
            }
        }
        None
    }
}

impl BlobSource for ArchiveFile {
    fn open_blob(&mut self, blob: &Descriptor) -> io::Result<Box<dyn Read + '_>> {
        let (bytes, _) = self.read(&format!("blobs/sha256/{}", blob.digest.hex()))?;
        Ok(Box::new(bytes))
    }
}

/// A name without `.` and slashes at its ends; none with `..`.
fn clean(name: &[u8]) -> Option<String> {
    let text = str::from_utf8(name).ok()?;
    let parts: Vec<&str> =
        text.split('/').filter(|part| !part.is_empty() && *part != ".").collect();
    (!parts.contains(&"..") && !parts.is_empty()).then(|| parts.join("/"))
}

/// Where a symbolic link leads, within the archive.
fn beside(name: &str, link: &str) -> String {
    let mut parts: Vec<&str> = name.split('/').collect();
    parts.pop();
    for part in link.split('/') {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()),
            other => parts.push(other),
        }
    }
    parts.join("/")
}
