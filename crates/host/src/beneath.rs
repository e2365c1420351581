//! Opening what lies below a directory that containers may be able to change, without being led elsewhere.
//!
//! A pod that has `/var/log` mounted can replace its log by a link, a pipe or a device, and a directory on the way by a link. So the
//! kernel resolves the whole path below a directory of ours (`openat2`), follows no links on the way, and only regular files are
//! opened. Runtimes of CRI write logs as regular files. With Docker they are links into its own directory, which are refused, too:
//! a link of Docker's and one of a container's cannot be told apart.

use std::ffi::{OsStr, OsString};
use std::fs::{File, Metadata};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Component, Path, PathBuf};

use rustix::fs::{AtFlags, CWD, Dir, Mode, OFlags, ResolveFlags};
use rustix::io::Errno;

use crate::files::not_regular;
use crate::tree::{self, RemoveTreeError};

#[cfg(test)]
mod tests;
mod writing;

/// A directory below which files are opened.
#[derive(Debug)]
pub struct RootDirectory(OwnedFd);

impl RootDirectory {
    /// The path itself is ours, links in it are followed.
    ///
    /// # Errors
    /// When there is no such directory.
    pub fn open(path: &Path) -> io::Result<Self> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        Ok(Self(rustix::fs::openat(CWD, path, flags, Mode::empty())?))
    }

    /// Opens a directory that a container may have replaced by a link since its path was resolved: no link is followed.
    ///
    /// # Errors
    /// When there is no such directory, or a link is on the way to it.
    pub fn open_resolved(path: &Path) -> io::Result<Self> {
        let how = ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let opened = rustix::fs::openat2(CWD, path, flags, Mode::empty(), how);
        opened.map(Self).map_err(link_on_the_way)
    }

    /// A directory below this one.
    ///
    /// # Errors
    /// When there is none, or a link is on the way to it.
    pub fn open_directory(&self, below: &Path) -> io::Result<Self> {
        self.resolve(below, OFlags::PATH | OFlags::DIRECTORY).map(Self)
    }

    /// A directory below this one, which is made with those above it where they are missing.
    ///
    /// # Errors
    /// When it cannot be made, or a link is on the way to it.
    pub fn make_directory(&self, below: &Path, mode: u32) -> io::Result<Self> {
        let mut here = Self(self.0.try_clone()?);
        for part in below.components() {
            let Component::Normal(name) = part else { return Err(Errno::INVAL.into()) };
            match rustix::fs::mkdirat(&here.0, name, Mode::from_raw_mode(mode)) {
                Ok(()) | Err(Errno::EXIST) => here = here.open_directory(Path::new(name))?,
                Err(error) => return Err(error.into()),
            }
        }
        Ok(here)
    }

    /// Whether there is a directory below this one, and no link on the way to it.
    ///
    /// # Errors
    /// When the kernel does not tell.
    pub fn has_directory(&self, below: &Path) -> io::Result<bool> {
        match self.open_directory(below) {
            Ok(_) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Removes a directory of this one with all that is in it, as [`crate::tree::remove_tree`] does.
    ///
    /// # Errors
    /// Those of `remove_tree`.
    pub fn remove_tree(&self, name: &OsStr) -> Result<(), RemoveTreeError> {
        tree::remove(self.0.as_fd(), name)
    }

    /// Where a symbolic link in this directory leads; the link is not followed.
    ///
    /// # Errors
    /// When there is none of that name, or it is no link.
    pub fn read_link(&self, name: &OsStr) -> io::Result<PathBuf> {
        let target = rustix::fs::readlinkat(&self.0, name, Vec::new())?;
        Ok(PathBuf::from(OsString::from_vec(target.into_bytes())))
    }

    /// Makes a symbolic link in this directory.
    ///
    /// # Errors
    /// When there is something of that name, or the kernel refuses.
    pub fn make_link(&self, target: &Path, name: &OsStr) -> io::Result<()> {
        Ok(rustix::fs::symlinkat(target, &self.0, name)?)
    }

    /// Opens a regular file for reading. Nothing here waits for the writer of a pipe.
    ///
    /// # Errors
    /// When there is none, a link is on the way to it, or it is something else: what.
    pub fn open_file(&self, below: &Path) -> io::Result<File> {
        // To open a device may already do something; what is only looked at is not opened.
        let found = File::from(self.resolve(below, OFlags::PATH | OFlags::NOFOLLOW)?);
        require_regular(&found.metadata()?)?;
        // The very file that was looked at, whatever has taken its name meanwhile.
        let again = format!("/proc/self/fd/{}", found.as_raw_fd());
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        Ok(File::from(rustix::fs::open(again, flags, Mode::empty())?))
    }

    /// Removes a file, or a link itself.
    ///
    /// # Errors
    /// When there is none, it is a directory, or a link is on the way to it.
    pub fn remove_file(&self, below: &Path) -> io::Result<()> {
        let name = below.file_name().ok_or(Errno::INVAL)?;
        let parent = below.parent().filter(|parent| !parent.as_os_str().is_empty());
        let directory = self.open_directory(parent.unwrap_or(Path::new(".")))?;
        Ok(rustix::fs::unlinkat(&directory.0, name, AtFlags::empty())?)
    }

    /// Calls back for every name in the directory, in no order, without keeping them; until it says `false`.
    ///
    /// # Errors
    /// When the directory cannot be read.
    pub fn each_name(&self, each: &mut dyn FnMut(&OsStr) -> bool) -> io::Result<()> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let listed = rustix::fs::openat(&self.0, c".", flags, Mode::empty())?;
        for entry in Dir::new(listed)? {
            let entry = entry?;
            let name = OsStr::from_bytes(entry.file_name().to_bytes());
            if name != "." && name != ".." && !each(name) {
                break;
            }
        }
        Ok(())
    }

    /// A path to this very directory, whatever has taken its name, for calls that take no descriptor.
    pub(crate) fn magic_link(&self) -> String {
        format!("/proc/self/fd/{}", self.0.as_raw_fd())
    }

    fn resolve(&self, below: &Path, flags: OFlags) -> io::Result<OwnedFd> {
        let is_up = |part: Component<'_>| part == Component::ParentDir;
        if below.components().any(is_up) {
            return Err(Errno::INVAL.into());
        }
        let how = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
        let opened =
            rustix::fs::openat2(&self.0, below, flags | OFlags::CLOEXEC, Mode::empty(), how);
        opened.map_err(link_on_the_way)
    }
}

impl AsFd for RootDirectory {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

fn link_on_the_way(error: Errno) -> io::Error {
    match error {
        Errno::LOOP => io::Error::other("there is a symbolic link on the way to it"),
        other => other.into(),
    }
}

fn require_regular(found: &Metadata) -> io::Result<()> {
    let kind =
        if found.is_symlink() { Some("a symbolic link") } else { not_regular(found.file_type()) };
    kind.map_or(Ok(()), |kind| Err(io::Error::other(format!("it is {kind} and no regular file"))))
}
