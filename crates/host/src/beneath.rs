//! Opening what lies below a directory that containers may be able to change, without being led elsewhere.
//!
//! A pod that has `/var/log` mounted can replace its log by a link, a pipe or a device, and a directory on the way by a link. So the
//! kernel resolves the whole path below a directory of ours (`openat2`), follows no links on the way, and only regular files are
//! opened. Runtimes of CRI write logs as regular files. With Docker they are links into its own directory, which are refused, too:
//! a link of Docker's and one of a container's cannot be told apart.

use std::ffi::OsStr;
use std::fs::{File, Metadata};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path};

use rustix::fs::{AtFlags, CWD, Dir, Mode, OFlags, ResolveFlags};
use rustix::io::Errno;

use crate::files::not_regular;

#[cfg(test)]
mod tests;

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

    /// A directory below this one.
    ///
    /// # Errors
    /// When there is none, or a link is on the way to it.
    pub fn open_directory(&self, below: &Path) -> io::Result<Self> {
        self.resolve(below, OFlags::PATH | OFlags::DIRECTORY).map(Self)
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

    fn resolve(&self, below: &Path, flags: OFlags) -> io::Result<OwnedFd> {
        let is_up = |part: Component<'_>| part == Component::ParentDir;
        if below.components().any(is_up) {
            return Err(Errno::INVAL.into());
        }
        let how = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
        let opened =
            rustix::fs::openat2(&self.0, below, flags | OFlags::CLOEXEC, Mode::empty(), how);
        opened.map_err(|error| match error {
            Errno::LOOP => io::Error::other("there is a symbolic link on the way to it"),
            other => other.into(),
        })
    }
}

fn require_regular(found: &Metadata) -> io::Result<()> {
    let kind =
        if found.is_symlink() { Some("a symbolic link") } else { not_regular(found.file_type()) };
    kind.map_or(Ok(()), |kind| Err(io::Error::other(format!("it is {kind} and no regular file"))))
}
