//! A walk through a tree that holds one directory open at a time, however deep it is.
//!
//! On the way up the kernel's `..` is taken, and must lead to the very directory that we came from.

use std::ffi::{OsStr, OsString};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::fs::{
    AtFlags, Dir, FileType, Mode, OFlags, RenameFlags, Statx, StatxFlags, renameat_with,
};
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
        // The device says nothing: a subvolume of btrfs has one of its own, and so has a file of an overlay.
        self.mount == other.mount
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
/// Names that are held at the top of a tree; further down fewer are, so that the width of a tree does not fill the memory.
const MAX_NAMES: usize = 4096;
/// Levels that are held. What lies deeper is moved to the top first, so that the depth of a tree does not fill the memory either.
const MAX_DEPTH: usize = 1024;
/// Bytes of a path in an error, which gets into logs and events.
const MAX_PATH: usize = 4096;

pub(super) struct Walk {
    tree: PathBuf,
    pass: WalkPurpose,
    /// The directory that the tree is in. All of the tree must be on the mount that it is on.
    parent: FileIdentity,
    /// The way to where we are, top first; empty before and after.
    levels: Vec<DirectoryLevel>,
    here: OwnedFd,
    /// The top of the tree, once it was entered.
    top: Option<OwnedFd>,
    /// The number of the next directory that is moved there.
    next_moved: u32,
    /// Names that are held at the top.
    max_names: usize,
    /// Levels that are held.
    max_depth: usize,
    /// Entries that may still be looked at.
    left: usize,
}

impl Walk {
    /// Begins in the directory that holds the tree.
    pub(super) fn start(
        parent: BorrowedFd<'_>,
        tree: &Path,
        pass: WalkPurpose,
        most: usize,
    ) -> Result<Self, RemoveTreeError> {
        let failed = |source: Errno| failed(tree.to_owned(), source);
        let here = open_path(parent, Path::new(".")).map_err(failed)?;
        let (parent, _) = stat_entry(&here, c"").map_err(failed)?;
        Ok(Self {
            tree: tree.to_owned(),
            pass,
            parent,
            levels: Vec::new(),
            here,
            top: None,
            next_moved: 0,
            max_names: MAX_NAMES,
            max_depth: MAX_DEPTH,
            left: most,
        })
    }

    /// Goes through the whole tree.
    pub(super) fn run(&mut self) -> Result<(), RemoveTreeError> {
        let top = self.tree.file_name().unwrap_or_default().to_owned();
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
        self.count_entry()?;
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

    fn count_entry(&mut self) -> Result<(), RemoveTreeError> {
        let unfinished = || RemoveTreeError::Unfinished { tree: self.tree.clone() };
        self.left = self.left.checked_sub(1).ok_or_else(unfinished)?;
        Ok(())
    }

    /// Goes down into a directory, unless it has gone. What has become a link or a mount since we
    /// looked is not entered.
    fn enter(&mut self, name: OsString) -> Result<(), RemoveTreeError> {
        if self.levels.len() >= self.max_depth && self.move_to_top(&name)? {
            return Ok(());
        }
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let opened = rustix::fs::openat(&self.here, &name, flags, Mode::empty());
        let Some(directory) = self.at(&name, gone_is_none(opened))? else {
            return Ok(());
        };
        let (identity, _) = self.at(&name, stat_entry(&directory, c""))?;
        if !identity.is_on_mount_of(&self.parent) {
            return Err(self.mounted(&name));
        }
        if self.levels.is_empty() {
            let again = open_path(&directory, Path::new("."));
            self.top = Some(self.at(&name, again)?);
        }
        self.here = directory;
        self.levels.push(DirectoryLevel { name, identity, below: Vec::new(), unread: None });
        self.list(BEGIN)
    }

    /// Moves a directory that lies too deep to the top of the tree, which is read again later. False where the file system cannot:
    /// between subvolumes, out of the lower layers of an overlay, or at all.
    fn move_to_top(&mut self, name: &OsStr) -> Result<bool, RemoveTreeError> {
        if self.pass == WalkPurpose::FindMounts {
            return Err(RemoveTreeError::Unfinished { tree: self.tree.clone() });
        }
        let Some(top) = &self.top else { return Ok(false) };
        let moved = loop {
            let unfinished = || RemoveTreeError::Unfinished { tree: self.tree.clone() };
            self.left = self.left.checked_sub(1).ok_or_else(unfinished)?;
            let fresh = format!(".oarsman-removed-{}", self.next_moved);
            self.next_moved = self.next_moved.wrapping_add(1);
            match renameat_with(&self.here, name, top, fresh, RenameFlags::NOREPLACE) {
                Err(Errno::EXIST) => {}
                moved => break moved,
            }
        };
        match moved {
            Err(Errno::XDEV | Errno::INVAL) => Ok(false),
            Err(Errno::BUSY) => Err(self.mounted(name)),
            moved => {
                self.at(name, gone_is_none(moved))?;
                if let Some(top) = self.levels.first_mut() {
                    top.unread = Some(BEGIN);
                }
                Ok(true)
            }
        }
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

    /// The path of an entry of the directory we are in, or of that directory. For errors alone: of a long one the beginning.
    fn path(&self, name: &OsStr) -> PathBuf {
        let mut path = self.tree.clone();
        if self.levels.is_empty() {
            return path;
        }
        let below_top = self.levels.iter().skip(1).map(|level| level.name.as_os_str());
        for part in below_top.chain((!name.is_empty()).then_some(name)) {
            if path.as_os_str().len() + part.len() >= MAX_PATH {
                path.push("...");
                break;
            }
            path.push(part);
        }
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
    // Nothing of what is asked for needs an answer of the file system, which may be that of a server that is gone.
    let flags = AtFlags::SYMLINK_NOFOLLOW
        | AtFlags::EMPTY_PATH
        | AtFlags::NO_AUTOMOUNT
        | AtFlags::STATX_DONT_SYNC;
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
    use std::os::fd::AsFd;

    use super::*;

    #[test]
    fn of_many_directories_only_some_names_are_held_at_a_time() {
        let parent = tempfile::tempdir().unwrap();
        let tree = parent.path().join("tree");
        for number in 0..100 {
            fs::create_dir_all(tree.join(number.to_string())).unwrap();
        }
        let opened = fs::File::open(parent.path()).unwrap();
        for pass in [WalkPurpose::FindMounts, WalkPurpose::Remove] {
            let start = || {
                let walk = Walk::start(opened.as_fd(), &tree, pass, usize::MAX).unwrap();
                Walk { max_names: 16, ..walk }
            };
            let mut walk = start();
            walk.enter("tree".into()).unwrap();
            let held = walk.levels[0].below.len();
            assert!(held <= 16, "{held}");
            start().run().unwrap();
            assert_eq!(tree.exists(), pass == WalkPurpose::FindMounts);
        }
    }

    #[test]
    fn of_many_levels_only_some_are_held_at_a_time() {
        let parent = tempfile::tempdir().unwrap();
        let tree = parent.path().join("tree");
        let deep: PathBuf = std::iter::repeat_n("d", 100).collect();
        fs::create_dir_all(tree.join(&deep)).unwrap();
        fs::write(tree.join(&deep).join("file"), "").unwrap();
        // What an earlier try has left.
        fs::create_dir(tree.join(".oarsman-removed-0")).unwrap();
        let opened = fs::File::open(parent.path()).unwrap();
        let walk = Walk::start(opened.as_fd(), &tree, WalkPurpose::Remove, usize::MAX).unwrap();
        let mut walk = Walk { max_depth: 8, ..walk };
        walk.run().unwrap();
        assert!(walk.levels.capacity() <= 8, "{}", walk.levels.capacity());
        assert!(!tree.exists());
    }

    #[test]
    fn the_path_in_an_error_is_not_longer_than_the_kernels() {
        let parent = tempfile::tempdir().unwrap();
        let tree = parent.path().join("tree");
        fs::create_dir(&tree).unwrap();
        let opened = fs::File::open(parent.path()).unwrap();
        let mut walk = Walk::start(opened.as_fd(), &tree, WalkPurpose::Remove, 10).unwrap();
        let identity = walk.parent;
        walk.levels = std::iter::repeat_with(|| DirectoryLevel {
            name: "d".repeat(255).into(),
            identity,
            below: Vec::new(),
            unread: None,
        })
        .take(1000)
        .collect();
        let path = walk.path(OsStr::new("file"));
        assert!(path.as_os_str().len() <= MAX_PATH + 4, "{}", path.as_os_str().len());
    }
}
