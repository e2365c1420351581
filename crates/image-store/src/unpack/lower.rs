//! What the layers below have at a path.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::{FileType, Mode, OFlags, ResolveFlags, fgetxattr, openat2};
use rustix::io::Errno;

use super::attributes::{OPAQUE, is_whiteout, stat_of};

/// The layers below one, the topmost first.
#[derive(Clone, Copy, Debug)]
pub(super) struct LowerLayers<'a>(&'a [OwnedFd]);

/// What one layer says of a path.
enum Found {
    /// There is a directory.
    Directory(OwnedFd),
    /// There is none, and those below are hidden.
    Hidden,
    /// Those below say.
    Absent,
}

impl<'a> LowerLayers<'a> {
    pub(super) fn new(layers: &'a [OwnedFd]) -> Self {
        Self(layers)
    }

    /// The directory that a container would see at a path without links, if it is one.
    pub(super) fn directory(&self, path: &[u8]) -> Result<Option<OwnedFd>, Errno> {
        for layer in self.0 {
            match look(layer.as_fd(), path)? {
                Found::Directory(directory) => return Ok(Some(directory)),
                Found::Hidden => return Ok(None),
                Found::Absent => {}
            }
        }
        Ok(None)
    }
}

fn look(layer: BorrowedFd<'_>, path: &[u8]) -> Result<Found, Errno> {
    let mut here = layer.try_clone_to_owned().map_err(|_| Errno::MFILE)?;
    for part in path.split(|byte| *byte == b'/') {
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let how = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS;
        match openat2(&here, part, flags, Mode::empty(), how) {
            Ok(next) => {
                let stat = stat_of(&next)?;
                if is_whiteout(&stat)
                    || FileType::from_raw_mode(stat.st_mode) != FileType::Directory
                {
                    return Ok(Found::Hidden);
                }
                here = next;
            }
            Err(Errno::NOENT) if is_opaque(&here)? => return Ok(Found::Hidden),
            Err(Errno::NOENT) => return Ok(Found::Absent),
            Err(Errno::LOOP) => return Ok(Found::Hidden),
            Err(error) => return Err(error),
        }
    }
    Ok(Found::Directory(here))
}

fn is_opaque(directory: &OwnedFd) -> Result<bool, Errno> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let opened = rustix::fs::openat(directory, c".", flags, Mode::empty())?;
    let mut value = [0_u8; 8];
    match fgetxattr(&opened, OPAQUE, &mut value[..]) {
        Ok(length) => Ok(value[..length] == *b"y"),
        Err(Errno::NODATA | Errno::OPNOTSUPP) => Ok(false),
        Err(error) => Err(error),
    }
}
