//! Unpacks a layer into a directory of its own. Everything in it is hostile input.
//!
//! - Names are resolved below the directory by the kernel (`openat2` with `RESOLVE_IN_ROOT`): a symbolic link in the layer that leads
//!   to `/etc` leads to the layer's own `etc`. Names with `..` are refused, absolute ones are taken below the directory.
//! - A whiteout becomes overlayfs's character device 0:0, an opaque directory its attribute `trusted.overlay.opaque`. Both only hide
//!   what lower layers have: an entry of the same layer stays.
//! - Device nodes are made, as containerd makes them: the device cgroup of a container says which of them it can open. Only the
//!   device that overlayfs takes for a whiteout is refused.
//! - Extended attributes: `user.*` (bar overlayfs's own), `security.capability` and POSIX ACLs are set; others are left out, as
//!   `trusted.*` would be orders to overlayfs, and labels of another machine's SELinux mean nothing here.
//! - A hard link to what only a lower layer has is refused: with containerd's overlay snapshotter it fails, too.
//! - A directory that the layer uses but does not describe gets the attributes that it has in the layers below.

mod attributes;
mod entries;
mod lower;
mod names;
mod parents;
mod reason;
mod stream;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::rc::Rc;

use rustix::fs::Timespec;

use crate::archive::{SkipByReading, TarReader};
use lower::LowerLayers;
pub use reason::{UnpackError, UnpackReason};
pub(crate) use stream::{LayerStream, StreamDigests};

/// Limits for one layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnpackBounds {
    /// Headers in the archive.
    pub entries: u64,
    /// Bytes of the archive once decompressed, and the lengths of all files together, holes included.
    pub bytes: u64,
    /// Bytes of one long name, pax header or list of extents.
    pub header_bytes: usize,
    /// Bytes that may be decompressed from anything.
    pub free_bytes: u64,
    /// Beyond those, how many bytes may be decompressed from one.
    pub ratio: u64,
}

impl Default for UnpackBounds {
    /// Beyond all images that are in use: the largest layers of machine-learning images have some 30 GiB and 500,000 files.
    fn default() -> Self {
        Self {
            entries: 2_000_000,
            bytes: 128 << 30,
            header_bytes: 1 << 20,
            free_bytes: 1 << 30,
            ratio: 250,
        }
    }
}

/// Names of directories whose times are set at the end: more memory is not used for them.
const MAX_DIRECTORY_NAMES: usize = 64 << 20;

/// Unpacks one layer.
pub(crate) struct Unpacker<'a> {
    root: OwnedFd,
    lower: LowerLayers<'a>,
    bounds: UnpackBounds,
    /// The times of directories, which change with every entry in them.
    directories: BTreeMap<Vec<u8>, Timespec>,
    directory_names: usize,
    /// The directory of the entry before.
    last_parent: Option<(Vec<u8>, Rc<OwnedFd>)>,
    /// The lengths of all files.
    bytes: u64,
}

impl<'a> Unpacker<'a> {
    /// Into an empty directory, above these layers, the topmost first.
    pub(crate) fn new(root: OwnedFd, lower: &'a [OwnedFd], bounds: UnpackBounds) -> Self {
        Self {
            root,
            lower: LowerLayers::new(lower),
            bounds,
            directories: BTreeMap::new(),
            directory_names: 0,
            last_parent: None,
            bytes: 0,
        }
    }

    /// Unpacks all entries, and returns the stream for what follows them.
    pub(crate) fn unpack<R: Read>(mut self, archive: R) -> Result<R, UnpackError> {
        let mut reader = TarReader::new(SkipByReading(archive), self.bounds.header_bytes);
        let mut before = None;
        loop {
            let next =
                reader.next().map_err(|error| UnpackError::after(before.as_deref(), error))?;
            let Some(entry) = next else { break };
            if reader.headers() > self.bounds.entries {
                let most = self.bounds.entries;
                return Err(UnpackError::of(&entry.name, UnpackReason::TooManyEntries { most }));
            }
            self.entry(&entry, &mut reader).map_err(|why| UnpackError::of(&entry.name, why))?;
            before = Some(entry.name);
        }
        self.set_directory_times().map_err(|why| UnpackError::of(b"", why))?;
        Ok(reader.into_inner().0)
    }
}

/// Unpacks a layer of any bytes into a directory with small bounds, for fuzzing: what is around the directory must not change.
#[doc(hidden)]
pub fn fuzz_unpack(bytes: &[u8], directory: &Path) -> Result<(), UnpackError> {
    let bounds = UnpackBounds {
        entries: 64,
        bytes: 1 << 20,
        header_bytes: 4096,
        free_bytes: 1 << 16,
        ratio: 100,
    };
    let root = File::open(directory).map_err(UnpackError::of_stream)?;
    let mut on_read = |_| {};
    let stream = LayerStream::new(bytes, bounds, &mut on_read)?;
    Unpacker::new(root.into(), &[], bounds).unpack(stream)?.finish().map(drop)
}
