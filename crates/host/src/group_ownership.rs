//! Giving a tree of files to a group, although containers may change it meanwhile.
//!
//! Every file is opened by its name in a directory that was opened before, no link is followed, and what is changed is the very file that
//! was looked at. What is mounted in the tree is not entered.

#[cfg(test)]
mod tests;

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use rustix::fs::{
    AtFlags, CWD, Dir, FileType, Gid, Mode, OFlags, Statx, StatxFlags, chmod, chownat, openat,
    statx,
};
use rustix::io::Errno;

/// Each level keeps a directory open. What lies deeper is no volume that people use, and would take the descriptors of others.
const MAX_DEPTH: usize = 256;
/// What the group may do with a file.
const FILE: u32 = 0o660;
/// What the group may do with a directory; what is made in it belongs to the group too.
const DIRECTORY: u32 = 0o2770;

/// Whether a directory belongs to the group, which may use it as it needs.
///
/// # Errors
/// When there is no such directory.
pub fn belongs_to(path: &Path, group: u32) -> io::Result<bool> {
    let top = openat(CWD, path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty())?;
    let found = stat(&top)?;
    Ok(found.stx_gid == group && u32::from(found.stx_mode) & DIRECTORY == DIRECTORY)
}

/// Gives a directory and all that is in it to the group. The directory itself comes last: one that belongs to the group was done to its
/// end.
///
/// # Errors
/// When the kernel refuses, or when directories are nested too deep.
pub fn give_tree(path: &Path, group: u32) -> io::Result<()> {
    let top = openat(CWD, path, OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?;
    let mount = stat(&top)?.stx_mnt_id;
    let mut levels = vec![TreeLevel::open(top)?];
    while let Some(level) = levels.last_mut() {
        match level.names.pop() {
            Some(name) => {
                let below = enter(level, &name, mount, group)?;
                if levels.len() >= MAX_DEPTH && below.is_some() {
                    return Err(io::Error::other(format!(
                        "directories are more than {MAX_DEPTH} deep"
                    )));
                }
                levels.extend(below);
            }
            None => {
                give(&level.directory, &stat(&level.directory)?, group)?;
                levels.pop();
            }
        }
    }
    Ok(())
}

/// A directory, and the names in it that are still to be done.
struct TreeLevel {
    directory: OwnedFd,
    names: Vec<OsString>,
}

impl TreeLevel {
    fn open(directory: OwnedFd) -> io::Result<Self> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let listing = Dir::new(openat(&directory, c".", flags, Mode::empty())?)?;
        let mut names = Vec::new();
        for entry in listing {
            let entry = entry?;
            let name = OsStr::from_bytes(entry.file_name().to_bytes());
            if name != "." && name != ".." {
                names.push(name.to_owned());
            }
        }
        Ok(Self { directory, names })
    }
}

/// Gives a file to the group, or opens a directory, whose own turn comes after what is in it.
fn enter(level: &TreeLevel, name: &OsStr, mount: u64, group: u32) -> io::Result<Option<TreeLevel>> {
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let opened = match openat(&level.directory, name, flags, Mode::empty()) {
        Err(Errno::NOENT) => return Ok(None),
        opened => opened?,
    };
    let found = stat(&opened)?;
    if found.stx_mnt_id != mount {
        return Ok(None);
    }
    match FileType::from_raw_mode(found.stx_mode.into()) {
        FileType::Directory => TreeLevel::open(opened).map(Some),
        _ => give(&opened, &found, group).map(|()| None),
    }
}

/// Changes one file, if that is needed. A link has no mode.
fn give(file: &OwnedFd, found: &Statx, group: u32) -> io::Result<()> {
    let kind = FileType::from_raw_mode(found.stx_mode.into());
    let (mode, wanted) = (u32::from(found.stx_mode) & 0o7777, wanted_mode(kind));
    if found.stx_gid != group {
        let group = Some(Gid::from_raw(group));
        chownat(file, c"", None, group, AtFlags::EMPTY_PATH | AtFlags::SYMLINK_NOFOLLOW)?;
    }
    // A change of the group takes the bits away that hand on user or group.
    let is_changed = mode & wanted != wanted || found.stx_gid != group && mode & 0o6000 != 0;
    if kind != FileType::Symlink && is_changed {
        chmod(format!("/proc/self/fd/{}", file.as_raw_fd()), Mode::from_raw_mode(mode | wanted))?;
    }
    Ok(())
}

fn wanted_mode(kind: FileType) -> u32 {
    if kind == FileType::Directory { DIRECTORY } else { FILE }
}

fn stat(file: &impl AsFd) -> Result<Statx, Errno> {
    let wanted = StatxFlags::BASIC_STATS | StatxFlags::MNT_ID;
    statx(file, c"", AtFlags::EMPTY_PATH | AtFlags::SYMLINK_NOFOLLOW, wanted)
}
