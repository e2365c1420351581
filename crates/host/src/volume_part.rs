//! A part of a volume (subPath), opened without being led out of the volume, and mounted by its descriptor.
//!
//! Containers may change the volume meanwhile: a path that was checked may lead elsewhere when it is mounted (CVE-2017-1002101,
//! CVE-2021-25741). So the kernel resolves the path below the volume and gives a descriptor, and only the descriptor is
//! used from there on.

#[cfg(test)]
mod tests;

use std::ffi::OsStr;
use std::fs;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Component, Path, PathBuf};

use rustix::fs::{AtFlags, FileType, Mode, OFlags, ResolveFlags, Statx, StatxFlags, statx};
use rustix::io::Errno;
use rustix::mount::{MoveMountFlags, OpenTreeFlags, UnmountFlags, move_mount, open_tree, unmount};

use crate::beneath::RootDirectory;
use crate::mounts;

/// The kernel asks for another try when something was renamed meanwhile, which a container can do for ever.
const MAX_TRIES: u32 = 64;

/// Whether links with absolute paths are followed if they lead into the volume.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AbsoluteLinks {
    /// They are not: in a volume of a pod's own, what they mean is decided in the container.
    Refused,
    /// They are, as on the host: those of a directory of the host mean paths of the host.
    Followed,
}

/// A file or directory in a volume, whatever has taken its name since it was opened.
#[derive(Debug)]
pub struct VolumePart(OwnedFd);

impl VolumePart {
    /// Opens a part of a volume. Directories that are missing are made, with the mode that the volume has.
    ///
    /// # Errors
    /// When a link leads out of the volume, when the part cannot be made, or when the volume is no directory.
    pub fn open(volume: &Path, part: &Path, links: AbsoluteLinks) -> io::Result<Self> {
        let root = RootDirectory::open(volume)?;
        match resolve(&root, part, ResolveFlags::empty()) {
            Ok(opened) => Ok(Self(opened)),
            Err(Errno::NOENT) => make(&root, part).map(Self),
            Err(Errno::XDEV) if links == AbsoluteLinks::Followed => {
                let part = inside(volume, part)?;
                resolve(&root, &part, ResolveFlags::NO_SYMLINKS).map(Self).map_err(explained)
            }
            Err(error) => Err(explained(error)),
        }
    }

    /// Mounts this part under that name in a directory, unless it is mounted there; what else is mounted there is unmounted.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn mount_at(&self, directory: &RootDirectory, name: &OsStr) -> io::Result<()> {
        let point = Path::new(&directory.magic_link()).join(name);
        while mounts::is_mount_point(&point)? {
            if self.is_at(directory, name)? {
                return Ok(());
            }
            unmount(&point, UnmountFlags::NOFOLLOW)?;
        }
        let target = self.make_mount_point(directory, name)?;
        let clone = OpenTreeFlags::OPEN_TREE_CLONE | OpenTreeFlags::OPEN_TREE_CLOEXEC;
        let tree = open_tree(&self.0, c"", clone | OpenTreeFlags::AT_EMPTY_PATH)?;
        let by_descriptors =
            MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH | MoveMountFlags::MOVE_MOUNT_T_EMPTY_PATH;
        Ok(move_mount(&tree, c"", &target, c"", by_descriptors)?)
    }

    /// Whether this very file or directory is what is seen under that name.
    fn is_at(&self, directory: &RootDirectory, name: &OsStr) -> io::Result<bool> {
        let (own, there) = (stat(&self.0, OsStr::new(""))?, stat(directory, name)?);
        let identity = |found: &Statx| (found.stx_dev_major, found.stx_dev_minor, found.stx_ino);
        Ok(identity(&own) == identity(&there))
    }

    /// A directory is mounted on a directory, anything else on a file.
    fn make_mount_point(&self, directory: &RootDirectory, name: &OsStr) -> io::Result<OwnedFd> {
        let is_directory = kind(&stat(&self.0, OsStr::new(""))?) == FileType::Directory;
        match stat(directory, name) {
            Ok(there) if (kind(&there) == FileType::Directory) != is_directory => {
                let flags = if is_directory { AtFlags::empty() } else { AtFlags::REMOVEDIR };
                rustix::fs::unlinkat(directory, name, flags)?;
            }
            Ok(_) | Err(Errno::NOENT) => {}
            Err(error) => return Err(error.into()),
        }
        let made = match is_directory {
            true => rustix::fs::mkdirat(directory, name, Mode::from_raw_mode(0o750)),
            false => {
                let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
                let mode = Mode::from_raw_mode(0o640);
                rustix::fs::openat(directory, name, flags, mode).map(drop)
            }
        };
        if let Err(error) = made
            && error != Errno::EXIST
        {
            return Err(error.into());
        }
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        Ok(rustix::fs::openat(directory, name, flags, Mode::empty())?)
    }
}

/// Opens what is there. Links are followed as long as they stay below the volume, unless more is asked for.
fn resolve(root: &impl AsFd, part: &Path, more: ResolveFlags) -> Result<OwnedFd, Errno> {
    let how = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS | more;
    let flags = OFlags::PATH | OFlags::CLOEXEC;
    let mut tries = 0..MAX_TRIES;
    loop {
        match rustix::fs::openat2(root, part, flags, Mode::empty(), how) {
            Err(Errno::AGAIN) if tries.next().is_some() => {}
            opened => return opened,
        }
    }
}

/// The path below the volume that a part has by now, all links in it resolved as on the host. It may change again before it is opened:
/// then no link is followed.
fn inside(volume: &Path, part: &Path) -> io::Result<PathBuf> {
    let (volume, found) = (fs::canonicalize(volume)?, fs::canonicalize(volume.join(part))?);
    let inside = found.strip_prefix(&volume).map_err(|_| explained(Errno::XDEV))?;
    Ok(if inside.as_os_str().is_empty() { PathBuf::from(".") } else { inside.to_owned() })
}

/// Makes what is missing of a path, below the longest part of it that is there.
fn make(root: &RootDirectory, part: &Path) -> io::Result<OwnedFd> {
    let mode = u32::from(stat(root, OsStr::new(""))?.stx_mode) & 0o7777;
    let names: Vec<_> = part.components().filter(|name| *name != Component::CurDir).collect();
    let (mut here, missing) = existing(root, &names).map_err(explained)?;
    for name in missing {
        let Component::Normal(name) = name else { return Err(Errno::INVAL.into()) };
        here = make_directory(&here, name, Mode::from_raw_mode(mode)).map_err(explained)?;
    }
    Ok(here)
}

/// Opens the longest part of a path that is there; what follows in it is missing.
fn existing<'a, 'b>(
    root: &RootDirectory,
    names: &'a [Component<'b>],
) -> Result<(OwnedFd, &'a [Component<'b>]), Errno> {
    for count in (0..names.len()).rev() {
        let (there, missing) = names.split_at(count);
        let there: PathBuf = [Component::CurDir].iter().chain(there).collect();
        match resolve(root, &there, ResolveFlags::empty()) {
            Err(Errno::NOENT) => {}
            opened => return Ok((opened?, missing)),
        }
    }
    Err(Errno::NOENT)
}

/// Makes one directory and opens it. What has taken its place meanwhile is no link and lies in the same directory.
fn make_directory(here: &OwnedFd, name: &OsStr, mode: Mode) -> Result<OwnedFd, Errno> {
    let made = match rustix::fs::mkdirat(here, name, mode) {
        Ok(()) => true,
        Err(Errno::EXIST) => false,
        Err(error) => return Err(error),
    };
    let how = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_XDEV;
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let opened = rustix::fs::openat2(here, name, flags, Mode::empty(), how)?;
    if made {
        // A umask does not count, and the bit that hands the group on is set by no mkdir.
        rustix::fs::fchmod(&opened, mode)?;
    }
    Ok(opened)
}

/// Nothing is asked of the file system but what it knows at once: its server may be gone.
fn stat(at: &impl AsFd, name: &OsStr) -> Result<Statx, Errno> {
    let flags = AtFlags::SYMLINK_NOFOLLOW | AtFlags::EMPTY_PATH | AtFlags::STATX_DONT_SYNC;
    statx(at, name, flags, StatxFlags::TYPE | StatxFlags::MODE | StatxFlags::INO)
}

fn kind(found: &Statx) -> FileType {
    FileType::from_raw_mode(found.stx_mode.into())
}

fn explained(error: Errno) -> io::Error {
    match error {
        Errno::XDEV => io::Error::other("a symbolic link leads out of the volume"),
        Errno::LOOP => io::Error::other("a symbolic link in it leads to nothing, or in a circle"),
        other => other.into(),
    }
}
