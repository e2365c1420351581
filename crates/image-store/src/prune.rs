//! Removes what nothing refers to: no image, no root file system and no piece of work.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use crate::digest::Digest;
use crate::error::{StoreError, failed};
use crate::files::names_in;
use crate::lease::{self, Lease, Needed, StoreLock};
use crate::store::ImageStore;
use crate::usage;

/// What was removed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PruneReport {
    /// The number of blobs.
    pub blobs: u64,
    /// The number of unpacked layers.
    pub layers: u64,
    /// The space of both.
    pub bytes: u64,
}

impl ImageStore {
    /// Removes blobs and layers that nothing refers to. Imports and prepares may run meanwhile: see the module `lease`.
    ///
    /// # Errors
    /// When the store cannot be read or changed; what was found before is removed.
    pub fn prune(&self) -> Result<PruneReport, StoreError> {
        let lease = Lease::begin(&self.directory)?;
        let space = || usage::of_tree(lease.directory()).map(|used| used.bytes);
        let of_lease = space()?;
        let mut report = self.take_out_of_sight(&lease)?;
        report.bytes = space()?.saturating_sub(of_lease);
        // The end of the lease removes the files.
        drop(lease);
        self.remove_left_over()?;
        Ok(report)
    }

    /// Renames what is garbage into the lease's directory.
    fn take_out_of_sight(&self, lease: &Lease) -> Result<PruneReport, StoreError> {
        let lock = StoreLock::exclusive(&self.directory)?;
        let needed = self.needed(&lock)?;
        let is_garbage = |name: &str, kind: fn(Digest) -> Needed| {
            !Digest::from_hex(name).is_some_and(|digest| needed.contains(&kind(digest)))
        };
        let mut report = PruneReport::default();
        for name in names_in(self.content.directory())? {
            if is_garbage(&name, Needed::Blob) {
                move_to(lease, &self.content.directory().join(name))?;
                report.blobs += 1;
            }
        }
        for name in names_in(self.layers.directory())? {
            if is_garbage(&name, Needed::Layer) {
                move_to(lease, &self.layers.directory().join(name))?;
                report.layers += 1;
            }
        }
        let is_needed = |digest| needed.contains(&Needed::Blob(digest));
        for path in self.old_partials(lease.directory(), is_needed)? {
            move_to(lease, &path)?;
            report.blobs += 1;
        }
        Ok(report)
    }

    fn needed(&self, lock: &StoreLock) -> Result<BTreeSet<Needed>, StoreError> {
        let mut needed: BTreeSet<Needed> =
            lease::find(&self.directory, lock)?.needed.into_iter().collect();
        for image in self.read_index()?.images.into_values() {
            needed.extend(image.blobs.into_iter().map(Needed::Blob));
            needed.extend(image.layers.iter().map(|layer| Needed::Layer(layer.chain_id)));
        }
        for root in self.roots()? {
            needed.extend(root.layers.into_iter().map(Needed::Layer));
        }
        Ok(needed)
    }
}

fn move_to(lease: &Lease, path: &Path) -> Result<(), StoreError> {
    fs::rename(path, lease.new_path()).map_err(failed("remove", path))
}
