//! The store as a whole.

use std::fs::DirBuilder;
use std::io::Read;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use crate::content::Content;
use crate::digest::Digest;
use crate::error::{StoreError, failed};
use crate::files::remove_whole_tree;
use crate::layers::Layers;
use crate::lease::{self, Lease, StoreLock};
use crate::mapped::MAPPED;
use crate::oci::Descriptor;
use crate::partial::PARTIAL;
use crate::unpack::UnpackBounds;

/// Images below one directory. Any number of threads and processes may use one directory at a time.
#[derive(Clone, Debug)]
pub struct ImageStore {
    pub(crate) directory: PathBuf,
    pub(crate) bounds: UnpackBounds,
    pub(crate) content: Content,
    pub(crate) layers: Layers,
}

/// `empty/a` and `empty/b` are lower layers of images that have none: overlayfs wants two where there is no writable one. `mapped` is where the
/// store is mounted once more, in a mount namespace of a thread's own.
const DIRECTORIES: [&str; 8] =
    ["content/blobs/sha256", PARTIAL, "layers", "roots", "leases", "empty/a", "empty/b", MAPPED];

impl ImageStore {
    /// Opens a store, makes it where there is none, and removes what killed processes and power failures have left.
    ///
    /// # Errors
    /// When the directory cannot be made or written.
    pub fn open(directory: &Path, bounds: UnpackBounds) -> Result<Self, StoreError> {
        // Layers hold files with set-user-id: only root comes near them.
        let make = |path: &Path| {
            let made = DirBuilder::new().recursive(true).mode(0o700).create(path);
            made.map_err(failed("make the directory", path))
        };
        make(directory)?;
        let directory =
            directory.canonicalize().map_err(failed("find the directory", directory))?;
        for name in DIRECTORIES {
            make(&directory.join(name))?;
        }
        // The root of a container without layers is readable for all its users.
        for name in ["a", "b"] {
            let path = directory.join("empty").join(name);
            rustix::fs::chmod(&path, rustix::fs::Mode::from_raw_mode(0o755))
                .map_err(failed("set the mode of", &path))?;
        }
        let store = Self {
            content: Content::new(&directory),
            layers: Layers::new(&directory),
            bounds,
            directory,
        };
        store.remove_left_over()?;
        store.remove_unreadable_roots()?;
        Ok(store)
    }

    /// The directory of the store.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// Begins a piece of work of several steps, such as a pull: `prune` leaves its blobs alone until it is dropped.
    ///
    /// # Errors
    /// When its directory cannot be made.
    pub fn begin_lease(&self) -> Result<Lease, StoreError> {
        Lease::begin(&self.directory)
    }

    /// Adds a blob, unless it is there; the bytes must have the digest and size of the descriptor.
    ///
    /// # Errors
    /// When they have not, or the disk is full; then nothing was added.
    pub fn add_blob(
        &self,
        lease: &Lease,
        blob: &Descriptor,
        from: impl Read,
    ) -> Result<(), StoreError> {
        self.content.add(lease, blob, from)
    }

    /// Whether a blob is there.
    ///
    /// # Errors
    /// When the kernel does not tell.
    pub fn has_blob(&self, digest: &Digest) -> Result<bool, StoreError> {
        self.content.has(digest)
    }

    /// The bytes of a small blob, such as a configuration, which are checked again.
    ///
    /// # Errors
    /// When it is not there, has more than so many bytes, or was changed on the disk.
    pub fn read_blob(&self, digest: &Digest, most: u64) -> Result<Vec<u8>, StoreError> {
        self.content.read(digest, most)
    }

    /// Removes the directories of leases whose owners are gone.
    pub(crate) fn remove_left_over(&self) -> Result<(), StoreError> {
        let lock = StoreLock::exclusive(&self.directory)?;
        let found = lease::find(&self.directory, &lock)?;
        drop(lock);
        for (path, _locked) in &found.left_over {
            remove_whole_tree(path)?;
        }
        Ok(())
    }
}
