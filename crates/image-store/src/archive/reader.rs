//! Goes through an archive entry by entry.

use std::collections::BTreeMap;
use std::io::{self, Read};

use super::header::{BLOCK, Header, until_zero};
use super::pax::PaxRecords;
use super::{Entry, EntryKind, sparse};

/// Headers in a row that only describe the next entry: a long name, a long target, a pax header, twice at most.
const MAX_EXTENSIONS: usize = 8;
const BLOCK_BYTES: u64 = BLOCK as u64;

/// Where archives are read from.
pub(crate) trait Skip: Read {
    /// Goes on by so many bytes; an error when there are fewer.
    fn skip(&mut self, bytes: u64) -> io::Result<()>;
}

/// Skips by reading.
pub(crate) struct SkipByReading<R>(pub(crate) R);

impl<R: Read> Read for SkipByReading<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        self.0.read(into)
    }
}

impl<R: Read> Skip for SkipByReading<R> {
    fn skip(&mut self, bytes: u64) -> io::Result<()> {
        match io::copy(&mut (&mut self.0).take(bytes), &mut io::sink())? {
            read if read == bytes => Ok(()),
            _ => Err(io::ErrorKind::UnexpectedEof.into()),
        }
    }
}

/// The entries of an archive, one after the other.
pub(crate) struct TarReader<R> {
    inner: R,
    /// Of the current entry: bytes that were not read, and the zeros after them.
    remaining: u64,
    padding: u64,
    /// Bytes of the archive before where we are.
    position: u64,
    max_header: usize,
    is_at_end: bool,
    headers: u64,
}

/// The headers before an entry that describe it.
#[derive(Default)]
struct Extensions {
    name: Option<Vec<u8>>,
    link: Option<Vec<u8>>,
    pax: Option<PaxRecords>,
}

impl<R: Skip> TarReader<R> {
    /// Long names, pax headers and lists of extents may have so many bytes.
    pub(crate) fn new(inner: R, max_header: usize) -> Self {
        Self {
            inner,
            remaining: 0,
            padding: 0,
            position: 0,
            max_header,
            is_at_end: false,
            headers: 0,
        }
    }

    /// The next entry; none at the end of the archive.
    pub(crate) fn next(&mut self) -> io::Result<Option<Entry>> {
        let mut extensions = Extensions::default();
        for count in 0.. {
            if count > MAX_EXTENSIONS {
                return Err(io::Error::other("too many headers describe one entry"));
            }
            let Some(header) = self.next_header()? else {
                let is_whole = count == 0;
                return if is_whole { Ok(None) } else { Err(io::ErrorKind::UnexpectedEof.into()) };
            };
            match header.type_flag() {
                b'x' => extensions.pax = Some(self.pax(&header)?),
                b'L' => extensions.name = Some(self.long_text(&header)?),
                b'K' => extensions.link = Some(self.long_text(&header)?),
                // A header for all entries: containerd ignores it, too.
                b'g' => drop(self.extension(&header)?),
                _ => return self.entry(&header, extensions).map(Some),
            }
        }
        Ok(None)
    }

    /// Bytes of the current entry as they are stored; zero at its end.
    pub(crate) fn read_data(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let most = usize::try_from(self.remaining).unwrap_or(usize::MAX).min(into.len());
        if most == 0 {
            return Ok(0);
        }
        let read = self.inner.read(&mut into[..most])?;
        if read == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        self.remaining -= read as u64;
        self.position += read as u64;
        Ok(read)
    }

    /// Where in the archive the bytes of the current entry begin, before any is read, and how many are stored.
    pub(crate) fn place(&self) -> (u64, u64) {
        (self.position, self.remaining)
    }

    /// How many headers were read, also those that only describe entries.
    pub(crate) fn headers(&self) -> u64 {
        self.headers
    }

    pub(crate) fn into_inner(self) -> R {
        self.inner
    }

    fn next_header(&mut self) -> io::Result<Option<Header>> {
        let rest = self.remaining.saturating_add(self.padding);
        (self.remaining, self.padding) = (0, 0);
        self.skip(rest)?;
        if self.is_at_end {
            return Ok(None);
        }
        let block = match self.block() {
            Ok(block) => block,
            // Archives without the two blocks of zeros at their end are usual.
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => None,
            Err(error) => return Err(error),
        };
        let Some(block) = block.filter(|block| block.iter().any(|byte| *byte != 0)) else {
            self.is_at_end = true;
            return Ok(None);
        };
        self.headers += 1;
        Header::check(block).map(Some).map_err(io::Error::other)
    }

    /// None at the very end; an error within a block.
    fn block(&mut self) -> io::Result<Option<[u8; BLOCK]>> {
        let mut block = [0; BLOCK];
        let mut filled = 0;
        while filled < BLOCK {
            match self.inner.read(&mut block[filled..])? {
                0 if filled == 0 => return Ok(None),
                0 => return Err(io::Error::other("the archive ends within a header")),
                read => filled += read,
            }
        }
        self.position += BLOCK_BYTES;
        Ok(Some(block))
    }

    fn skip(&mut self, bytes: u64) -> io::Result<()> {
        if bytes > 0 {
            self.inner.skip(bytes)?;
            self.position = self.position.saturating_add(bytes);
        }
        Ok(())
    }

    /// The bytes of a header that describes the next one.
    fn extension(&mut self, header: &Header) -> io::Result<Vec<u8>> {
        let size = header.size().map_err(io::Error::other)?;
        let length = usize::try_from(size).ok().filter(|length| *length <= self.max_header);
        let Some(length) = length else {
            let most = self.max_header;
            let why = format!("a header has {size} bytes, and at most {most} are allowed");
            return Err(io::Error::other(why));
        };
        let mut bytes = vec![0; length];
        self.inner.read_exact(&mut bytes)?;
        self.position += size;
        self.skip(padding(size))?;
        Ok(bytes)
    }

    fn long_text(&mut self, header: &Header) -> io::Result<Vec<u8>> {
        Ok(until_zero(&self.extension(header)?).to_vec())
    }

    fn pax(&mut self, header: &Header) -> io::Result<PaxRecords> {
        PaxRecords::parse(&self.extension(header)?).map_err(io::Error::other)
    }

    fn entry(&mut self, header: &Header, extensions: Extensions) -> io::Result<Entry> {
        let pax = extensions.pax.unwrap_or_default();
        let mut entry = describe(header, &pax).map_err(io::Error::other)?;
        if let Some(name) = extensions.name {
            entry.name = name;
        }
        if let Some(link) = extensions.link {
            entry.link = link;
        }
        if entry.kind != EntryKind::Regular {
            // As Go reads it: links, directories and devices have no bytes, whatever their header says.
            entry.size = if matches!(entry.kind, EntryKind::Other(_)) { entry.size } else { 0 };
        }
        (self.remaining, self.padding) = (entry.size, padding(entry.size));
        if entry.kind == EntryKind::Regular {
            self.extents(header, &pax, &mut entry)?;
        }
        entry.xattrs = pax.xattrs;
        Ok(entry)
    }

    /// Reads where the bytes of a sparse file belong.
    fn extents(&mut self, header: &Header, pax: &PaxRecords, entry: &mut Entry) -> io::Result<()> {
        let (size, extents) = if header.type_flag() == b'S' {
            // The blocks with more extents are not counted in the size of the entry.
            sparse::of_header(header, self.bounded_blocks()).map_err(io::Error::other)?
        } else if pax.sparse.is_sparse() {
            (pax.sparse.real_size(), self.pax_extents(pax)?)
        } else {
            return Ok(());
        };
        sparse::check(&extents, size, self.remaining).map_err(io::Error::other)?;
        (entry.size, entry.extents) = (size, Some(extents));
        Ok(())
    }

    fn pax_extents(&mut self, pax: &PaxRecords) -> io::Result<Vec<(u64, u64)>> {
        if !pax.sparse.has_map_in_data().map_err(io::Error::other)? {
            return pax.sparse.extents().map_err(io::Error::other);
        }
        let before = self.position;
        let extents = sparse::map_in_data(self.bounded_blocks()).map_err(io::Error::other)?;
        let rest = self.remaining.checked_sub(self.position - before);
        let too_long = || io::Error::other("its list of extents is longer than it is");
        self.remaining = rest.ok_or_else(too_long)?;
        Ok(extents)
    }

    /// Gives blocks, at most as many as a header may have.
    fn bounded_blocks(&mut self) -> impl FnMut() -> Result<[u8; BLOCK], String> {
        let mut left = self.max_header / BLOCK;
        move || {
            left = left.checked_sub(1).ok_or("its list of extents is too long")?;
            let block = self.block().map_err(|error| error.to_string())?;
            block.ok_or_else(|| "the archive ends within a list of extents".to_owned())
        }
    }
}

/// Zeros after so many bytes, up to a whole block.
fn padding(size: u64) -> u64 {
    (BLOCK_BYTES - size % BLOCK_BYTES) % BLOCK_BYTES
}

fn describe(header: &Header, pax: &PaxRecords) -> Result<Entry, String> {
    let (uid, gid) = match (pax.uid, pax.gid) {
        (Some(uid), Some(gid)) => (uid, gid),
        (uid, gid) => {
            let owner = header.owner()?;
            (uid.unwrap_or(owner.0), gid.unwrap_or(owner.1))
        }
    };
    let kind = header.kind();
    let is_device = matches!(kind, EntryKind::CharDevice | EntryKind::BlockDevice);
    let name = pax.sparse.name.clone().or_else(|| pax.path.clone());
    let has_body = matches!(kind, EntryKind::Regular | EntryKind::Other(_));
    Ok(Entry {
        name: name.unwrap_or_else(|| header.name()),
        link: pax.link.clone().unwrap_or_else(|| header.link()),
        kind,
        mode: header.mode()?,
        uid,
        gid,
        mtime: match pax.mtime {
            Some(time) => time,
            None => (header.mtime()?, 0),
        },
        device: if is_device { header.device()? } else { (0, 0) },
        size: match pax.size {
            Some(size) => size,
            None if has_body => header.size()?,
            None => 0,
        },
        extents: None,
        xattrs: BTreeMap::new(),
    })
}
