//! How much disk images and root file systems use.

use std::fs;
use std::path::{Path, PathBuf};

use oarsman_core::disk_usage::DiskUsage;
use oarsman_host::disk_usage::UsageCount;

use crate::error::{StoreError, failed};
use crate::files::names_in;
use crate::partial::PARTIAL;
use crate::store::ImageStore;

/// Entries that are counted between looks at whether all were.
const STEP: usize = 10_000;
/// Blocks of stat.
const BLOCK: u64 = 512;

/// What the store uses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImageStoreUsage {
    /// The directory of the store, on the file system that is used.
    pub directory: PathBuf,
    /// Blobs and unpacked layers.
    pub images: DiskUsage,
    /// The number of blobs.
    pub blobs: u64,
    /// The number of unpacked layers.
    pub layers: u64,
}

impl ImageStore {
    /// What images use. Layers were counted when they were unpacked: this reads no tree.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub fn usage(&self) -> Result<ImageStoreUsage, StoreError> {
        let mut usage = ImageStoreUsage {
            directory: self.directory.clone(),
            images: DiskUsage::default(),
            blobs: 0,
            layers: 0,
        };
        for name in names_in(self.content.directory())? {
            usage.images = usage.images + of_file(&self.content.directory().join(name))?;
            usage.blobs += 1;
        }
        let partial = self.directory.join(PARTIAL);
        for name in names_in(&partial)? {
            usage.images = usage.images + of_file(&partial.join(name))?;
        }
        for name in names_in(self.layers.directory())? {
            match self.layers.usage(&name) {
                Ok(layer) => usage.images = usage.images + layer,
                // It was pruned meanwhile.
                Err(StoreError::Files { source, .. })
                    if source.kind() == std::io::ErrorKind::NotFound =>
                {
                    continue;
                }
                Err(error) => return Err(error),
            }
            usage.layers += 1;
        }
        Ok(usage)
    }

    /// What a container has written to its root file system. This reads the whole tree.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn root_usage(&self, key: &str) -> Result<DiskUsage, StoreError> {
        of_tree(&self.root_directory(key)?.join("fs"))
    }
}

fn of_file(path: &Path) -> Result<DiskUsage, StoreError> {
    use std::os::unix::fs::MetadataExt;
    match fs::symlink_metadata(path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(DiskUsage::default()),
        Err(error) => Err(failed("look at", path)(error)),
        Ok(found) => Ok(DiskUsage { bytes: found.blocks().saturating_mul(BLOCK), inodes: 1 }),
    }
}

/// What a tree holds; nothing when it is not there.
pub(crate) fn of_tree(path: &Path) -> Result<DiskUsage, StoreError> {
    let count = || {
        let mut count = UsageCount::of(path)?;
        while !count.step(STEP)? {}
        Ok::<_, std::io::Error>(count.usage())
    };
    count().map_err(failed("count the files of", path))
}
