//! Root file systems made of images: of containers, with a writable layer, and of image volumes, without.

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use oarsman_host::files::is_plain_name;
use rustix::fs::{CWD, Mode, RenameFlags, chmod, chown, renameat_with};
use rustix::io::Errno;
use rustix::mount::{MountAttrFlags, UnmountFlags, unmount};
use serde::{Deserialize, Serialize};

use crate::digest::Digest;
use crate::error::{StoreError, failed};
use crate::files::{names_in, read_bounded};
use crate::lease::{Lease, StoreLock};
use crate::mapped::{MappedStore, MappedUsers};
use crate::overlay::{OverlayLayers, mount_at};
use crate::store::ImageStore;

const RECORD: &str = "root.json";
const FILES: &str = "fs";
const WORK: &str = "work";
/// 500 digests have fewer bytes.
const MAX_RECORD: u64 = 1 << 20;
const MAX_KEY: usize = 255;

/// What a root file system is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum RootKind {
    /// A container, which may write.
    Writable,
    /// An image volume.
    ReadOnly,
}

/// How an image volume is mounted, beside read-only.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReadOnlyOptions {
    /// Whether programs in it can be executed.
    pub exec: bool,
}

/// A root file system that is prepared.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub struct RootFilesystem {
    /// The name that its user gave it.
    pub key: String,
    /// The image's id.
    pub image: Digest,
    /// Whether it can be written to.
    pub kind: RootKind,
    /// The chain ids of its layers, the topmost first.
    pub layers: Vec<Digest>,
}

impl ImageStore {
    /// Prepares a root file system of an image under a key of the caller's choice. Its layers stay until it is removed, also when the
    /// image is removed. To repeat the call does no harm. Nothing of it is synced: it is for what runs in this boot.
    ///
    /// # Errors
    /// When there is no such image, or the key is used for something else.
    pub fn prepare(
        &self,
        key: &str,
        image: &Digest,
        kind: RootKind,
    ) -> Result<RootFilesystem, StoreError> {
        let directory = self.root_directory(key)?;
        let lease = Lease::begin(&self.directory)?;
        // From the look for the layers until the record says that they are used.
        let _lock = StoreLock::shared(&self.directory)?;
        let wanted = self.new_root(key, image, kind)?;
        let place = lease.new_path();
        wanted.write(&place)?;
        match renameat_with(CWD, &place, CWD, &directory, RenameFlags::NOREPLACE) {
            Ok(()) => Ok(wanted),
            Err(Errno::EXIST | Errno::NOTEMPTY) => {
                let found = self.root(key)?;
                if found == wanted { Ok(found) } else { Err(in_use(&found, &wanted)) }
            }
            Err(error) => Err(failed("make", &directory)(error)),
        }
    }

    fn new_root(
        &self,
        key: &str,
        image: &Digest,
        kind: RootKind,
    ) -> Result<RootFilesystem, StoreError> {
        let index = self.read_index()?;
        let none = || StoreError::NoImage { wanted: image.to_string() };
        let record = index.images.get(image).ok_or_else(none)?;
        let layers: Vec<Digest> = record.layers.iter().rev().map(|layer| layer.chain_id).collect();
        let hiding = layers.iter().position(|layer| self.layers.hides_all_below(layer));
        let layers = layers[..hiding.map_or(layers.len(), |at| at + 1)].to_vec();
        for layer in &layers {
            if !self.layers.has(layer)? {
                return Err(StoreError::LayerGone { image: image.to_string(), layer: *layer });
            }
        }
        Ok(RootFilesystem { key: key.to_owned(), image: *image, kind, layers })
    }

    /// Mounts a prepared root file system at a directory. One that can be written to is mounted once: what is written is not synced, neither when a
    /// program asks for it nor when it is unmounted, so that the kernel refuses to mount it again.
    ///
    /// # Errors
    /// When it is not prepared, or the kernel refuses.
    pub fn mount(&self, key: &str, target: &Path) -> Result<(), StoreError> {
        self.mount_with(key, target, ReadOnlyOptions { exec: true })
    }

    /// The same with options for image volumes.
    ///
    /// # Errors
    /// As [`Self::mount`].
    pub fn mount_with(
        &self,
        key: &str,
        target: &Path,
        options: ReadOnlyOptions,
    ) -> Result<(), StoreError> {
        let root = self.root(key)?;
        let layers = self.overlay_layers(&root)?;
        let attributes = attributes(&root, options);
        mount_at(&layers, target, attributes).map_err(failed("mount a root file system at", target))
    }

    /// The same in a user namespace: files of the image belong to the users that its ids are mapped to, and what is written to it is written as those.
    /// Linux 5.19, and a file system of the store that can map users.
    ///
    /// # Errors
    /// As [`Self::mount`], and when that cannot be done.
    pub fn mount_mapped(
        &self,
        key: &str,
        target: &Path,
        options: ReadOnlyOptions,
        users: MappedUsers<'_>,
    ) -> Result<(), StoreError> {
        let root = self.root(key)?;
        let layers = self.overlay_layers(&root)?;
        if let Some((upper, _)) = &layers.upper {
            chown(upper, Some(users.root_uid), Some(users.root_gid))
                .map_err(failed("give away", upper))?;
        }
        let mapped = MappedStore { directory: &self.directory, users };
        let mounted = mapped.mount(&layers, target, attributes(&root, options));
        mounted.map_err(failed("mount a root file system for a user namespace at", target))
    }

    /// The directories that are mounted over each other.
    pub(crate) fn overlay_layers(
        &self,
        root: &RootFilesystem,
    ) -> Result<OverlayLayers, StoreError> {
        let directory = self.root_directory(&root.key)?;
        let mut lower: Vec<PathBuf> =
            root.layers.iter().map(|layer| self.layers.files(layer)).collect();
        let is_writable = root.kind == RootKind::Writable;
        let fewest = if is_writable { 1 } else { 2 };
        let empty = ["a", "b"].map(|name| self.directory.join("empty").join(name));
        lower.extend(empty.into_iter().take(fewest_missing(fewest, root.layers.len())));
        let upper = is_writable.then(|| (directory.join(FILES), directory.join(WORK)));
        Ok(OverlayLayers { lower, upper })
    }

    /// Unmounts what is mounted at a directory; nothing there is no error. One that is in use is detached, and ends with its last user.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn unmount(&self, target: &Path) -> Result<(), StoreError> {
        let flags = UnmountFlags::NOFOLLOW | UnmountFlags::DETACH;
        match unmount(target, flags) {
            // EINVAL: it is no mount point.
            Ok(()) | Err(Errno::INVAL | Errno::NOENT) => Ok(()),
            Err(error) => Err(failed("unmount", target)(error)),
        }
    }

    /// Removes a root file system with all that was written to it; one that is not there is no error. It must not be mounted.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn remove_root(&self, key: &str) -> Result<(), StoreError> {
        let directory = self.root_directory(key)?;
        let lease = Lease::begin(&self.directory)?;
        match fs::rename(&directory, lease.new_path()) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
            Err(error) => Err(failed("remove", &directory)(error)),
            // The end of the lease removes the files; what it cannot is removed at the next open.
            Ok(()) => Ok(()),
        }
    }

    /// A root file system that is prepared.
    ///
    /// # Errors
    /// When there is none of that key, or its record cannot be read.
    pub fn root(&self, key: &str) -> Result<RootFilesystem, StoreError> {
        let path = self.root_directory(key)?.join(RECORD);
        let file = match File::open(&path) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                return Err(StoreError::NoRoot { key: key.to_owned() });
            }
            other => other.map_err(failed("open", &path))?,
        };
        let bytes = read_bounded(file, MAX_RECORD).map_err(failed("read", &path))?;
        serde_json::from_slice(&bytes)
            .map_err(|error| StoreError::Damaged { path, why: error.to_string() })
    }

    /// All that are prepared.
    ///
    /// # Errors
    /// When one cannot be read.
    pub fn roots(&self) -> Result<Vec<RootFilesystem>, StoreError> {
        let mut roots = Vec::new();
        for key in names_in(&self.directory.join("roots"))? {
            match self.root(&key) {
                // It was removed meanwhile.
                Err(StoreError::NoRoot { .. }) => {}
                other => roots.push(other?),
            }
        }
        Ok(roots)
    }

    /// Removes those whose records a power failure has lost. Nothing can use them: they were prepared in a boot that is over.
    pub(crate) fn remove_unreadable_roots(&self) -> Result<(), StoreError> {
        for key in names_in(&self.directory.join("roots"))? {
            if matches!(self.root(&key), Err(StoreError::NoRoot { .. } | StoreError::Damaged { .. })) {
                self.remove_root(&key)?;
            }
        }
        Ok(())
    }

    /// The directory of a root file system.
    pub(crate) fn root_directory(&self, key: &str) -> Result<PathBuf, StoreError> {
        if is_plain_name(key) && key.len() <= MAX_KEY {
            return Ok(self.directory.join("roots").join(key));
        }
        Err(StoreError::InvalidKey { key: key.to_owned() })
    }
}

fn attributes(root: &RootFilesystem, options: ReadOnlyOptions) -> MountAttrFlags {
    let mut attributes = MountAttrFlags::empty();
    if root.kind == RootKind::ReadOnly {
        attributes |= MountAttrFlags::MOUNT_ATTR_RDONLY | MountAttrFlags::MOUNT_ATTR_NOSUID;
        attributes |= MountAttrFlags::MOUNT_ATTR_NODEV;
        if !options.exec {
            attributes |= MountAttrFlags::MOUNT_ATTR_NOEXEC;
        }
    }
    attributes
}

/// How many empty layers make up for those that an image does not have.
fn fewest_missing(fewest: usize, layers: usize) -> usize {
    fewest.saturating_sub(layers)
}

impl RootFilesystem {
    fn write(&self, place: &Path) -> Result<(), StoreError> {
        let make = |path: &Path, mode| {
            fs::create_dir(path).map_err(failed("make the directory", path))?;
            chmod(path, Mode::from_raw_mode(mode)).map_err(failed("set the mode of", path))
        };
        make(place, 0o700)?;
        if self.kind == RootKind::Writable {
            make(&place.join(FILES), 0o755)?;
            make(&place.join(WORK), 0o700)?;
        }
        let text = serde_json::to_vec(self).map_err(|error| StoreError::Damaged {
            path: place.to_owned(),
            why: error.to_string(),
        })?;
        // A power failure ends the boot, and with it all that could use this: see `remove_unreadable_roots`.
        let record = place.join(RECORD);
        fs::write(&record, text).map_err(failed("write", &record))
    }
}

fn in_use(found: &RootFilesystem, wanted: &RootFilesystem) -> StoreError {
    let shown = |root: &RootFilesystem| format!("{:?} use of image {}", root.kind, root.image);
    StoreError::KeyInUse { key: wanted.key.clone(), found: shown(found), wanted: shown(wanted) }
}
