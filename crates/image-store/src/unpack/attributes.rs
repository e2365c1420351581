//! Owners, modes, times and extended attributes.

use std::ffi::CStr;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use rustix::fs::{
    AtFlags, FileType, Gid, Mode, OFlags, Stat, Timespec, Timestamps, UTIME_OMIT, Uid, XattrFlags,
    chownat, fchmod, fchown, fgetxattr, flistxattr, fsetxattr, futimens, openat, utimensat,
};
use rustix::io::Errno;

use super::reason::system;
use super::{UnpackReason, names};
use crate::archive::Entry;

/// The attribute of a directory that hides those of lower layers.
pub(super) const OPAQUE: &CStr = c"trusted.overlay.opaque";

const USER: &[u8] = b"user.";
const USER_OVERLAY: &[u8] = b"user.overlay.";
/// Attributes beside those of users that are set, and copied from lower layers.
const OTHERS: [&[u8]; 3] =
    [b"security.capability", b"system.posix_acl_access", b"system.posix_acl_default"];

/// overlayfs's whiteout is a character device 0:0.
pub(super) fn is_whiteout(stat: &Stat) -> bool {
    FileType::from_raw_mode(stat.st_mode) == FileType::CharacterDevice && stat.st_rdev == 0
}

/// What a descriptor leads to; also one that only names its file.
pub(super) fn stat_of(file: impl AsFd) -> Result<Stat, Errno> {
    rustix::fs::statat(file, c"", AtFlags::EMPTY_PATH)
}

/// The owner of an entry as Linux has it.
pub(super) fn owner(entry: &Entry) -> Result<(Uid, Gid), UnpackReason> {
    let number = |owner: u64| match u32::try_from(owner) {
        // The greatest means "leave it" to chown.
        Ok(number) if number != u32::MAX => Ok(number),
        _ => Err(UnpackReason::InvalidOwner { owner }),
    };
    Ok((Uid::from_raw(number(entry.uid)?), Gid::from_raw(number(entry.gid)?)))
}

pub(super) fn mtime(entry: &Entry) -> Timespec {
    Timespec { tv_sec: entry.mtime.0, tv_nsec: entry.mtime.1.into() }
}

fn times(mtime: Timespec) -> Timestamps {
    let omitted = Timespec { tv_sec: 0, tv_nsec: UTIME_OMIT };
    Timestamps { last_access: omitted, last_modification: mtime }
}

/// Sets all attributes of a file or directory that is open. The order counts: a change of owner takes set-user-id and capabilities away.
pub(super) fn set_all(file: BorrowedFd<'_>, entry: &Entry) -> Result<(), UnpackReason> {
    let (uid, gid) = owner(entry)?;
    fchown(file, Some(uid), Some(gid)).map_err(system("set its owner"))?;
    fchmod(file, Mode::from_raw_mode(entry.mode)).map_err(system("set its mode"))?;
    for (name, value) in &entry.xattrs {
        set_xattr(file, name, value)?;
    }
    set_mtime(file, mtime(entry))
}

pub(super) fn set_mtime(file: BorrowedFd<'_>, mtime: Timespec) -> Result<(), UnpackReason> {
    futimens(file, &times(mtime)).map_err(system("set its time"))
}

/// Sets owner and time of what is not opened: a symbolic link, or a device, whose mode is set, too.
pub(super) fn set_unopened(
    parent: &OwnedFd,
    name: &[u8],
    entry: &Entry,
    has_mode: bool,
) -> Result<(), UnpackReason> {
    let (uid, gid) = owner(entry)?;
    chownat(parent, name, Some(uid), Some(gid), AtFlags::SYMLINK_NOFOLLOW)
        .map_err(system("set its owner"))?;
    if has_mode {
        set_mode_unopened(parent, name, entry.mode)?;
    }
    utimensat(parent, name, &times(mtime(entry)), AtFlags::SYMLINK_NOFOLLOW)
        .map_err(system("set its time"))
}

/// The way to the very node that a descriptor names: to open a device would have effects.
fn set_mode_unopened(parent: &OwnedFd, name: &[u8], mode: u32) -> Result<(), UnpackReason> {
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let node = openat(parent, name, flags, Mode::empty()).map_err(system("set its mode"))?;
    let path = format!("/proc/self/fd/{}", node.as_raw_fd());
    rustix::fs::chmod(path, Mode::from_raw_mode(mode)).map_err(system("set its mode"))
}

fn is_kept(name: &[u8]) -> bool {
    OTHERS.contains(&name) || (name.starts_with(USER) && !name.starts_with(USER_OVERLAY))
}

fn set_xattr(file: BorrowedFd<'_>, name: &[u8], value: &[u8]) -> Result<(), UnpackReason> {
    if !is_kept(name) || name.contains(&0) {
        return Ok(());
    }
    match fsetxattr(file, name, value, XattrFlags::empty()) {
        // A file system without such attributes: containerd goes on, too.
        Ok(()) | Err(Errno::OPNOTSUPP) => Ok(()),
        Err(error) => Err(system("set an extended attribute of it")(error)),
    }
}

pub(super) fn set_opaque(directory: &OwnedFd) -> Result<(), UnpackReason> {
    let opened = readable(directory).map_err(system("open its directory"))?;
    fsetxattr(&opened, OPAQUE, b"y", XattrFlags::empty())
        .map_err(system("make its directory hide those of lower layers"))
}

/// A descriptor for more than naming.
pub(super) fn readable(directory: &OwnedFd) -> Result<OwnedFd, Errno> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    openat(directory, c".", flags, Mode::empty())
}

/// Gives a directory the attributes of another, and returns its time.
pub(super) fn copy_directory(from: &OwnedFd, to: &OwnedFd) -> Result<Timespec, Errno> {
    let (from, to) = (readable(from)?, readable(to)?);
    let stat = stat_of(&from)?;
    fchown(&to, Some(Uid::from_raw(stat.st_uid)), Some(Gid::from_raw(stat.st_gid)))?;
    fchmod(&to, Mode::from_raw_mode(stat.st_mode & 0o7777))?;
    copy_xattrs(&from, &to)?;
    let nanos = i64::try_from(stat.st_mtime_nsec).unwrap_or_default();
    Ok(Timespec { tv_sec: stat.st_mtime, tv_nsec: nanos })
}

fn copy_xattrs(from: &OwnedFd, to: &OwnedFd) -> Result<(), Errno> {
    let mut list = vec![0_u8; 64 << 10];
    let length = match flistxattr(from, &mut list[..]) {
        Err(Errno::OPNOTSUPP) => 0,
        other => other?,
    };
    for name in list[..length].split(|byte| *byte == 0).filter(|name| is_kept(name)) {
        let mut value = vec![0_u8; 64 << 10];
        let length = fgetxattr(from, name, &mut value[..])?;
        fsetxattr(to, name, &value[..length], XattrFlags::empty())?;
    }
    Ok(())
}

/// How an error shows a name.
pub(super) fn shown(name: &[u8]) -> String {
    String::from_utf8_lossy(name).into_owned()
}

/// Whether there is a whiteout of this name.
pub(super) fn stat_name(parent: &OwnedFd, name: &[u8]) -> Result<Option<Stat>, UnpackReason> {
    match rustix::fs::statat(parent, name, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(stat) => Ok(Some(stat)),
        Err(Errno::NOENT) => Ok(None),
        Err(error) => Err(system("look for it")(error)),
    }
}

/// Where an entry of a directory is, for messages and for the list of times.
pub(super) fn path_in(parent: &[u8], name: &[u8]) -> Vec<u8> {
    names::join(parent, name)
}
