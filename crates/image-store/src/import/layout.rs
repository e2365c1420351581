//! OCI layouts: `index.json`, and blobs by their digests.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use crate::error::StoreError;
use crate::files::read_bounded;
use crate::oci::{Descriptor, Document, MAX_MANIFEST};

use super::archive_file::ArchiveFile;
use super::{BlobSource, ImportOptions};

/// The annotations with names: containerd's is a full name, that of OCI any text, often a tag only.
const CONTAINERD_NAME: &str = "io.containerd.image.name";
const OCI_NAME: &str = "org.opencontainers.image.ref.name";

/// A layout as a source of blobs.
pub(super) trait Layout: BlobSource {
    fn index(&mut self) -> io::Result<Vec<u8>>;
}

/// An OCI layout in a directory, which its owner may change while it is read.
#[derive(Clone, Debug)]
pub struct LayoutDirectory {
    directory: PathBuf,
}

impl LayoutDirectory {
    /// Opens a layout.
    ///
    /// # Errors
    /// When there is no `index.json`.
    pub fn open(directory: &Path) -> io::Result<Self> {
        File::open(directory.join("index.json"))?;
        Ok(Self { directory: directory.to_owned() })
    }
}

impl BlobSource for LayoutDirectory {
    fn open_blob(&mut self, blob: &Descriptor) -> io::Result<Box<dyn Read + '_>> {
        let path = self.directory.join("blobs/sha256").join(blob.digest.hex());
        let file = File::open(&path).map_err(|error| {
            io::Error::new(error.kind(), format!("{}: {error}", path.display()))
        })?;
        Ok(Box::new(file))
    }
}

impl Layout for LayoutDirectory {
    fn index(&mut self) -> io::Result<Vec<u8>> {
        read_bounded(File::open(self.directory.join("index.json"))?, MAX_MANIFEST)
    }
}

impl Layout for ArchiveFile {
    fn index(&mut self) -> io::Result<Vec<u8>> {
        read_bounded(self.read("index.json")?.0, MAX_MANIFEST)
    }
}

/// An image of a layout: the descriptors that have its name, one for each platform or one for all.
#[derive(Debug)]
pub(super) struct NamedImage {
    /// For errors.
    pub(super) shown: String,
    pub(super) names: Vec<String>,
    pub(super) roots: Vec<Descriptor>,
}

/// The images of a layout by name.
pub(super) fn named_images(
    layout: &mut impl Layout,
    shown: &str,
    options: &ImportOptions,
) -> Result<Vec<NamedImage>, StoreError> {
    let wrong = |why: String| StoreError::Image {
        image: shown.to_owned(),
        what: "index.json".to_owned(),
        why,
    };
    let bytes = layout.index().map_err(|error| wrong(error.to_string()))?;
    let document: Document =
        serde_json::from_slice(&bytes).map_err(|error| wrong(error.to_string()))?;
    let mut by_name: BTreeMap<Option<String>, Vec<Descriptor>> = BTreeMap::new();
    for root in document.into_index().map_err(wrong)? {
        by_name.entry(text_of(&root)).or_default().push(root);
    }
    if by_name.is_empty() {
        return Err(wrong("it has no image".to_owned()));
    }
    let is_only = by_name.len() == 1;
    let named = by_name.into_iter().map(|(text, roots)| {
        let name = name_of(text.as_deref(), options.name.as_deref(), is_only);
        let shown = name.clone().unwrap_or_else(|| shown.to_owned());
        NamedImage { shown, names: name.into_iter().collect(), roots }
    });
    Ok(named.collect())
}

fn text_of(root: &Descriptor) -> Option<String> {
    let annotations = &root.annotations;
    annotations.get(CONTAINERD_NAME).or_else(|| annotations.get(OCI_NAME)).cloned()
}

/// The name of an image. A text that is no more than a tag is none without a repository.
fn name_of(text: Option<&str>, wanted: Option<&str>, is_only: bool) -> Option<String> {
    let is_full = |text: &str| text.contains(['/', ':', '@']);
    match (text, wanted) {
        (_, Some(wanted)) if is_only => Some(wanted.to_owned()),
        (Some(text), Some(wanted)) if !is_full(text) => Some(format!("{wanted}:{text}")),
        (Some(text), _) if is_full(text) => Some(text.to_owned()),
        _ => None,
    }
}
