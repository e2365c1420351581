//! From a descriptor to a manifest for this machine, its configuration and its layers.

use std::io::{self, Read};

use crate::digest::Digest;
use crate::error::StoreError;
use crate::files::read_bounded;
use crate::oci::{Descriptor, Document, MAX_CONFIG, MAX_MANIFEST, Platform};

use super::BlobSource;
use super::install::LayerSource;
use super::layout::NamedImage;

/// Indexes that lead to indexes: no tool makes more.
const MAX_DEPTH: usize = 4;

/// An image that was found, without its layers.
pub(super) struct ResolvedImage {
    /// What its name leads to: an index or a manifest.
    pub(super) target: Option<Digest>,
    /// Indexes, manifest and configuration.
    pub(super) blobs: Vec<(Descriptor, Vec<u8>)>,
    pub(super) config: Vec<u8>,
    pub(super) layers: Vec<Descriptor>,
}

/// What a manifest or an index says, for who fetches it from elsewhere.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ManifestContent {
    /// An index: the manifest for the platform is another one.
    Index(Descriptor),
    /// The manifest of an image.
    Image {
        /// Its configuration.
        config: Descriptor,
        /// Its layers, the lowest first.
        layers: Vec<Descriptor>,
    },
}

impl ManifestContent {
    /// Reads a manifest or an index.
    ///
    /// # Errors
    /// What is wrong with it, or that it has nothing for the platform.
    pub fn parse(bytes: &[u8], platform: &Platform) -> Result<Self, String> {
        let document: Document =
            serde_json::from_slice(bytes).map_err(|error| error.to_string())?;
        if let Some(manifests) = &document.manifests {
            // Another program may read the other half of it.
            if document.config.is_some() || document.layers.is_some() {
                return Err("it is an index and a manifest at once".to_owned());
            }
            return choose(manifests, platform).map(Self::Index);
        }
        let (config, layers) = document.into_manifest()?;
        Ok(Self::Image { config, layers })
    }
}

/// Follows the descriptors of an image.
pub(super) fn resolve(
    source: &mut dyn BlobSource,
    image: &NamedImage,
    platform: &Platform,
) -> Result<ResolvedImage, StoreError> {
    let mut at = choose(&image.roots, platform).map_err(|why| wrong(image, "its index", why))?;
    let (target, mut blobs) = (Some(at.digest), Vec::new());
    for _ in 0..MAX_DEPTH {
        let what = format!("blob {}", at.digest);
        let bytes = read(source, image, &at, MAX_MANIFEST)?;
        let content = ManifestContent::parse(&bytes, platform);
        let content = content.map_err(|why| wrong(image, &what, why))?;
        blobs.push((at, bytes));
        match content {
            ManifestContent::Index(next) => at = next,
            ManifestContent::Image { config, layers } => {
                let bytes = read(source, image, &config, MAX_CONFIG)?;
                blobs.push((config, bytes.clone()));
                return Ok(ResolvedImage { target, blobs, config: bytes, layers });
            }
        }
    }
    Err(wrong(image, &format!("blob {}", at.digest), "its indexes are nested too deep".to_owned()))
}

/// The descriptor for a platform. One without platform is taken where it is the only one: its configuration will tell.
fn choose(descriptors: &[Descriptor], platform: &Platform) -> Result<Descriptor, String> {
    let of = |it: &&Descriptor| it.platform.as_ref().is_some_and(|of| platform.runs(of));
    let exactly = |it: &&Descriptor| it.platform.as_ref() == Some(platform);
    let found = descriptors.iter().find(exactly).or_else(|| descriptors.iter().find(of));
    if let Some(found) = found {
        return Ok(found.clone());
    }
    match descriptors {
        [only] if only.platform.is_none() => Ok(only.clone()),
        _ => {
            let offered = descriptors.iter().take(20);
            let offered: Vec<String> = offered
                .map(|it| it.platform.as_ref().map_or("no platform".to_owned(), Platform::shown))
                .collect();
            Err(format!(
                "it has no image for {}, only for {}",
                platform.shown(),
                offered.join(", ")
            ))
        }
    }
}

/// A small blob, checked.
fn read(
    source: &mut dyn BlobSource,
    image: &NamedImage,
    blob: &Descriptor,
    most: u64,
) -> Result<Vec<u8>, StoreError> {
    let what = format!("blob {}", blob.digest);
    let opened = source.open_blob(blob).and_then(|bytes| read_bounded(bytes, most));
    let bytes = opened.map_err(|error| wrong(image, &what, error.to_string()))?;
    crate::content::check(&what, &blob.digest, &Digest::of(&bytes))?;
    if bytes.len() as u64 != blob.size {
        let why = format!("it has {} bytes, but its descriptor says {}", bytes.len(), blob.size);
        return Err(wrong(image, &what, why));
    }
    Ok(bytes)
}

fn wrong(image: &NamedImage, what: &str, why: String) -> StoreError {
    StoreError::Image { image: image.shown.clone(), what: what.to_owned(), why }
}

/// The layers of a manifest.
pub(super) struct ManifestLayers<'a> {
    pub(super) source: &'a mut dyn BlobSource,
    pub(super) layers: &'a [Descriptor],
}

impl LayerSource for ManifestLayers<'_> {
    fn open_layer(&mut self, position: usize) -> io::Result<(Box<dyn Read + '_>, Option<u64>)> {
        let layer = self.layers.get(position).ok_or(io::ErrorKind::NotFound)?;
        Ok((self.source.open_blob(layer)?, Some(layer.size)))
    }
}
