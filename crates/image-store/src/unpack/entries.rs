//! Writes one entry.

use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::io::{Seek, SeekFrom, Write};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use oarsman_host::beneath::RootDirectory;
use oarsman_host::tree::RemoveTreeError;
use rustix::fs::{
    AtFlags, FileType, Mode, OFlags, ResolveFlags, Timespec, linkat, makedev, mkdirat, mknodat,
    openat, openat2, symlinkat, unlinkat,
};
use rustix::io::Errno;

use super::attributes::{
    is_whiteout, mtime, set_all, set_mtime, set_opaque, set_unopened, shown, stat_name,
};
use super::names::{EntryPath, Whiteout, whiteout};
use super::reason::system;
use super::{MAX_DIRECTORY_NAMES, UnpackReason, Unpacker};
use crate::archive::{Entry, EntryKind, Skip, TarReader};

const BUFFER: usize = 64 << 10;
/// Calls that remove one tree: it has at most as many entries as the layer before.
const MAX_REMOVALS: usize = 100;

/// What had the name of an entry before.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Before {
    /// Nothing, or what was removed.
    Nothing,
    /// A directory, which stays.
    Directory,
    /// A whiteout of this layer, which was removed.
    Whiteout,
}

impl Unpacker<'_> {
    pub(super) fn entry<R: Skip>(
        &mut self,
        entry: &Entry,
        reader: &mut TarReader<R>,
    ) -> Result<(), UnpackReason> {
        if let EntryKind::Other(flag) = entry.kind {
            return Err(UnpackReason::UnknownType { flag: flag.into() });
        }
        let Some(path) = EntryPath::of(&entry.name)? else { return Ok(()) };
        match whiteout(&path.name)? {
            Whiteout::No => self.write(entry, &path, reader),
            Whiteout::Opaque => set_opaque(&*self.parent(&path.parent)?),
            Whiteout::Of(name) => self.hide(&path.parent, name),
            Whiteout::Ignored => Ok(()),
        }
    }

    /// Hides what lower layers have of a name. What this layer has of it stays, and hides a lower directory as a whole.
    fn hide(&mut self, parent: &[u8], name: &[u8]) -> Result<(), UnpackReason> {
        let directory = self.parent(parent)?;
        let Some(found) = stat_name(&directory, name)? else {
            return mknodat(&*directory, name, FileType::CharacterDevice, Mode::empty(), 0)
                .map_err(system("make a whiteout"));
        };
        if FileType::from_raw_mode(found.st_mode) == FileType::Directory {
            set_opaque(&open_directory(&directory, name)?)?;
        }
        Ok(())
    }

    fn write<R: Skip>(
        &mut self,
        entry: &Entry,
        path: &EntryPath,
        reader: &mut TarReader<R>,
    ) -> Result<(), UnpackReason> {
        let parent = self.parent(&path.parent)?;
        match entry.kind {
            EntryKind::Directory => self.directory(entry, path, &parent),
            EntryKind::Regular => {
                self.count(entry.size)?;
                self.clear(&parent, &path.name, false)?;
                regular(entry, &parent, &path.name, reader)
            }
            EntryKind::HardLink => self.hard_link(entry, path, &parent),
            EntryKind::Symlink => {
                if entry.link.is_empty() {
                    return Err(UnpackReason::EmptyLink);
                }
                self.clear(&parent, &path.name, false)?;
                symlinkat(&entry.link, &*parent, &path.name).map_err(system("make the link"))?;
                set_unopened(&parent, &path.name, entry, false)
            }
            EntryKind::CharDevice => self.node(entry, path, &parent, FileType::CharacterDevice),
            EntryKind::BlockDevice => self.node(entry, path, &parent, FileType::BlockDevice),
            EntryKind::Fifo => self.node(entry, path, &parent, FileType::Fifo),
            EntryKind::Other(flag) => Err(UnpackReason::UnknownType { flag: flag.into() }),
        }
    }

    fn directory(
        &mut self,
        entry: &Entry,
        path: &EntryPath,
        parent: &OwnedFd,
    ) -> Result<(), UnpackReason> {
        let before = self.clear(parent, &path.name, true)?;
        if before != Before::Directory {
            let mode = Mode::from_raw_mode(0o700);
            mkdirat(parent, &path.name, mode).map_err(system("make the directory"))?;
        }
        let made = open_directory(parent, &path.name)?;
        if before == Before::Whiteout {
            set_opaque(&made)?;
        }
        set_all(made.as_fd(), entry)?;
        self.keep_directory_time(path.whole(), mtime(entry))
    }

    fn node(
        &mut self,
        entry: &Entry,
        path: &EntryPath,
        parent: &OwnedFd,
        kind: FileType,
    ) -> Result<(), UnpackReason> {
        let device = makedev(entry.device.0, entry.device.1);
        if kind == FileType::CharacterDevice && device == 0 {
            return Err(UnpackReason::WhiteoutDevice);
        }
        self.clear(parent, &path.name, false)?;
        let mode = Mode::from_raw_mode(entry.mode & 0o777);
        mknodat(parent, &path.name, kind, mode, device).map_err(system("make the device"))?;
        set_unopened(parent, &path.name, entry, true)
    }

    /// A link shares the attributes of its target: those of its own header are not set again.
    fn hard_link(
        &mut self,
        entry: &Entry,
        path: &EntryPath,
        parent: &OwnedFd,
    ) -> Result<(), UnpackReason> {
        let target = shown(&entry.link);
        let missing = || UnpackReason::NoLinkTarget { target: target.clone() };
        let place = EntryPath::of(&entry.link)?.ok_or_else(missing)?;
        let directory = match self.resolve(&place.parent) {
            Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => return Err(missing()),
            other => other.map_err(system("open the directory of its target"))?,
        };
        let found = stat_name(&directory, &place.name)?.ok_or_else(missing)?;
        if is_whiteout(&found) {
            return Err(UnpackReason::LinkToWhiteout { target });
        }
        if FileType::from_raw_mode(found.st_mode) == FileType::Directory {
            return Err(UnpackReason::LinkToDirectory { target });
        }
        let before = stat_name(parent, &path.name)?;
        if before.is_some_and(|it| (it.st_dev, it.st_ino) == (found.st_dev, found.st_ino)) {
            return Ok(());
        }
        self.clear(parent, &path.name, false)?;
        match linkat(&directory, &place.name, parent, &path.name, AtFlags::empty()) {
            // The target was in a directory that the link has replaced.
            Err(Errno::NOENT) => Err(missing()),
            other => other.map_err(system("make the link")),
        }
    }

    /// Removes what has the name of a new entry; a directory stays where the entry is one.
    fn clear(
        &mut self,
        parent: &OwnedFd,
        name: &[u8],
        keeps_directory: bool,
    ) -> Result<Before, UnpackReason> {
        let Some(found) = stat_name(parent, name)? else { return Ok(Before::Nothing) };
        let is_directory = FileType::from_raw_mode(found.st_mode) == FileType::Directory;
        if is_directory && keeps_directory {
            return Ok(Before::Directory);
        }
        self.last_parent = None;
        if is_directory {
            remove_directory(parent, name)?;
        } else {
            unlinkat(parent, name, AtFlags::empty()).map_err(system("replace what was there"))?;
        }
        Ok(if is_whiteout(&found) { Before::Whiteout } else { Before::Nothing })
    }

    fn count(&mut self, bytes: u64) -> Result<(), UnpackReason> {
        self.bytes = self.bytes.saturating_add(bytes);
        let most = self.bounds.bytes;
        if self.bytes > most { Err(UnpackReason::TooManyBytes { most }) } else { Ok(()) }
    }

    pub(super) fn keep_directory_time(
        &mut self,
        path: Vec<u8>,
        time: Timespec,
    ) -> Result<(), UnpackReason> {
        let length = path.len();
        if self.directories.insert(path, time).is_none() {
            self.directory_names = self.directory_names.saturating_add(length);
        }
        match self.directory_names > MAX_DIRECTORY_NAMES {
            true => Err(UnpackReason::TooManyDirectories),
            false => Ok(()),
        }
    }

    pub(super) fn set_directory_times(&self) -> Result<(), UnpackReason> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let how = ResolveFlags::IN_ROOT | ResolveFlags::NO_MAGICLINKS | ResolveFlags::NO_XDEV;
        for (path, time) in &self.directories {
            match openat2(&self.root, path, flags, Mode::empty(), how) {
                Ok(directory) => set_mtime(directory.as_fd(), *time)?,
                // A later entry has replaced it.
                Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP | Errno::AGAIN) => {}
                Err(error) => return Err(system("set the time of a directory")(error)),
            }
        }
        Ok(())
    }
}

fn open_directory(parent: &OwnedFd, name: &[u8]) -> Result<OwnedFd, UnpackReason> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    openat(parent, name, flags, Mode::empty()).map_err(system("open the directory"))
}

fn remove_directory(parent: &OwnedFd, name: &[u8]) -> Result<(), UnpackReason> {
    let failed = |source| UnpackReason::System { doing: "replace the directory there", source };
    let path = format!("/proc/self/fd/{}", parent.as_raw_fd());
    let opened = RootDirectory::open(Path::new(&path)).map_err(failed)?;
    for _ in 0..MAX_REMOVALS {
        match opened.remove_tree(OsStr::from_bytes(name)) {
            Ok(()) => return Ok(()),
            Err(RemoveTreeError::Unfinished { .. }) => {}
            Err(error) => return Err(failed(io::Error::other(error))),
        }
    }
    Err(failed(io::Error::other("it holds too many files")))
}

fn regular<R: Skip>(
    entry: &Entry,
    parent: &OwnedFd,
    name: &[u8],
    reader: &mut TarReader<R>,
) -> Result<(), UnpackReason> {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let made = openat(parent, name, flags, Mode::from_raw_mode(0o600));
    let mut file = File::from(made.map_err(system("make the file"))?);
    match &entry.extents {
        None => copy(reader, &mut file, entry.size)?,
        Some(extents) => {
            for (offset, length) in extents {
                file.seek(SeekFrom::Start(*offset)).map_err(writing)?;
                copy(reader, &mut file, *length)?;
            }
            file.set_len(entry.size).map_err(writing)?;
        }
    }
    set_all(file.as_fd(), entry)
}

fn copy<R: Skip>(
    reader: &mut TarReader<R>,
    file: &mut File,
    length: u64,
) -> Result<(), UnpackReason> {
    let mut buffer = vec![0; usize::try_from(length).unwrap_or(BUFFER).min(BUFFER)];
    let mut left = length;
    while left > 0 {
        let most = usize::try_from(left).unwrap_or(BUFFER).min(BUFFER);
        let read = reader.read_data(&mut buffer[..most]).map_err(UnpackReason::of_read)?;
        if read == 0 {
            let why = io::ErrorKind::UnexpectedEof.into();
            return Err(UnpackReason::Unreadable { why });
        }
        file.write_all(&buffer[..read]).map_err(writing)?;
        left -= read as u64;
    }
    Ok(())
}

fn writing(source: io::Error) -> UnpackReason {
    UnpackReason::System { doing: "write it", source }
}
