//! What can go wrong, with the object that it happened to.

use std::io;
use std::path::{Path, PathBuf};

use oarsman_core::image_reference::InvalidName;

use crate::digest::Digest;
use crate::unpack::UnpackError;

/// Why the store did not do what was asked.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// A call of the kernel failed.
    #[error("cannot {doing} {}: {source}", .path.display())]
    Files {
        /// What was tried.
        doing: &'static str,
        /// The file or directory.
        path: PathBuf,
        /// The kernel's error.
        source: io::Error,
    },
    /// A name no registry could have given.
    #[error(transparent)]
    Name(#[from] InvalidName),
    /// There is no such image.
    #[error("there is no image {wanted:?} in the store: import it first")]
    NoImage {
        /// The name or id that was asked for.
        wanted: String,
    },
    /// The beginning of an id that several images have.
    #[error("{wanted:?} is the beginning of several image ids: write more of it")]
    Ambiguous {
        /// What was asked for.
        wanted: String,
    },
    /// An archive, layout or blob that is no image of this machine.
    #[error("cannot import {image}: {what}: {why}")]
    Image {
        /// The image's name, or the place it comes from.
        image: String,
        /// The part of it: a file of the archive, or a blob.
        what: String,
        /// What is wrong with it.
        why: String,
    },
    /// Bytes that are not those their digest names.
    #[error(
        "the content of {what} has the digest {found}, not {wanted}: it was changed or cut off on its way, fetch it again"
    )]
    Mismatch {
        /// The blob or layer.
        what: String,
        /// What was announced.
        wanted: Digest,
        /// What the bytes have.
        found: Digest,
    },
    /// A layer that is not unpacked.
    #[error(transparent)]
    Layer(#[from] Box<LayerError>),
    /// The list of images cannot be read.
    #[error("the list of images {} is damaged ({why}): remove it and import the images again", .path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
    /// A root file system of that key exists for something else.
    #[error("the root file system {key:?} was made for {found}, not for {wanted}: remove it first")]
    KeyInUse {
        /// The key.
        key: String,
        /// What it exists for.
        found: String,
        /// What it was asked for.
        wanted: String,
    },
    /// A key that cannot be the name of a directory.
    #[error("{key:?} cannot name a root file system: use a plain name of at most 255 bytes")]
    InvalidKey {
        /// The key.
        key: String,
    },
    /// There is no root file system of that key.
    #[error("there is no root file system {key:?}: prepare it first")]
    NoRoot {
        /// The key.
        key: String,
    },
    /// A layer that an image needs is gone.
    #[error("layer {layer} of {image} is not in the store: remove the image and import it again")]
    LayerGone {
        /// The image's id.
        image: String,
        /// The layer's chain id.
        layer: Digest,
    },
}

/// A layer that was refused or could not be written.
#[derive(Debug, thiserror::Error)]
#[error("cannot unpack {image}: layer {layer}: {source}")]
pub struct LayerError {
    /// The image's name, or the place it comes from.
    pub image: String,
    /// The layer's diff id.
    pub layer: Digest,
    /// The entry and the reason.
    pub source: UnpackError,
}

/// Makes an error of what the kernel said about a path.
pub(crate) fn failed<E: Into<io::Error>>(
    doing: &'static str,
    path: &Path,
) -> impl FnOnce(E) -> StoreError {
    move |source| StoreError::Files { doing, path: path.to_owned(), source: source.into() }
}
