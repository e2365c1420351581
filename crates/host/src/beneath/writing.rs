//! Appending to files in a directory that containers may be able to change.

use std::fs::{File, Metadata};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use rustix::fs::{Mode, OFlags, RenameFlags, ResolveFlags};

use super::{RootDirectory, require_regular};

impl RootDirectory {
    /// Opens a regular file of our own to append to it, or creates it. Nothing here waits for the reader of a pipe.
    ///
    /// # Errors
    /// When a link is on the way to it, it has a second name, belongs to another user, or is no regular file.
    pub fn append_file(&self, below: &Path, mode: u32) -> io::Result<File> {
        match self.resolve(below, OFlags::PATH | OFlags::NOFOLLOW) {
            Ok(found) => append_to(&File::from(found)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => self.create_file(below, mode),
            Err(error) => Err(error),
        }
    }

    /// What is there, a link itself too.
    ///
    /// # Errors
    /// When there is nothing, or a link is on the way to it.
    pub fn metadata(&self, below: &Path) -> io::Result<Metadata> {
        File::from(self.resolve(below, OFlags::PATH | OFlags::NOFOLLOW)?).metadata()
    }

    /// Renames what is directly in this directory; a link itself too.
    ///
    /// # Errors
    /// When there is nothing, or the new name is that of a directory.
    pub fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        Ok(rustix::fs::renameat(&self.0, from, &self.0, to)?)
    }

    /// Renames what is directly in this directory, unless there is something of the new name.
    ///
    /// # Errors
    /// When there is nothing of the old name, or something of the new one.
    pub fn rename_to_free_name(&self, from: &Path, to: &Path) -> io::Result<()> {
        Ok(rustix::fs::renameat_with(&self.0, from, &self.0, to, RenameFlags::NOREPLACE)?)
    }

    /// Creates a file to append to it.
    ///
    /// # Errors
    /// When there is something of that name, or a link is on the way to it.
    pub fn create_file(&self, below: &Path, mode: u32) -> io::Result<File> {
        let flags = OFlags::WRONLY | OFlags::APPEND | OFlags::CREATE | OFlags::EXCL;
        let how = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
        let (flags, mode) = (flags | OFlags::CLOEXEC, Mode::from_raw_mode(mode));
        Ok(File::from(rustix::fs::openat2(&self.0, below, flags, mode, how)?))
    }
}

/// Opens the very file that was looked at, whatever has taken its name meanwhile.
fn append_to(found: &File) -> io::Result<File> {
    let metadata = found.metadata()?;
    require_regular(&metadata)?;
    if metadata.nlink() != 1 {
        return Err(io::Error::other("it has another name, too"));
    }
    if metadata.uid() != rustix::process::geteuid().as_raw() {
        return Err(io::Error::other("it belongs to another user"));
    }
    let again = format!("/proc/self/fd/{}", found.as_raw_fd());
    let flags = OFlags::WRONLY | OFlags::APPEND | OFlags::NONBLOCK | OFlags::CLOEXEC;
    Ok(File::from(rustix::fs::open(again, flags, Mode::empty())?))
}
