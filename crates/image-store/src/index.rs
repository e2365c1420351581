//! The images and their names: one file, which is replaced as a whole.

use std::collections::BTreeMap;
use std::fs::File;
use std::path::PathBuf;

use oarsman_core::image_reference::{full_name, repository_name, with_default_tag};
use serde::{Deserialize, Serialize};

use crate::digest::Digest;
use crate::error::{StoreError, failed};
use crate::files::{read_bounded, rename_synced, write_synced};
use crate::lease::{Lease, StoreLock};
use crate::oci::{ImageRunConfig, Platform};
use crate::store::ImageStore;

/// Ten thousand images with long configurations.
const MAX_INDEX: u64 = 256 << 20;
const VERSION: u32 = 1;
/// The fewest digits of an id that stand for the whole.
const MIN_ID_DIGITS: usize = 4;

/// The content of the file.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) struct ImageIndex {
    version: u32,
    /// By id.
    pub(crate) images: BTreeMap<Digest, ImageRecord>,
    /// Ids by full name.
    pub(crate) names: BTreeMap<String, Digest>,
}

/// One image.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub(crate) struct ImageRecord {
    /// Its index, manifest and configuration, as far as they are known.
    pub(crate) blobs: Vec<Digest>,
    /// The lowest first.
    pub(crate) layers: Vec<StoredLayer>,
    pub(crate) size: u64,
    pub(crate) config: ImageRunConfig,
    pub(crate) platform: Platform,
    pub(crate) created: Option<String>,
}

/// A layer of an image.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub struct StoredLayer {
    /// The digest of the uncompressed archive.
    pub diff_id: Digest,
    /// The digest of this layer and all below it.
    pub chain_id: Digest,
    /// The digest of the blob it was unpacked from.
    pub blob: Digest,
    /// The size of that blob.
    pub size: u64,
}

/// An image of the store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredImage {
    /// The digest of its configuration.
    pub id: Digest,
    /// Full names with tags, such as `docker.io/library/busybox:1.36`.
    pub tags: Vec<String>,
    /// Full names with digests.
    pub digests: Vec<String>,
    /// The lowest first.
    pub layers: Vec<StoredLayer>,
    /// The bytes of its blobs, compressed, as containerd counts them.
    pub size: u64,
    /// How it wants to be run.
    pub config: ImageRunConfig,
    /// The machine it is for.
    pub platform: Platform,
    /// When it was built, as its configuration says it.
    pub created: Option<String>,
}

impl ImageIndex {
    fn empty() -> Self {
        Self { version: VERSION, images: BTreeMap::new(), names: BTreeMap::new() }
    }

    fn stored(&self, id: &Digest) -> Option<StoredImage> {
        let record = self.images.get(id)?.clone();
        let names = self.names.iter().filter(|(_, of)| *of == id).map(|(name, _)| name.clone());
        let (digests, tags) = names.partition(|name| name.contains('@'));
        let ImageRecord { layers, size, config, platform, created, .. } = record;
        Some(StoredImage { id: *id, tags, digests, layers, size, config, platform, created })
    }

    /// By name, by id, or by the beginning of an id.
    fn find(&self, wanted: &str) -> Result<Digest, StoreError> {
        let none = || StoreError::NoImage { wanted: wanted.to_owned() };
        let hex = wanted.strip_prefix("sha256:").unwrap_or(wanted);
        let by_name = with_default_tag(wanted).ok().map(|name| full_name(&name));
        if let Some(id) = by_name.and_then(|name| self.names.get(&name)) {
            return Ok(*id);
        }
        if hex.len() < MIN_ID_DIGITS || !hex.bytes().all(|digit| digit.is_ascii_hexdigit()) {
            return Err(none());
        }
        let mut matching = self.images.keys().filter(|id| id.hex().starts_with(hex));
        match (matching.next(), matching.next()) {
            (None, _) => Err(none()),
            (Some(id), None) => Ok(*id),
            (Some(_), Some(_)) => Err(StoreError::Ambiguous { wanted: wanted.to_owned() }),
        }
    }

    /// Removes a name; with the last tag of a repository its digests go, and with the last name the image goes.
    fn remove_name(&mut self, name: &str) -> Result<(), StoreError> {
        let Some(id) = self.names.remove(name) else {
            return Err(StoreError::NoImage { wanted: name.to_owned() });
        };
        let repository = repository_name(name);
        let is_same = |other: &str| repository_name(other) == repository;
        let has_tag = self
            .names
            .iter()
            .any(|(other, of)| *of == id && !other.contains('@') && is_same(other));
        if !has_tag {
            self.names.retain(|other, of| *of != id || !is_same(other));
        }
        if !self.names.values().any(|of| *of == id) {
            self.images.remove(&id);
        }
        Ok(())
    }
}

/// The full name of an image, which two spellings share.
pub(crate) fn normalised(name: &str) -> Result<String, StoreError> {
    Ok(full_name(&with_default_tag(name)?))
}

impl ImageStore {
    fn index_path(&self) -> PathBuf {
        self.directory.join("images.json")
    }

    /// The list as it is; it is replaced as a whole, so no lock is needed to read it.
    pub(crate) fn read_index(&self) -> Result<ImageIndex, StoreError> {
        let path = self.index_path();
        let file = match File::open(&path) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                return Ok(ImageIndex::empty());
            }
            other => other.map_err(failed("open", &path))?,
        };
        let bytes = read_bounded(file, MAX_INDEX).map_err(failed("read", &path))?;
        parse(&bytes).map_err(|why| StoreError::Damaged { path, why })
    }

    /// Changes the list; no other process does meanwhile.
    pub(crate) fn change_index(
        &self,
        lease: &Lease,
        change: impl FnOnce(&mut ImageIndex) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        let _lock = StoreLock::exclusive(&self.directory)?;
        let mut index = self.read_index()?;
        change(&mut index)?;
        let text = serialised(&index).map_err(|error| StoreError::Damaged {
            path: self.index_path(),
            why: error.to_string(),
        })?;
        let fresh = lease.new_path();
        write_synced(&fresh, &text)?;
        rename_synced(&fresh, &self.index_path())
    }

    /// All images, by id.
    ///
    /// # Errors
    /// When the list cannot be read.
    pub fn images(&self) -> Result<Vec<StoredImage>, StoreError> {
        let index = self.read_index()?;
        Ok(index.images.keys().filter_map(|id| index.stored(id)).collect())
    }

    /// An image by name, by id, or by the beginning of its id.
    ///
    /// # Errors
    /// When there is none, or several.
    pub fn image(&self, wanted: &str) -> Result<StoredImage, StoreError> {
        let index = self.read_index()?;
        let id = index.find(wanted)?;
        index.stored(&id).ok_or_else(|| StoreError::NoImage { wanted: wanted.to_owned() })
    }

    /// Gives an image one more name, which is taken from another image if it has it.
    ///
    /// # Errors
    /// When there is no such image, or the name is none.
    pub fn tag(&self, image: &str, name: &str) -> Result<(), StoreError> {
        let name = normalised(name)?;
        let lease = Lease::begin(&self.directory)?;
        self.change_index(&lease, |index| {
            let id = index.find(image)?;
            index.names.insert(name, id);
            Ok(())
        })
    }

    /// Removes one name of an image, and with its last name the image. Its files stay until `prune`.
    ///
    /// # Errors
    /// When there is no such name.
    pub fn remove_name(&self, name: &str) -> Result<(), StoreError> {
        let name = normalised(name)?;
        let lease = Lease::begin(&self.directory)?;
        self.change_index(&lease, |index| index.remove_name(&name))
    }

    /// Removes an image with all its names; one that is not there is no error. Its files stay until `prune`, and its layers as long
    /// as a root file system is made of them.
    ///
    /// # Errors
    /// When the list cannot be changed.
    pub fn remove_image(&self, id: &Digest) -> Result<(), StoreError> {
        let lease = Lease::begin(&self.directory)?;
        self.change_index(&lease, |index| {
            index.images.remove(id);
            index.names.retain(|_, of| of != id);
            Ok(())
        })
    }
}

/// The first line is the digest of the rest: a flipped bit must not become another name or another layer.
fn serialised(index: &ImageIndex) -> serde_json::Result<Vec<u8>> {
    let text = serde_json::to_vec(index)?;
    Ok([Digest::of(&text).to_string().as_bytes(), b"\n", &text].concat())
}

fn parse(bytes: &[u8]) -> Result<ImageIndex, String> {
    let line = bytes.iter().position(|byte| *byte == b'\n').ok_or("it has no first line")?;
    let (digest, text) = (&bytes[..line], &bytes[line + 1..]);
    if digest != Digest::of(text).to_string().as_bytes() {
        return Err("its checksum is wrong".to_owned());
    }
    let index: ImageIndex = serde_json::from_slice(text).map_err(|error| error.to_string())?;
    match index.version {
        VERSION => Ok(index),
        other => Err(format!("it is of version {other}, and this program knows {VERSION}")),
    }
}
