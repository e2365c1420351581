//! The stream of a layer: compressed bytes on one side, those of the archive on the other, both counted and hashed.

use std::cell::RefCell;
use std::io::{self, Read};
use std::rc::Rc;

use crate::compression::decompress;
use crate::digest::{Digest, Hasher};

use super::{UnpackBounds, UnpackError, UnpackReason};

const DRAIN: usize = 64 << 10;

/// What a stream had, once it was read to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct StreamDigests {
    /// The blob's digest.
    pub(crate) compressed: Digest,
    /// The blob's size.
    pub(crate) size: u64,
    /// The diff id.
    pub(crate) decompressed: Digest,
}

/// A layer that is read.
pub(crate) struct LayerStream<'a> {
    archive: Box<dyn Read + 'a>,
    compressed: Rc<RefCell<Hasher>>,
    decompressed: Hasher,
    bounds: UnpackBounds,
}

impl<'a> LayerStream<'a> {
    /// `on_read` is told how many bytes of the blob were read so far.
    pub(crate) fn new(
        blob: impl Read + 'a,
        bounds: UnpackBounds,
        on_read: &'a mut dyn FnMut(u64),
    ) -> Result<Self, UnpackError> {
        let compressed = Rc::new(RefCell::new(Hasher::new()));
        let counted = CountedBlob { blob, hasher: Rc::clone(&compressed), on_read };
        let archive = decompress(counted).map_err(UnpackError::of_stream)?;
        Ok(Self { archive, compressed, decompressed: Hasher::new(), bounds })
    }

    /// Reads what follows the archive, which counts for the digests, too.
    pub(crate) fn finish(mut self) -> Result<StreamDigests, UnpackError> {
        let mut buffer = vec![0; DRAIN];
        while self.read(&mut buffer).map_err(UnpackError::of_stream)? > 0 {}
        let compressed = self.compressed.borrow();
        Ok(StreamDigests {
            compressed: compressed.digest(),
            size: compressed.bytes(),
            decompressed: self.decompressed.digest(),
        })
    }

    fn check_bounds(&self) -> Result<(), UnpackReason> {
        let (compressed, decompressed) =
            (self.compressed.borrow().bytes(), self.decompressed.bytes());
        let allowed =
            self.bounds.free_bytes.saturating_add(compressed.saturating_mul(self.bounds.ratio));
        if decompressed > self.bounds.bytes {
            return Err(UnpackReason::TooManyBytes { most: self.bounds.bytes });
        }
        if decompressed > allowed {
            return Err(UnpackReason::TooCompressed { compressed, decompressed: allowed });
        }
        Ok(())
    }
}

impl Read for LayerStream<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let read = self.archive.read(into)?;
        self.decompressed.add(&into[..read]);
        self.check_bounds().map_err(io::Error::other)?;
        Ok(read)
    }
}

struct CountedBlob<'a, R> {
    blob: R,
    hasher: Rc<RefCell<Hasher>>,
    on_read: &'a mut dyn FnMut(u64),
}

impl<R: Read> Read for CountedBlob<'_, R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let read = self.blob.read(into)?;
        let mut hasher = self.hasher.borrow_mut();
        hasher.add(&into[..read]);
        (self.on_read)(hasher.bytes());
        Ok(read)
    }
}
