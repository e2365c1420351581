//! A walk through a tree that holds one directory open at a time, however deep it is.
//!
//! On the way up the kernel's `..` is taken, and must lead to the very directory that we came from.

use std::ffi::{OsStr, OsString};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, Dir, FileType, Mode, OFlags, Statx, StatxFlags};
use rustix::io::Errno;

use super::RemoveTreeError;

/// What a walk is for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum WalkPurpose {
    /// To see whether anything is mounted.
    FindMounts,
    /// To remove everything.
    Remove,
}

/// The identity of a file, and of the mount it is on.
#[derive(Clone, Copy, PartialEq, Eq)]
struct FileIdentity {
    device: (u32, u32),
    inode: u64,
    mount: u64,
}

impl FileIdentity {
    fn is_on_mount_of(&self, other: &Self) -> bool {
        (self.device, self.mount) == (other.device, other.mount)
    }
}

/// A directory on the way from the top to where we are.
struct DirectoryLevel {
    name: OsString,
    identity: FileIdentity,
    /// Directories in it that are still to be visited: those that were read last.
    below: Vec<OsString>,
    /// Where reading goes on when these were visited; none at the end.
    unread: Option<i64>,
}

/// The beginning of a directory.
const BEGIN: i64 = 0;
/// Names that are held at the top of a tree; further down fewer are, so that neither the width nor the depth of a tree fills the
/// memory.
const MAX_NAMES: usize = 4096;

pub(super) struct Walk {
    tree: PathBuf,
    pass: WalkPurpose,
    /// The name of the tree in the directory that it is in.
    top: OsString,
    /// That directory. All of the tree must be on the mount that it is on.
    parent: FileIdentity,
    /// The way to where we are, top first; empty before and after.
    levels: Vec<DirectoryLevel>,
    here: OwnedFd,
    /// Names that are held at the top.
    max_names: usize,
}

impl Walk {
    /// Opens the directory that holds the tree; none if there is no tree.
    pub(super) fn start(path: &Path, pass: WalkPurpose) -> Result<Option<Self>, RemoveTreeError> {
        let nameless = || RemoveTreeError::Nameless { path: path.to_owned() };
        let top = path.file_name().ok_or_else(nameless)?.to_owned();
        let above = path.parent().filter(|above| !above.as_os_str().is_empty());
        let failed = |source: Errno| failed(path.to_owned(), source);
        let opened = open_path(CWD, above.unwrap_or(Path::new(".")));
        let Some(here) = gone_is_none(opened).map_err(failed)? else {
            return Ok(None);
        };
        let (parent, _) = stat_entry(&here, c"").map_err(failed)?;
        let (tree, levels, max_names) = (path.to_owned(), Vec::new(), MAX_NAMES);
        Ok(Some(Self { tree, top, pass, parent, levels, here, max_names }))
    }

    /// Goes through the whole tree.
    pub(super) fn run(&mut self) -> Result<(), RemoveTreeError> {
        let top = self.top.clone();
        if self.entry(&top)? {
            self.enter(top)?;
        }
        while let Some(level) = self.levels.last_mut() {
            match (level.below.pop(), level.unread) {
                (Some(name), _) => self.enter(name)?,
                (None, Some(offset)) => self.list(offset)?,
                (None, None) => self.leave()?,
            }
        }
        Ok(())
    }

    /// Looks at one entry of the directory we are in. True if it is a directory, which is for later;
    /// anything else is removed at once.
    fn entry(&mut self, name: &OsStr) -> Result<bool, RemoveTreeError> {
        let Some((identity, kind)) = self.at(name, gone_is_none(stat_entry(&self.here, name)))?
        else {
            return Ok(false);
        };
        if !identity.is_on_mount_of(&self.parent) {
            return Err(self.mounted(name));
        }
        if kind != FileType::Directory && self.pass == WalkPurpose::Remove {
            self.remove(name, AtFlags::empty())?;
        }
        Ok(kind == FileType::Directory)
    }

    /// Goes down into a directory, unless it has gone. What has become a link or a mount since we
    /// looked is not entered.
    fn enter(&mut self, name: OsString) -> Result<(), RemoveTreeError> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let opened = rustix::fs::openat(&self.here, &name, flags, Mode::empty());
        let Some(directory) = self.at(&name, gone_is_none(opened))? else {
            return Ok(());
        };
        let (identity, _) = self.at(&name, stat_entry(&directory, c""))?;
        if !identity.is_on_mount_of(&self.parent) {
            return Err(self.mounted(&name));
        }
        self.here = directory;
        self.levels.push(DirectoryLevel { name, identity, below: Vec::new(), unread: None });
        self.list(BEGIN)
    }

    /// Reads on in the directory we are in, until there are enough directories to be visited.
    fn list(&mut self, offset: i64) -> Result<(), RemoveTreeError> {
        let most = (self.max_names / self.levels.len().max(1)).max(1);
        // What was removed meanwhile changes where the rest is; in a pass that removes, what was read is gone, so it begins anew.
        let offset = if self.pass == WalkPurpose::Remove { BEGIN } else { offset };
        let mut below = Vec::new();
        let mut unread = None;
        let listing = self.at(OsStr::new(""), self.open_listing(offset))?;
        for entry in listing {
            let entry = self.at(OsStr::new(""), entry)?;
            let name = OsStr::from_bytes(entry.file_name().to_bytes());
            if name != "." && name != ".." && self.entry(name)? {
                below.push(name.to_owned());
            }
            if below.len() >= most {
                unread = Some(entry.offset());
                break;
            }
        }
        if let Some(level) = self.levels.last_mut() {
            (level.below, level.unread) = (below, unread);
        }
        Ok(())
    }

    fn open_listing(&self, offset: i64) -> Result<Dir, Errno> {
        // The directory that we came back to was only passed through.
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let mut listing = Dir::new(rustix::fs::openat(&self.here, c".", flags, Mode::empty())?)?;
        if offset != BEGIN {
            listing.seek(offset)?;
        }
        Ok(listing)
    }

    /// Goes up, and removes the directory we come from.
    fn leave(&mut self) -> Result<(), RemoveTreeError> {
        let above = self.at(OsStr::new(""), open_path(&self.here, Path::new("..")))?;
        let (found, _) = self.at(OsStr::new(""), stat_entry(&above, c""))?;
        let mut above_us = self.levels.iter().rev().skip(1).map(|level| level.identity);
        if found != above_us.next().unwrap_or(self.parent) {
            return Err(RemoveTreeError::Moved { path: self.path(OsStr::new("")) });
        }
        let Some(left) = self.levels.pop() else {
            return Ok(());
        };
        self.here = above;
        match self.pass {
            WalkPurpose::FindMounts => Ok(()),
            WalkPurpose::Remove => self.remove(&left.name, AtFlags::REMOVEDIR),
        }
    }

    /// The kernel refuses to unlink what is mounted on, so that a mount which came after the look is
    /// safe too.
    fn remove(&self, name: &OsStr, flags: AtFlags) -> Result<(), RemoveTreeError> {
        match rustix::fs::unlinkat(&self.here, name, flags) {
            Err(Errno::BUSY) => Err(self.mounted(name)),
            Err(Errno::NOENT) => Ok(()),
            other => self.at(name, other),
        }
    }

    fn at<T>(&self, name: &OsStr, result: Result<T, Errno>) -> Result<T, RemoveTreeError> {
        result.map_err(|source| failed(self.path(name), source))
    }

    fn mounted(&self, name: &OsStr) -> RemoveTreeError {
        RemoveTreeError::Mounted { point: self.path(name), tree: self.tree.clone() }
    }

    /// The path of an entry of the directory we are in, or of that directory. For errors alone: in a
    /// deep tree it is long.
    fn path(&self, name: &OsStr) -> PathBuf {
        if self.levels.is_empty() {
            return self.tree.clone();
        }
        let below_top = self.levels.iter().skip(1).map(|level| level.name.as_os_str());
        let mut path = self.tree.clone();
        path.extend(below_top.chain((!name.is_empty()).then_some(name)));
        path
    }
}

fn failed(path: PathBuf, source: Errno) -> RemoveTreeError {
    RemoveTreeError::Failed { path, source: source.into() }
}

/// Opens a directory that is only passed through, and not listed.
fn open_path(from: impl AsFd, path: &Path) -> Result<OwnedFd, Errno> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    rustix::fs::openat(from, path, flags, Mode::empty())
}

/// The identity of an entry of a directory, the last component not followed; with no name, of the directory itself.
fn stat_entry(
    directory: &impl AsFd,
    name: impl rustix::path::Arg,
) -> Result<(FileIdentity, FileType), Errno> {
    let flags = AtFlags::SYMLINK_NOFOLLOW | AtFlags::EMPTY_PATH | AtFlags::NO_AUTOMOUNT;
    let wanted = StatxFlags::TYPE | StatxFlags::INO | StatxFlags::MNT_ID;
    let found = rustix::fs::statx(directory, name, flags, wanted)?;
    // Without mount ids a bind mount looks like any directory: better to remove nothing.
    if found.stx_mask & StatxFlags::MNT_ID.bits() == 0 {
        return Err(Errno::OPNOTSUPP);
    }
    Ok((identity(&found), FileType::from_raw_mode(found.stx_mode.into())))
}

fn identity(found: &Statx) -> FileIdentity {
    FileIdentity {
        device: (found.stx_dev_major, found.stx_dev_minor),
        inode: found.stx_ino,
        mount: found.stx_mnt_id,
    }
}

fn gone_is_none<T>(result: Result<T, Errno>) -> Result<Option<T>, Errno> {
    match result {
        Err(Errno::NOENT) => Ok(None),
        other => other.map(Some),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn of_many_directories_only_some_names_are_held_at_a_time() {
        let parent = tempfile::tempdir().unwrap();
        let tree = parent.path().join("tree");
        for number in 0..100 {
            fs::create_dir_all(tree.join(number.to_string())).unwrap();
        }
        for pass in [WalkPurpose::FindMounts, WalkPurpose::Remove] {
            let mut walk = Walk::start(&tree, pass).unwrap().unwrap();
            walk.max_names = 16;
            let top = walk.top.clone();
            walk.enter(top).unwrap();
            let held = walk.levels[0].below.len();
            assert!(held <= 16, "{held}");
            let mut walk = Walk::start(&tree, pass).unwrap().unwrap();
            walk.max_names = 16;
            walk.run().unwrap();
            assert_eq!(tree.exists(), pass == WalkPurpose::FindMounts);
        }
    }
}
