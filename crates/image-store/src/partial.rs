//! Blobs that arrive in pieces, maybe over several attempts: what was written stays for the next one.
//!
//! The file of a blob is locked by who writes it. It becomes visible as a blob by one rename, after all of it was checked and synced; one
//! whose bytes are wrong is removed, so that the next attempt begins anew.

use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;

use crate::content::check;
use crate::digest::{Digest, Hasher};
use crate::error::{StoreError, failed};
use crate::files::rename_synced;
use crate::lease::{Lease, Needed};
use crate::oci::Descriptor;
use crate::store::ImageStore;

/// What was written before is read in pieces of this size.
const CHUNK: usize = 1 << 20;
/// What no pull goes on with for this long is garbage.
const MAX_AGE_SECONDS: i64 = 3600;

/// What is there of a blob.
#[derive(Debug)]
pub enum PartialOutcome {
    /// All of it.
    Whole,
    /// Another thread or process is writing it.
    Busy,
    /// A part, which may be none.
    Partial(Box<PartialBlob>),
}

/// A blob that is not whole. Dropped, it stays as it is.
#[derive(Debug)]
pub struct PartialBlob {
    /// Locked as long as this lives.
    file: File,
    path: PathBuf,
    blob: Descriptor,
    target: PathBuf,
    hasher: Hasher,
}

impl ImageStore {
    /// The file for a blob's bytes, with what an earlier attempt has written.
    ///
    /// # Errors
    /// When it cannot be opened or read.
    pub fn open_partial(
        &self,
        lease: &Lease,
        blob: &Descriptor,
    ) -> Result<PartialOutcome, StoreError> {
        lease.need(Needed::Blob(blob.digest))?;
        if self.content.has(&blob.digest)? {
            return Ok(PartialOutcome::Whole);
        }
        let path = self.directory.join(PARTIAL).join(blob.digest.hex());
        let opened =
            File::options().read(true).write(true).create(true).truncate(false).open(&path);
        let file = opened.map_err(failed("open", &path))?;
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Err(Errno::WOULDBLOCK) => return Ok(PartialOutcome::Busy),
            Err(error) => return Err(failed("take the lock of", &path)(error)),
            Ok(()) => {}
        }
        // Another writer may have finished or removed the file between the two calls.
        if !is_at(&file, &path).map_err(failed("look at", &path))? {
            return Ok(PartialOutcome::Busy);
        }
        let target = self.content.path(&blob.digest);
        let mut partial =
            PartialBlob { file, path, blob: blob.clone(), target, hasher: Hasher::new() };
        partial.hash_what_is_there()?;
        Ok(PartialOutcome::Partial(Box::new(partial)))
    }

    /// Files of blobs that no work needs and no pull has gone on with for an hour. The file system's own clock tells, by a file that
    /// was made now.
    pub(crate) fn old_partials(
        &self,
        made_now: &Path,
        is_needed: impl Fn(Digest) -> bool,
    ) -> Result<Vec<PathBuf>, StoreError> {
        let modified = |path: &Path| fs::metadata(path).map(|metadata| metadata.mtime());
        let now = modified(made_now).map_err(failed("look at", made_now))?;
        let mut old = Vec::new();
        for name in crate::files::names_in(&self.directory.join(PARTIAL))? {
            let path = self.directory.join(PARTIAL).join(&name);
            let is_kept = Digest::from_hex(&name).is_some_and(&is_needed);
            // One that is gone meanwhile was finished.
            let is_old = modified(&path).is_ok_and(|then| now - then > MAX_AGE_SECONDS);
            if is_old && !is_kept {
                old.push(path);
            }
        }
        Ok(old)
    }
}

/// The directory of such files, below the store's.
pub(crate) const PARTIAL: &str = "content/partial";

fn is_at(file: &File, path: &Path) -> io::Result<bool> {
    let opened = file.metadata()?;
    match fs::metadata(path) {
        Ok(found) => Ok((found.dev(), found.ino()) == (opened.dev(), opened.ino())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

impl PartialBlob {
    /// How many bytes there are; the next one to be appended has this number.
    pub fn offset(&self) -> u64 {
        self.hasher.bytes()
    }

    /// Appends bytes.
    ///
    /// # Errors
    /// When there are more than the blob has, or they cannot be written. On a full disk the file is removed: it would keep the disk full.
    pub fn append(mut self, pieces: &[impl AsRef<[u8]>]) -> Result<Self, StoreError> {
        for piece in pieces {
            let piece = piece.as_ref();
            if self.offset() + piece.len() as u64 > self.blob.size {
                let size = self.blob.size;
                return Err(self.refuse(format!("it has more than the {size} bytes announced")));
            }
            if let Err(error) = self.file.write_all(piece) {
                let failure = failed("write a blob to", &self.path)(error);
                self.remove()?;
                return Err(failure);
            }
            self.hasher.add(piece);
        }
        Ok(self)
    }

    /// Makes the whole blob visible.
    ///
    /// # Errors
    /// When bytes are missing or wrong; then the file is removed.
    pub fn finish(self) -> Result<(), StoreError> {
        let (found, size) = (self.offset(), self.blob.size);
        if found != size {
            return Err(
                self.refuse(format!("it has {found} bytes, but its descriptor says {size}"))
            );
        }
        let what = format!("blob {}", self.blob.digest);
        if let Err(wrong) = check(&what, &self.blob.digest, &self.hasher.digest()) {
            self.remove()?;
            return Err(wrong);
        }
        self.file.sync_all().map_err(failed("sync", &self.path))?;
        rename_synced(&self.path, &self.target)
    }

    fn refuse(self, why: String) -> StoreError {
        let blob = self.blob.digest.to_string();
        match self.remove() {
            Ok(()) => StoreError::Image { image: blob, what: "its bytes".to_owned(), why },
            Err(error) => error,
        }
    }

    fn remove(&self) -> Result<(), StoreError> {
        match fs::remove_file(&self.path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                Err(failed("remove", &self.path)(error))
            }
            _ => Ok(()),
        }
    }

    /// The digest goes over all bytes. What is longer than the blob is begun anew.
    fn hash_what_is_there(&mut self) -> Result<(), StoreError> {
        let length = self.file.metadata().map_err(failed("look at", &self.path))?.len();
        if length > self.blob.size {
            self.file.set_len(0).map_err(failed("empty", &self.path))?;
        }
        let mut chunk = vec![0; CHUNK];
        loop {
            let read = self.file.read(&mut chunk).map_err(failed("read", &self.path))?;
            if read == 0 {
                let at = SeekFrom::Start(self.hasher.bytes());
                return self.file.seek(at).map(drop).map_err(failed("read", &self.path));
            }
            self.hasher.add(&chunk[..read]);
        }
    }
}
