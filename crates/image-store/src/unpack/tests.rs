//! Hostile layers, one by one, and real ones against GNU tar.

mod hostile;
mod properties;
mod real;
mod sparse;

use std::fs::{self, File};
use std::io::Read;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

use rustix::fs::{XattrFlags, lgetxattr};
use tempfile::TempDir;

use super::{LayerStream, UnpackBounds, UnpackError, Unpacker};
use crate::fixtures::small_bounds;

/// A directory with `below`, `layer` and `outside`: nothing may change but `layer`.
pub(super) struct Place(TempDir);

impl Place {
    pub(super) fn new() -> Self {
        let place = Self(tempfile::tempdir().unwrap());
        for name in ["layer", "outside"] {
            fs::create_dir(place.path(name)).unwrap();
        }
        fs::write(place.path("outside/secret"), "untouched").unwrap();
        place
    }

    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    pub(super) fn layer(&self, name: &str) -> PathBuf {
        self.path("layer").join(name)
    }

    pub(super) fn unpack(&self, archive: &[u8]) -> Result<(), UnpackError> {
        self.unpack_bounded(archive, small_bounds())
    }

    pub(super) fn unpack_bounded(
        &self,
        archive: &[u8],
        bounds: UnpackBounds,
    ) -> Result<(), UnpackError> {
        unpack_at(archive, &self.path("layer"), &[], bounds)
    }

    pub(super) fn unpack_above(
        &self,
        archive: &[u8],
        below: &[PathBuf],
    ) -> Result<(), UnpackError> {
        unpack_at(archive, &self.path("layer"), below, small_bounds())
    }

    /// Whether nothing outside has changed.
    pub(super) fn is_untouched(&self) -> bool {
        let names = |path: PathBuf| fs::read_dir(path).unwrap().count();
        let secret = fs::metadata(self.path("outside/secret")).unwrap();
        fs::read(self.path("outside/secret")).unwrap() == b"untouched"
            && secret.nlink() == 1
            && names(self.path("outside")) == 1
            && names(self.0.path().to_owned()) == 2
    }
}

pub(super) fn unpack_at(
    archive: impl Read,
    layer: &Path,
    below: &[PathBuf],
    bounds: UnpackBounds,
) -> Result<(), UnpackError> {
    let root = OwnedFd::from(File::open(layer).unwrap());
    let below: Vec<OwnedFd> = below.iter().map(|it| File::open(it).unwrap().into()).collect();
    let mut on_read = |_| {};
    let stream = LayerStream::new(archive, bounds, &mut on_read)?;
    Unpacker::new(root, &below, bounds).unpack(stream)?.finish().map(drop)
}

pub(super) fn is_whiteout(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|it| it.file_type().is_char_device() && it.rdev() == 0)
}

pub(super) fn xattr(path: &Path, name: &str) -> Option<Vec<u8>> {
    let mut value = vec![0; 256];
    let length = lgetxattr(path, name, &mut value[..]).ok()?;
    value.truncate(length);
    Some(value)
}

pub(super) fn is_opaque(path: &Path) -> bool {
    xattr(path, "trusted.overlay.opaque").as_deref() == Some(b"y")
}

pub(super) fn set_xattr(path: &Path, name: &str, value: &[u8]) {
    rustix::fs::setxattr(path, name, value, XattrFlags::empty()).unwrap();
}
