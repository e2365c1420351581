//! Counts what a tree of files holds, part by part, so that a large one does not keep a thread.
//!
//! Containers write such trees while they are counted. No link is followed, no mount is crossed, and every directory is reached by the
//! descriptor of the one above it, so that renames lead nowhere else.

#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;

use oarsman_core::disk_usage::DiskUsage;
use rustix::fs::{AtFlags, CWD, Dir, FileType, Mode, OFlags, Statx, StatxFlags, statvfs, statx};
use rustix::io::Errno;

/// Levels whose directories are open at a time.
const MAX_OPEN: usize = 128;
/// Directories below those that are counted afterwards, as trees of their own.
const MAX_DEFERRED: usize = 128;
/// Files with several names that are remembered. Beyond that they count once for each name.
const MAX_LINKED: usize = 1 << 20;
/// The unit of allocated blocks, whatever the file system's own is.
const BLOCK: u64 = 512;

/// A count that is under way.
#[derive(Debug)]
pub struct UsageCount {
    /// The directories on the way to where we are.
    open: Vec<Dir>,
    /// Directories that lie too deep to be counted on the way.
    deferred: Vec<OwnedFd>,
    /// The mount that everything is on.
    mount: u64,
    /// Files with several names that were counted: device and inode.
    linked: BTreeSet<(u32, u32, u64)>,
    usage: DiskUsage,
    is_complete: bool,
}

impl UsageCount {
    /// Begins with a file or a directory; nothing holds nothing.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn of(path: &Path) -> io::Result<Self> {
        let mut count = Self {
            open: Vec::new(),
            deferred: Vec::new(),
            mount: 0,
            linked: BTreeSet::new(),
            usage: DiskUsage::default(),
            is_complete: true,
        };
        let Some(found) = look(CWD, path)? else { return Ok(count) };
        count.mount = found.stx_mnt_id;
        count.add(&found);
        if is_directory(&found) {
            let opened = open(CWD, path)?.map(Dir::new).transpose()?;
            count.open.extend(opened);
        }
        Ok(count)
    }

    /// Counts so many more entries; true when all were counted.
    ///
    /// # Errors
    /// When the kernel refuses. What is removed meanwhile is no error.
    pub fn step(&mut self, entries: usize) -> io::Result<bool> {
        for _ in 0..entries {
            let Some(directory) = self.open.last_mut() else {
                match self.deferred.pop() {
                    Some(next) => self.open.push(Dir::new(next)?),
                    None => return Ok(true),
                }
                continue;
            };
            match directory.read() {
                Some(entry) => self.entry(&entry?)?,
                None => drop(self.open.pop()),
            }
        }
        Ok(self.open.is_empty() && self.deferred.is_empty())
    }

    /// What was counted so far.
    pub fn usage(&self) -> DiskUsage {
        self.usage
    }

    /// Whether nothing was left out: a tree can be deeper than is counted.
    pub fn is_complete(&self) -> bool {
        self.is_complete
    }

    fn entry(&mut self, entry: &rustix::fs::DirEntry) -> io::Result<()> {
        let name = entry.file_name();
        let Some(directory) = self.open.last().filter(|_| name != c"." && name != c"..") else {
            return Ok(());
        };
        let from = directory.fd()?;
        let Some(found) = look(from, name)?.filter(|found| found.stx_mnt_id == self.mount) else {
            return Ok(());
        };
        let below = match is_directory(&found) {
            true => open(from, name)?,
            false => None,
        };
        self.add(&found);
        // It may have become another one since: of another mount nothing is counted.
        if let Some(below) = below
            && look(&below, c"")?.is_some_and(|found| found.stx_mnt_id == self.mount)
        {
            self.enter(below)?;
        }
        Ok(())
    }

    fn enter(&mut self, directory: OwnedFd) -> io::Result<()> {
        match (self.open.len() < MAX_OPEN, self.deferred.len() < MAX_DEFERRED) {
            (true, _) => self.open.push(Dir::new(directory)?),
            (false, true) => self.deferred.push(directory),
            (false, false) => self.is_complete = false,
        }
        Ok(())
    }

    fn add(&mut self, found: &Statx) {
        if found.stx_nlink > 1 && !is_directory(found) && self.linked.len() < MAX_LINKED {
            let file = (found.stx_dev_major, found.stx_dev_minor, found.stx_ino);
            if !self.linked.insert(file) {
                return;
            }
        }
        let bytes = found.stx_blocks.saturating_mul(BLOCK);
        self.usage = self.usage + DiskUsage { bytes, inodes: 1 };
    }
}

/// What a whole file system holds, such as a tmpfs that is one volume: the kernel has counted that.
///
/// # Errors
/// When the kernel refuses.
pub fn of_file_system(path: &Path) -> io::Result<DiskUsage> {
    let found = statvfs(path)?;
    let blocks = found.f_blocks.saturating_sub(found.f_bfree);
    Ok(DiskUsage {
        bytes: blocks.saturating_mul(found.f_frsize),
        inodes: found.f_files.saturating_sub(found.f_ffree),
    })
}

fn is_directory(found: &Statx) -> bool {
    FileType::from_raw_mode(found.stx_mode.into()) == FileType::Directory
}

fn look(from: impl AsFd, name: impl rustix::path::Arg) -> io::Result<Option<Statx>> {
    let flags = AtFlags::SYMLINK_NOFOLLOW | AtFlags::EMPTY_PATH | AtFlags::NO_AUTOMOUNT;
    let wanted = StatxFlags::TYPE
        | StatxFlags::INO
        | StatxFlags::NLINK
        | StatxFlags::BLOCKS
        | StatxFlags::MNT_ID;
    unless_gone(statx(from, name, flags, wanted))
}

fn open(from: impl AsFd, name: impl rustix::path::Arg) -> io::Result<Option<OwnedFd>> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    unless_gone(rustix::fs::openat(from, name, flags, Mode::empty()))
}

/// What is gone, or has become something else, is not counted.
fn unless_gone<T>(found: Result<T, Errno>) -> io::Result<Option<T>> {
    match found {
        Ok(found) => Ok(Some(found)),
        Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => Ok(None),
        Err(error) => Err(error.into()),
    }
}
