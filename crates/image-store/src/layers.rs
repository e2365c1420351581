//! Unpacked layers by chain id: a layer and all below it, because a directory that it does not describe is as in those.

use std::fs::{self, File};
use std::io::Read;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use oarsman_core::disk_usage::DiskUsage;
use rustix::fs::{CWD, Mode, OFlags, RenameFlags, lgetxattr, openat, renameat_with, syncfs};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};

use crate::digest::Digest;
use crate::error::{LayerError, StoreError, failed};
use crate::files::{read_bounded, sync_parent, write_synced};
use crate::lease::Lease;
use crate::unpack::{LayerStream, StreamDigests, UnpackBounds, UnpackError, Unpacker};
use crate::usage;

const RECORD: &str = "layer.json";
const MAX_RECORD: u64 = 4096;

/// The unpacked layers of a store.
#[derive(Clone, Debug)]
pub(crate) struct Layers {
    directory: PathBuf,
}

/// What is known of a layer that is unpacked.
#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
pub(crate) struct LayerRecord {
    pub(crate) diff_id: Digest,
    /// The blob that it was unpacked from.
    pub(crate) blob: Digest,
    pub(crate) size: u64,
    /// What it takes on the disk.
    pub(crate) bytes: u64,
    pub(crate) inodes: u64,
}

/// A layer to unpack.
pub(crate) struct NewLayer<'a> {
    /// For errors.
    pub(crate) image: &'a str,
    pub(crate) diff_id: Digest,
    pub(crate) chain_id: Digest,
    /// Those below it, the topmost first.
    pub(crate) below: &'a [Digest],
    pub(crate) bounds: UnpackBounds,
}

impl Layers {
    pub(crate) fn new(store: &Path) -> Self {
        Self { directory: store.join("layers") }
    }

    pub(crate) fn directory(&self) -> &Path {
        &self.directory
    }

    /// The directory with the layer's files.
    pub(crate) fn files(&self, chain_id: &Digest) -> PathBuf {
        self.directory.join(chain_id.hex()).join("fs")
    }

    pub(crate) fn has(&self, chain_id: &Digest) -> Result<bool, StoreError> {
        let path = self.directory.join(chain_id.hex());
        path.try_exists().map_err(failed("look for", &path))
    }

    /// What is known of the layer in a directory of this name.
    pub(crate) fn record(&self, name: &str) -> Result<LayerRecord, StoreError> {
        let path = self.directory.join(name).join(RECORD);
        let read = || read_bounded(File::open(&path)?, MAX_RECORD);
        let bytes = read().map_err(failed("read", &path))?;
        serde_json::from_slice(&bytes)
            .map_err(|error| StoreError::Damaged { path: path.clone(), why: error.to_string() })
    }

    pub(crate) fn usage(&self, name: &str) -> Result<DiskUsage, StoreError> {
        let record = self.record(name)?;
        Ok(DiskUsage { bytes: record.bytes, inodes: record.inodes })
    }

    /// Whether the layer's root hides all layers below, which overlayfs itself does not look at.
    pub(crate) fn hides_all_below(&self, chain_id: &Digest) -> bool {
        let mut value = [0_u8; 8];
        let read = lgetxattr(self.files(chain_id), "trusted.overlay.opaque", &mut value[..]);
        read.is_ok_and(|length| value[..length] == *b"y")
    }

    /// Unpacks a layer where no reader looks. `check` says whether the digests are those that were announced; only then it appears,
    /// unless another import was faster.
    pub(crate) fn add(
        &self,
        lease: &Lease,
        new: &NewLayer<'_>,
        blob: impl Read,
        on_read: &mut dyn FnMut(u64),
        check: impl FnOnce(&StreamDigests) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        let place = lease.new_path();
        let files = place.join("fs");
        fs::create_dir_all(&files).map_err(failed("make the directory", &files))?;
        let root = open_directory(&files)?;
        rustix::fs::fchmod(&root, Mode::from_raw_mode(0o755)).map_err(failed("set up", &files))?;
        let below = new.below.iter().map(|layer| open_directory(&self.files(layer)));
        let below: Vec<OwnedFd> = below.collect::<Result<_, _>>()?;
        let digests = unpack(new, root, &below, blob, on_read)?;
        check(&digests)?;
        self.publish(&place, new, &digests)
    }

    fn publish(
        &self,
        place: &Path,
        new: &NewLayer<'_>,
        digests: &StreamDigests,
    ) -> Result<(), StoreError> {
        let files = &place.join("fs");
        // All files at once: one call for each costs more than the file system's own order.
        syncfs(open_directory(files)?).map_err(failed("sync", files))?;
        let usage = usage::of_tree(files)?;
        let record = LayerRecord {
            diff_id: new.diff_id,
            blob: digests.compressed,
            size: digests.size,
            bytes: usage.bytes,
            inodes: usage.inodes,
        };
        let text = serde_json::to_vec(&record).map_err(|error| StoreError::Damaged {
            path: place.to_owned(),
            why: error.to_string(),
        })?;
        write_synced(&place.join(RECORD), &text)?;
        sync_parent(&place.join(RECORD))?;
        let path = self.directory.join(new.chain_id.hex());
        match renameat_with(CWD, place, CWD, &path, RenameFlags::NOREPLACE) {
            Err(Errno::EXIST | Errno::NOTEMPTY) => Ok(()),
            Err(error) => Err(failed("rename a layer to", &path)(error)),
            Ok(()) => sync_parent(&path),
        }
    }
}

fn unpack(
    new: &NewLayer<'_>,
    root: OwnedFd,
    below: &[OwnedFd],
    blob: impl Read,
    on_read: &mut dyn FnMut(u64),
) -> Result<StreamDigests, StoreError> {
    let unpacked = || -> Result<StreamDigests, UnpackError> {
        let stream = LayerStream::new(blob, new.bounds, on_read)?;
        Unpacker::new(root, below, new.bounds).unpack(stream)?.finish()
    };
    unpacked().map_err(|source| {
        let (image, layer) = (new.image.to_owned(), new.diff_id);
        StoreError::Layer(Box::new(LayerError { image, layer, source }))
    })
}

fn open_directory(path: &Path) -> Result<OwnedFd, StoreError> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    openat(CWD, path, flags, Mode::empty()).map_err(failed("open", path))
}
