//! Brings images into the store: from an OCI layout, from an archive, or blob by blob from a [`BlobSource`].
//!
//! Every byte is checked: blobs against the digests of their descriptors, layers against the diff ids of the configuration. An image
//! appears with its names when all of it is there.

mod archive_file;
mod docker;
mod install;
mod layout;
mod resolve;
#[cfg(test)]
mod tests;

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use crate::digest::Digest;
use crate::error::{StoreError, failed};
use crate::lease::Lease;
use crate::oci::{Descriptor, Platform};
use crate::store::ImageStore;
use archive_file::ArchiveFile;
use install::ImageParts;
pub use layout::LayoutDirectory;
use layout::{Layout, NamedImage};
pub use resolve::ManifestContent;

/// Where blobs come from. What it gives is checked: it may be as hostile as a registry.
pub trait BlobSource {
    /// The bytes of a blob from their beginning.
    ///
    /// # Errors
    /// When it does not have the blob.
    fn open_blob(&mut self, blob: &Descriptor) -> io::Result<Box<dyn Read + '_>>;
}

/// Blobs that were put into the content store before, as a registry client does.
impl BlobSource for &ImageStore {
    fn open_blob(&mut self, blob: &Descriptor) -> io::Result<Box<dyn Read + '_>> {
        let opened = self.content.open(&blob.digest);
        opened.map(|file| Box::new(file) as Box<dyn Read>).map_err(io::Error::other)
    }
}

/// What to import, and as what.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImportOptions {
    /// Which image of an index is taken.
    pub platform: Platform,
    /// The name of the image, in place of those that the archive has; of an archive with several images, its repository, to which
    /// their tags are added.
    pub name: Option<String>,
}

impl Default for ImportOptions {
    fn default() -> Self {
        Self { platform: Platform::host(), name: None }
    }
}

/// What is known of an import that is under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ImportProgress<'a> {
    /// An image begins.
    Image {
        /// Its name, or where it comes from.
        name: &'a str,
        /// How many layers it has.
        layers: usize,
    },
    /// A layer is there already.
    Present {
        /// Its number, from 1.
        layer: usize,
    },
    /// A layer is being read and unpacked.
    Reading {
        /// Its number, from 1.
        layer: usize,
        /// Bytes that were read.
        bytes: u64,
        /// Bytes that it has, where that is known.
        size: Option<u64>,
    },
    /// A layer is unpacked.
    Unpacked {
        /// Its number, from 1.
        layer: usize,
    },
}

/// An image that is in the store now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImportedImage {
    /// Its id.
    pub id: Digest,
    /// The full names that it was given; none when the archive has no name for it.
    pub names: Vec<String>,
}

/// Told about the progress.
pub(crate) type OnProgress<'a> = &'a mut dyn FnMut(ImportProgress<'_>);

impl ImageStore {
    /// Adds the image that a descriptor leads to, through an index for several platforms or directly.
    ///
    /// # Errors
    /// When a blob is missing or wrong, a layer is refused, or the disk is full; then the image is not in the store.
    pub fn add_image(
        &self,
        source: &mut dyn BlobSource,
        root: &Descriptor,
        names: &[String],
        platform: &Platform,
        on_progress: &mut dyn FnMut(ImportProgress<'_>),
    ) -> Result<ImportedImage, StoreError> {
        let shown = names.first().cloned().unwrap_or_else(|| root.digest.to_string());
        let image = NamedImage { shown, names: names.to_vec(), roots: vec![root.clone()] };
        let lease = Lease::begin(&self.directory)?;
        self.add_resolved(&lease, source, &image, platform, on_progress)
    }

    fn add_resolved(
        &self,
        lease: &Lease,
        source: &mut dyn BlobSource,
        image: &NamedImage,
        platform: &Platform,
        on_progress: OnProgress<'_>,
    ) -> Result<ImportedImage, StoreError> {
        let resolved = resolve::resolve(source, image, platform)?;
        for (descriptor, bytes) in &resolved.blobs {
            self.content.add(lease, descriptor, bytes.as_slice())?;
        }
        let parts = ImageParts {
            shown: &image.shown,
            names: &image.names,
            target: resolved.target,
            blobs: resolved.blobs.iter().map(|(it, _)| (it.digest, it.size)).collect(),
            config: &resolved.config,
            layers: resolved.layers.iter().map(Some).collect(),
            platform,
        };
        let mut layers = resolve::ManifestLayers { source, layers: &resolved.layers };
        self.install(lease, &parts, &mut layers, on_progress)
    }

    /// Imports all images of an OCI layout in a directory.
    ///
    /// # Errors
    /// When it is no layout, or as [`Self::add_image`]; images before the one that failed are in the store.
    pub fn import_layout(
        &self,
        directory: &Path,
        options: &ImportOptions,
        on_progress: &mut dyn FnMut(ImportProgress<'_>),
    ) -> Result<Vec<ImportedImage>, StoreError> {
        let mut layout = LayoutDirectory::open(directory).map_err(failed("open", directory))?;
        let lease = Lease::begin(&self.directory)?;
        let shown = directory.display().to_string();
        self.import_from_layout(&lease, &mut layout, &shown, options, on_progress)
    }

    fn import_from_layout<L: Layout>(
        &self,
        lease: &Lease,
        layout: &mut L,
        shown: &str,
        options: &ImportOptions,
        on_progress: OnProgress<'_>,
    ) -> Result<Vec<ImportedImage>, StoreError> {
        let images = layout::named_images(layout, shown, options)?;
        let add = |image: &NamedImage| {
            self.add_resolved(lease, layout, image, &options.platform, on_progress)
        };
        images.iter().map(add).collect()
    }

    /// Imports all images of an archive: an OCI layout in a tar file, or what `docker save` writes; compressed with gzip or zstd, or
    /// not. What cannot be read twice, such as a pipe, is copied to the store's directory first.
    ///
    /// # Errors
    /// When it is no such archive, or as [`Self::add_image`]; images before the one that failed are in the store.
    pub fn import_archive(
        &self,
        archive: File,
        shown: &str,
        options: &ImportOptions,
        on_progress: &mut dyn FnMut(ImportProgress<'_>),
    ) -> Result<Vec<ImportedImage>, StoreError> {
        let lease = Lease::begin(&self.directory)?;
        let wrong = |what: &str, error: &io::Error| StoreError::Image {
            image: shown.to_owned(),
            what: what.to_owned(),
            why: error.to_string(),
        };
        let file = ArchiveFile::seekable(archive, &lease, self.bounds)
            .map_err(|error| wrong("the archive", &error))?;
        let mut archive =
            ArchiveFile::open(file, self.bounds).map_err(|error| wrong("the archive", &error))?;
        if archive.has("index.json") {
            return self.import_from_layout(&lease, &mut archive, shown, options, on_progress);
        }
        if archive.has("manifest.json") {
            return self.import_docker(&lease, &mut archive, shown, options, on_progress);
        }
        let why = "it has neither index.json nor manifest.json: make it with `docker save`, or as an OCI layout";
        Err(wrong("the archive", &io::Error::other(why)))
    }
}
