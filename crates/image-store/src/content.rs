//! Blobs by their digests. One that can be seen is whole: it was checked while it was written, synced, and then renamed.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use crate::digest::{Digest, HashingReader};
use crate::error::{StoreError, failed};
use crate::files::{read_bounded, rename_synced};
use crate::lease::{Lease, Needed};
use crate::oci::Descriptor;

/// The blobs of a store.
#[derive(Clone, Debug)]
pub(crate) struct Content {
    blobs: PathBuf,
}

impl Content {
    pub(crate) fn new(store: &Path) -> Self {
        Self { blobs: store.join("content/blobs/sha256") }
    }

    pub(crate) fn directory(&self) -> &Path {
        &self.blobs
    }

    pub(crate) fn path(&self, digest: &Digest) -> PathBuf {
        self.blobs.join(digest.hex())
    }

    /// Whether the blob is there.
    pub(crate) fn has(&self, digest: &Digest) -> Result<bool, StoreError> {
        let path = self.path(digest);
        path.try_exists().map_err(failed("look for", &path))
    }

    pub(crate) fn open(&self, digest: &Digest) -> Result<File, StoreError> {
        let path = self.path(digest);
        File::open(&path).map_err(failed("open", &path))
    }

    /// The bytes of a small blob, which are checked again: disks forget.
    pub(crate) fn read(&self, digest: &Digest, most: u64) -> Result<Vec<u8>, StoreError> {
        let path = self.path(digest);
        let bytes = read_bounded(self.open(digest)?, most).map_err(failed("read", &path))?;
        check(&path.display().to_string(), digest, &Digest::of(&bytes))?;
        Ok(bytes)
    }

    /// Adds a blob, unless it is there. A stream that ends early, goes on too long or has other bytes adds nothing.
    pub(crate) fn add(
        &self,
        lease: &Lease,
        blob: &Descriptor,
        from: impl Read,
    ) -> Result<(), StoreError> {
        lease.need(Needed::Blob(blob.digest))?;
        if self.has(&blob.digest)? {
            return Ok(());
        }
        let ingest = lease.new_path();
        let written = self.ingest(&ingest, blob, from);
        if written.is_err() {
            // The lease's end removes it at the latest.
            fs::remove_file(&ingest).ok();
        }
        written
    }

    fn ingest(&self, ingest: &Path, blob: &Descriptor, from: impl Read) -> Result<(), StoreError> {
        let mut file = File::create_new(ingest).map_err(failed("make", ingest))?;
        // One byte more tells that it is longer.
        let mut hashing = HashingReader::new(from.take(blob.size.saturating_add(1)));
        io::copy(&mut hashing, &mut file).map_err(failed("write a blob to", ingest))?;
        check(&format!("blob {}", blob.digest), &blob.digest, &hashing.hasher.digest())?;
        file.sync_all().map_err(failed("sync", ingest))?;
        rename_synced(ingest, &self.path(&blob.digest))
    }
}

pub(crate) fn check(what: &str, wanted: &Digest, found: &Digest) -> Result<(), StoreError> {
    if wanted == found {
        return Ok(());
    }
    Err(StoreError::Mismatch { what: what.to_owned(), wanted: *wanted, found: *found })
}
