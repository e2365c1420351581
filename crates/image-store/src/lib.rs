//! Images on this machine: their content, their names, their unpacked layers and the root file systems made of these, all below one
//! directory.
//!
//! ```text
//! DIR/content/blobs/sha256/HEX   blobs: manifests and configurations, and what a registry client puts here
//! DIR/content/partial/HEX        blobs that are being downloaded; they stay for the next attempt
//! DIR/images.json                the images and their names; replaced as a whole
//! DIR/layers/HEX/fs              unpacked layers, by chain id
//! DIR/roots/KEY                  root file systems of containers: record, writable layer, overlayfs's work directory
//! DIR/mapped                     where the store is mounted for a user namespace, seen by one thread alone
//! DIR/leases/ID                  what an import, a prepare or a prune works on, and what `prune` must leave to it
//! DIR/lock                       the lock between threads and processes (see `lease`)
//! ```
//!
//! Everything becomes visible by one rename after it was written and synced, so a kill at any moment and a full disk leave nothing
//! half-written. Archives are hostile input: see [`UnpackBounds`] and the module `unpack`.
//!
//! All functions block. No process is started and no network connection opened here: a registry client hands blobs in by
//! [`BlobSource`], or puts them into the content store first.

mod archive;
mod compression;
mod content;
mod digest;
mod error;
mod files;
#[cfg(test)]
mod fixtures;
mod import;
mod index;
mod layers;
mod lease;
mod mapped;
mod oci;
mod overlay;
mod partial;
mod prune;
mod roots;
mod store;
#[cfg(test)]
mod tests;
mod unpack;
mod usage;

pub use digest::{Digest, InvalidDigest};
pub use error::{LayerError, StoreError};
pub use import::{
    BlobSource, ImportOptions, ImportProgress, ImportedImage, LayoutDirectory, ManifestContent,
};
pub use index::{StoredImage, StoredLayer};
pub use lease::Lease;
pub use mapped::MappedUsers;
pub use oci::{Descriptor, ImageRunConfig, Platform};
pub use partial::{PartialBlob, PartialOutcome};
pub use prune::PruneReport;
pub use roots::{ReadOnlyOptions, RootFilesystem, RootKind};
pub use store::ImageStore;
pub use unpack::{UnpackBounds, UnpackError, UnpackReason};
pub use usage::ImageStoreUsage;

pub use archive::fuzz_archive;
pub use oci::fuzz_documents;
pub use unpack::fuzz_unpack;
