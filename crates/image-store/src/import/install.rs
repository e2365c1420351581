//! From a configuration and layers to an image in the store.

use std::io::{self, Read};

use crate::content::check;
use crate::digest::{Digest, chain_id};
use crate::error::StoreError;
use crate::index::{ImageRecord, StoredLayer, normalised};
use crate::layers::NewLayer;
use crate::lease::{Lease, Needed};
use crate::oci::{ConfigFile, Descriptor, MAX_LAYERS, Platform};
use crate::store::ImageStore;
use crate::unpack::StreamDigests;
use oarsman_core::image_reference::repository_name;

use super::{ImportProgress, ImportedImage, OnProgress};

/// Where layers come from, by their position from the lowest.
pub(super) trait LayerSource {
    /// The bytes of a layer, and how many there are where that is known.
    fn open_layer(&mut self, position: usize) -> io::Result<(Box<dyn Read + '_>, Option<u64>)>;
}

/// An image whose blobs are in the content store, but for its layers.
pub(super) struct ImageParts<'a> {
    /// For errors.
    pub(super) shown: &'a str,
    pub(super) names: &'a [String],
    /// What a name with a digest means.
    pub(super) target: Option<Digest>,
    /// With their sizes; the last is the configuration.
    pub(super) blobs: Vec<(Digest, u64)>,
    pub(super) config: &'a [u8],
    /// Their descriptors, where there are such.
    pub(super) layers: Vec<Option<&'a Descriptor>>,
    pub(super) platform: &'a Platform,
}

impl ImageParts<'_> {
    fn wrong(&self, what: &str, why: String) -> StoreError {
        StoreError::Image { image: self.shown.to_owned(), what: what.to_owned(), why }
    }

    /// The configuration, if it is that of an image with these layers for this machine.
    fn config(&self) -> Result<ConfigFile, StoreError> {
        let wrong = |why| self.wrong("its configuration", why);
        let config: ConfigFile =
            serde_json::from_slice(self.config).map_err(|error| wrong(error.to_string()))?;
        if !self.platform.runs(&config.platform) {
            let (is, wanted) = (config.platform.shown(), self.platform.shown());
            return Err(wrong(format!("it is for {is}, and this is {wanted}")));
        }
        let (diff_ids, layers) = (config.rootfs.diff_ids.len(), self.layers.len());
        if diff_ids != layers || layers > MAX_LAYERS {
            return Err(wrong(format!(
                "it has {diff_ids} diff ids for {layers} layers, of which {MAX_LAYERS} are allowed"
            )));
        }
        Ok(config)
    }

    /// Full names: those that were given, and each repository with the digest.
    fn names(&self) -> Result<Vec<String>, StoreError> {
        let mut names: Vec<String> =
            self.names.iter().map(|name| normalised(name)).collect::<Result<_, _>>()?;
        if let Some(target) = &self.target {
            let digests = names.iter().map(|name| format!("{}@{target}", repository_name(name)));
            names.extend(digests.collect::<Vec<_>>());
        }
        names.sort();
        names.dedup();
        Ok(names)
    }
}

impl ImageStore {
    /// The layers of an image that are not unpacked. The lease keeps the others.
    ///
    /// # Errors
    /// When the configuration is none, or not that of these layers.
    pub fn layers_to_fetch(
        &self,
        lease: &Lease,
        config: &[u8],
        layers: &[Descriptor],
    ) -> Result<Vec<Descriptor>, StoreError> {
        let wrong = |why: String| StoreError::Image {
            image: Digest::of(config).to_string(),
            what: "its configuration".to_owned(),
            why,
        };
        let config: ConfigFile =
            serde_json::from_slice(config).map_err(|error| wrong(error.to_string()))?;
        let diff_ids = config.rootfs.diff_ids;
        if diff_ids.len() != layers.len() {
            let (ids, layers) = (diff_ids.len(), layers.len());
            return Err(wrong(format!("it has {ids} diff ids for {layers} layers")));
        }
        let (mut below, mut missing) = (None, Vec::new());
        for (diff_id, layer) in diff_ids.iter().zip(layers) {
            let id = chain_id(below.as_ref(), diff_id);
            lease.need(Needed::Layer(id))?;
            if !self.layers.has(&id)? {
                missing.push(layer.clone());
            }
            below = Some(id);
        }
        Ok(missing)
    }

    /// Unpacks the layers that are missing, and adds the image with its names.
    pub(super) fn install(
        &self,
        lease: &Lease,
        parts: &ImageParts<'_>,
        source: &mut dyn LayerSource,
        on_progress: OnProgress<'_>,
    ) -> Result<ImportedImage, StoreError> {
        let (config, names) = (parts.config()?, parts.names()?);
        on_progress(ImportProgress::Image { name: parts.shown, layers: parts.layers.len() });
        let layers = self.install_layers(lease, parts, &config, source, on_progress)?;
        let blobs = parts.blobs.iter().map(|(_, size)| *size);
        let size = layers.iter().map(|layer| layer.size).chain(blobs).sum();
        let id = Digest::of(parts.config);
        let record = ImageRecord {
            blobs: parts.blobs.iter().map(|(digest, _)| *digest).collect(),
            layers,
            size,
            config: config.config,
            platform: config.platform,
            created: config.created,
        };
        self.change_index(lease, |index| {
            // What it was imported from before stays: names with digests mean those blobs.
            let before = index.images.remove(&id).map(|before| before.blobs).unwrap_or_default();
            let known: Vec<Digest> =
                before.into_iter().filter(|blob| !record.blobs.contains(blob)).collect();
            let blobs = known.into_iter().chain(record.blobs).collect();
            index.images.insert(id, ImageRecord { blobs, ..record });
            index.names.extend(names.iter().map(|name| (name.clone(), id)));
            Ok(())
        })?;
        Ok(ImportedImage { id, names })
    }

    fn install_layers(
        &self,
        lease: &Lease,
        parts: &ImageParts<'_>,
        config: &ConfigFile,
        source: &mut dyn LayerSource,
        on_progress: OnProgress<'_>,
    ) -> Result<Vec<StoredLayer>, StoreError> {
        let mut layers: Vec<StoredLayer> = Vec::new();
        // The topmost first.
        let mut below: Vec<Digest> = Vec::new();
        for (position, diff_id) in config.rootfs.diff_ids.iter().enumerate() {
            let chain_id = chain_id(below.first(), diff_id);
            let new = NewLayer {
                image: parts.shown,
                diff_id: *diff_id,
                chain_id,
                below: &below,
                bounds: self.bounds,
            };
            let announced = parts.layers.get(position).copied().flatten();
            let (blob, size) =
                self.install_layer(lease, &new, position, announced, source, on_progress)?;
            layers.push(StoredLayer { diff_id: *diff_id, chain_id, blob, size });
            below.insert(0, chain_id);
        }
        Ok(layers)
    }

    /// The digest and the size of the layer's blob.
    fn install_layer(
        &self,
        lease: &Lease,
        new: &NewLayer<'_>,
        position: usize,
        announced: Option<&Descriptor>,
        source: &mut dyn LayerSource,
        on_progress: OnProgress<'_>,
    ) -> Result<(Digest, u64), StoreError> {
        let layer = position + 1;
        lease.need(Needed::Layer(new.chain_id))?;
        if self.layers.has(&new.chain_id)? {
            on_progress(ImportProgress::Present { layer });
            let record = self.layers.record(&new.chain_id.hex())?;
            return Ok(announced.map_or((record.blob, record.size), |it| (it.digest, it.size)));
        }
        let (blob, size) = source.open_layer(position).map_err(|error| StoreError::Image {
            image: new.image.to_owned(),
            what: format!("layer {layer}, {}", new.diff_id),
            why: error.to_string(),
        })?;
        let mut read = (new.diff_id, 0);
        let mut on_read = |bytes| on_progress(ImportProgress::Reading { layer, bytes, size });
        // One byte more tells that the blob is longer than it should be.
        let blob = blob.take(announced.map_or(u64::MAX, |it| it.size.saturating_add(1)));
        self.layers.add(lease, new, blob, &mut on_read, |digests| {
            read = (digests.compressed, digests.size);
            check_layer(new, announced, digests)
        })?;
        on_progress(ImportProgress::Unpacked { layer });
        Ok(read)
    }
}

fn check_layer(
    new: &NewLayer<'_>,
    announced: Option<&Descriptor>,
    digests: &StreamDigests,
) -> Result<(), StoreError> {
    if let Some(announced) = announced {
        let what = format!("layer {} of {}", announced.digest, new.image);
        check(&what, &announced.digest, &digests.compressed)?;
    }
    let what = format!("the uncompressed layer {} of {}", new.diff_id, new.image);
    check(&what, &new.diff_id, &digests.decompressed)
}
