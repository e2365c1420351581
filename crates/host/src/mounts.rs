//! What is mounted: `/proc/<pid>/mountinfo` as data.
//!
//! The text is bytes, not UTF-8: a path is whatever its creator called it, and one oddly named
//! mount must not blind us to all the others.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};
use std::{fs, io};

use rustix::fs::{AtFlags, CWD, StatxAttributes, StatxFlags, statx};
use rustix::io::Errno;

#[cfg(test)]
mod tests;

/// One line of mountinfo.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mount {
    /// The kernel's number for this mount, unique while it lasts.
    pub id: u32,
    /// The number of the mount it sits on.
    pub parent: u32,
    /// `major:minor` of the file system: equal for two mounts of the same one.
    pub device: String,
    /// The directory of the file system that is seen at the mount point.
    pub root: PathBuf,
    /// Where it is mounted.
    pub point: PathBuf,
    /// Options of this mount, comma separated.
    pub options: String,
    /// Propagation, such as `shared:5` or `master:3`; empty for a private mount.
    pub propagation: Vec<String>,
    /// The type of the file system, such as `overlay`.
    pub fs_type: String,
    /// The device, or any word that was given in place of one.
    pub source: String,
    /// Options of the file system as a whole, comma separated.
    pub super_options: String,
}

impl Mount {
    /// Whether mounts below it pass to its peers, and theirs to it.
    pub fn is_shared(&self) -> bool {
        self.propagation.iter().any(|field| field.starts_with("shared:"))
    }

    /// Whether mounts of another one pass to it.
    pub fn is_slave(&self) -> bool {
        self.propagation.iter().any(|field| field.starts_with("master:"))
    }
}

/// A line of mountinfo that is not one.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("not a line of mountinfo: {line:?}")]
pub struct MountinfoError {
    /// The line as it was read.
    pub line: String,
}

/// Reads the whole text of a mountinfo file.
///
/// # Errors
/// When a line lacks a field that every kernel writes.
pub fn parse(text: &[u8]) -> Result<Vec<Mount>, MountinfoError> {
    text.split(|byte| *byte == b'\n')
        .filter(|line| !line.is_empty())
        .map(|line| parse_line(line).ok_or_else(|| MountinfoError { line: lossy(line) }))
        .collect()
}

/// The mounts that this process sees, in the order in which they were made.
///
/// # Errors
/// When /proc is not mounted, or says something that is not mountinfo.
pub fn current() -> io::Result<Vec<Mount>> {
    parse(&fs::read("/proc/self/mountinfo")?).map_err(io::Error::other)
}

/// Whether something is mounted at a path; not at one where there is nothing. The kernel is asked about that one mount: links on the
/// way to it do not matter, nor does the number of mounts.
///
/// # Errors
/// When the kernel refuses.
pub fn is_mount_point(path: &Path) -> io::Result<bool> {
    // Nothing is asked of the file system: it may be that of a server that is gone.
    let flags = AtFlags::SYMLINK_NOFOLLOW | AtFlags::NO_AUTOMOUNT | AtFlags::STATX_DONT_SYNC;
    match statx(CWD, path, flags, StatxFlags::empty()) {
        Ok(found) if found.stx_attributes_mask.contains(StatxAttributes::MOUNT_ROOT) => {
            Ok(found.stx_attributes.contains(StatxAttributes::MOUNT_ROOT))
        }
        Err(Errno::NOENT | Errno::NOTDIR) => Ok(false),
        // Linux before 5.8 does not tell, and not every file system when its server is gone.
        Ok(_) | Err(_) => {
            let path = resolve_parent(path)?;
            Ok(current()?.iter().any(|mount| mount.point == path))
        }
    }
}

/// The path of a mount point as the kernel has it: what leads to it may be a link, the last component is not looked at.
///
/// # Errors
/// When there is no such directory above it.
pub fn resolve_parent(path: &Path) -> io::Result<PathBuf> {
    let (parent, name) = path.parent().zip(path.file_name()).ok_or(io::ErrorKind::InvalidInput)?;
    Ok(parent.canonicalize()?.join(name))
}

/// The mounts at `directory` and below it.
pub fn beneath<'a>(mounts: &'a [Mount], directory: &'a Path) -> impl Iterator<Item = &'a Mount> {
    mounts.iter().filter(move |mount| mount.point.starts_with(directory))
}

/// The mount that a path without links lies on: of several at one point the newest.
pub fn mount_of<'a>(mounts: &'a [Mount], path: &Path) -> Option<&'a Mount> {
    let above = mounts.iter().filter(|mount| path.starts_with(&mount.point));
    above.max_by_key(|mount| mount.point.components().count())
}

/// Fields are separated by exactly one space (a source may be empty), and a lone `-` ends the
/// propagation fields, of which there may be any number.
fn parse_line(line: &[u8]) -> Option<Mount> {
    let mut fields = line.split(|byte| *byte == b' ');
    let id = number(fields.next()?)?;
    let parent = number(fields.next()?)?;
    let device = lossy(fields.next()?);
    let root = path(fields.next()?);
    let point = path(fields.next()?);
    let options = lossy(fields.next()?);
    let propagation = fields.by_ref().take_while(|field| *field != b"-").map(lossy).collect();
    let fs_type = lossy(fields.next()?);
    let source = lossy(&unescape(fields.next()?));
    let super_options = lossy(fields.next()?);
    Some(Mount {
        id,
        parent,
        device,
        root,
        point,
        options,
        propagation,
        fs_type,
        source,
        super_options,
    })
}

fn number(field: &[u8]) -> Option<u32> {
    str::from_utf8(field).ok()?.parse().ok()
}

fn lossy(field: &[u8]) -> String {
    String::from_utf8_lossy(field).into_owned()
}

fn path(field: &[u8]) -> PathBuf {
    PathBuf::from(OsString::from_vec(unescape(field)))
}

/// The kernel writes space, tab, newline, `#` and backslash as three octal digits.
fn unescape(field: &[u8]) -> Vec<u8> {
    let mut plain = Vec::with_capacity(field.len());
    let mut rest = field;
    while let Some((&first, tail)) = rest.split_first() {
        let (byte, after) = escaped(rest).unwrap_or((first, tail));
        plain.push(byte);
        rest = after;
    }
    plain
}

/// The byte that an escape at the start of `text` stands for, and what follows it.
fn escaped(text: &[u8]) -> Option<(u8, &[u8])> {
    let digits = text.strip_prefix(b"\\")?.get(..3)?;
    let byte = u8::from_str_radix(str::from_utf8(digits).ok()?, 8).ok()?;
    Some((byte, &text[4..]))
}
