//! The directory that an entry belongs into, which is made where it is missing.

use std::collections::VecDeque;
use std::os::fd::OwnedFd;
use std::rc::Rc;

use rustix::fs::{
    AtFlags, FileType, Mode, OFlags, ResolveFlags, fchmod, mkdirat, openat2, readlinkat,
};
use rustix::io::Errno;

use super::attributes::{
    copy_directory, is_whiteout, path_in, readable, set_opaque, shown, stat_of,
};
use super::reason::system;
use super::{UnpackReason, Unpacker};

/// As many as the kernel follows.
const MAX_LINKS: usize = 40;
/// The kernel gives up when something on the machine is renamed while it resolves `..`.
const MAX_TRIES: usize = 64;

/// A component below an open directory, with no way out of it and no link followed.
const ONE_STEP: ResolveFlags = ResolveFlags::BENEATH.union(ResolveFlags::NO_SYMLINKS);

impl Unpacker<'_> {
    /// The directory at a path without `..`, made with those above it where they are missing.
    pub(super) fn parent(&mut self, path: &[u8]) -> Result<Rc<OwnedFd>, UnpackReason> {
        if let Some((last, directory)) = &self.last_parent
            && last == path
        {
            return Ok(Rc::clone(directory));
        }
        let found = match self.resolve(path) {
            Err(Errno::NOENT | Errno::NOTDIR) => self.make_parents(path)?,
            Err(Errno::LOOP) => return Err(UnpackReason::TooManyLinks),
            other => other.map_err(system("open its directory"))?,
        };
        let found = Rc::new(found);
        self.last_parent = Some((path.to_vec(), Rc::clone(&found)));
        Ok(found)
    }

    /// A directory that is there; links on the way are followed below the root.
    pub(super) fn resolve(&self, path: &[u8]) -> Result<OwnedFd, Errno> {
        let path = if path.is_empty() { b"." } else { path };
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let how = ResolveFlags::IN_ROOT | ResolveFlags::NO_MAGICLINKS | ResolveFlags::NO_XDEV;
        for _ in 0..MAX_TRIES {
            match openat2(&self.root, path, flags, Mode::empty(), how) {
                Err(Errno::AGAIN) => {}
                other => return other,
            }
        }
        Err(Errno::AGAIN)
    }

    /// Goes step by step, as the kernel would, and makes what is missing: the target of a link, too. One directory is open at a time,
    /// however deep the path is.
    fn make_parents(&mut self, path: &[u8]) -> Result<OwnedFd, UnpackReason> {
        let open = |here: &[Vec<u8>], unpacker: &Self| {
            unpacker.resolve(&here.join(&b'/')).map_err(system("open its directory"))
        };
        let mut here: Vec<Vec<u8>> = Vec::new();
        let mut directory = open(&here, self)?;
        let mut ahead = split(path);
        let mut links = 0;
        while let Some(part) = ahead.pop_front() {
            if matches!(part.as_slice(), b"" | b".") {
                continue;
            }
            if part == b".." {
                here.pop();
                directory = open(&here, self)?;
                continue;
            }
            match self.step(&directory, &here, &part)? {
                Step::Directory(next) => {
                    directory = next;
                    here.push(part);
                }
                Step::Link(target) => {
                    links += 1;
                    if links > MAX_LINKS {
                        return Err(UnpackReason::TooManyLinks);
                    }
                    if target.starts_with(b"/") {
                        here.clear();
                        directory = open(&here, self)?;
                    }
                    split(&target).into_iter().rev().for_each(|part| ahead.push_front(part));
                }
            }
        }
        Ok(directory)
    }

    fn step(
        &mut self,
        directory: &OwnedFd,
        here: &[Vec<u8>],
        part: &[u8],
    ) -> Result<Step, UnpackReason> {
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let opened = match openat2(directory, part, flags, Mode::empty(), ONE_STEP) {
            // With NO_SYMLINKS a link is an error, also one that is only to be named.
            Err(Errno::LOOP) => return read_link(directory, part).map(Step::Link),
            Err(Errno::NOENT) => return self.make(directory, here, part, false),
            other => other.map_err(system("open its directory"))?,
        };
        let stat = stat_of(&opened).map_err(system("look at its directory"))?;
        match FileType::from_raw_mode(stat.st_mode) {
            FileType::Directory => Ok(Step::Directory(opened)),
            FileType::Symlink => read_link(directory, part).map(Step::Link),
            // Lower layers' directory is gone, and there is a new one.
            _ if is_whiteout(&stat) => {
                rustix::fs::unlinkat(directory, part, AtFlags::empty())
                    .map_err(system("replace a whiteout on the way to it"))?;
                self.make(directory, here, part, true)
            }
            _ => {
                Err(UnpackReason::NotADirectory { part: shown(&path_in(&here.join(&b'/'), part)) })
            }
        }
    }

    /// Makes a directory that the layer does not describe, as it is in the layers below.
    fn make(
        &mut self,
        directory: &OwnedFd,
        here: &[Vec<u8>],
        part: &[u8],
        is_opaque: bool,
    ) -> Result<Step, UnpackReason> {
        let doing = "make its directory";
        mkdirat(directory, part, Mode::from_raw_mode(0o755)).map_err(system(doing))?;
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let made =
            openat2(directory, part, flags, Mode::empty(), ONE_STEP).map_err(system(doing))?;
        // The process's umask may have taken rights away.
        let opened = readable(&made).map_err(system(doing))?;
        fchmod(&opened, Mode::from_raw_mode(0o755)).map_err(system(doing))?;
        let path = path_in(&here.join(&b'/'), part);
        if is_opaque {
            set_opaque(&made)?;
        } else if let Some(lower) = self.lower.directory(&path).map_err(system(doing))? {
            let time = copy_directory(&lower, &made).map_err(system(doing))?;
            self.keep_directory_time(path, time)?;
        }
        Ok(Step::Directory(made))
    }
}

enum Step {
    Directory(OwnedFd),
    Link(Vec<u8>),
}

fn split(path: &[u8]) -> VecDeque<Vec<u8>> {
    path.split(|byte| *byte == b'/').map(<[u8]>::to_vec).collect()
}

fn read_link(directory: &OwnedFd, name: &[u8]) -> Result<Vec<u8>, UnpackReason> {
    let target = readlinkat(directory, name, Vec::new());
    target.map(std::ffi::CString::into_bytes).map_err(system("read a link on the way to it"))
}
