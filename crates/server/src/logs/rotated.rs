//! The files of one log in their order: those that were rotated away, of which older ones are compressed, and the one that is written to.

use std::fs::{File, Metadata};
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use flate2::read::MultiGzDecoder;
use oarsman_core::log_rotation::COMPRESSED_SUFFIX;

use super::files;
use super::follow::unless_gone;

/// A file of a log that is being read.
#[derive(Debug)]
pub(super) struct OpenLog {
    content: LogContent,
    /// The file that was rotated last when this one was opened, or this one itself. Its lines come before those of later ones.
    rotated_before: Option<String>,
    /// Whether it was opened by the name of a rotated file.
    is_rotated: bool,
}

#[derive(Debug)]
enum LogContent {
    Plain(File),
    Compressed(Box<MultiGzDecoder<File>>),
}

impl OpenLog {
    /// The file that is written to.
    pub(super) fn current(directory: &Path, attempt: u32, file: File) -> io::Result<Self> {
        let rotated_before = files::rotated(directory, attempt)?.pop();
        Ok(Self { content: LogContent::Plain(file), rotated_before, is_rotated: false })
    }

    fn rotated(name: &str, file: File) -> Self {
        let content = match name.ends_with(COMPRESSED_SUFFIX) {
            true => LogContent::Compressed(Box::new(MultiGzDecoder::new(file))),
            false => LogContent::Plain(file),
        };
        Self { content, rotated_before: Some(name.to_owned()), is_rotated: true }
    }

    /// The file on the disk.
    pub(super) fn file_mut(&mut self) -> &mut File {
        match &mut self.content {
            LogContent::Plain(file) => file,
            LogContent::Compressed(decoder) => decoder.get_mut(),
        }
    }

    fn metadata(&self) -> io::Result<Metadata> {
        match &self.content {
            LogContent::Plain(file) => file.metadata(),
            LogContent::Compressed(decoder) => decoder.get_ref().metadata(),
        }
    }

    fn is_same(&self, file: &File) -> io::Result<bool> {
        let (found, own) = (file.metadata()?, self.metadata()?);
        Ok((found.dev(), found.ino()) == (own.dev(), own.ino()))
    }

    /// Of the rotated files, oldest first, the first one whose lines come after those of this file.
    fn first_after<'n>(&self, directory: &Path, rotated: &'n [String]) -> Option<&'n String> {
        let is_own = |name: &&String| {
            let opened = files::open_named(directory, name);
            opened.and_then(|file| self.is_same(&file)).unwrap_or(false)
        };
        // The newest are the likeliest.
        if let Some(own) = rotated.iter().rev().find(is_own) {
            return rotated.iter().find(|name| time(name) > time(own));
        }
        let before = self.rotated_before.as_deref().map(time);
        let mut later = rotated.iter().filter(|name| Some(time(name)) > before);
        // The oldest of those that were rotated since is this file, if it was compressed; else this file is removed.
        let is_own_copy = |name: &&String| !self.is_rotated && name.ends_with(COMPRESSED_SUFFIX);
        later.next().filter(|name| !is_own_copy(name)).or_else(|| later.next())
    }
}

impl Read for OpenLog {
    fn read(&mut self, piece: &mut [u8]) -> io::Result<usize> {
        match &mut self.content {
            LogContent::Plain(file) => file.read(piece),
            LogContent::Compressed(decoder) => decoder.read(piece),
        }
    }
}

/// What follows on a file in the log of the same start; nothing while it may still grow.
pub(super) fn next_rotated(
    directory: &Path,
    attempt: u32,
    log: &OpenLog,
) -> io::Result<Option<OpenLog>> {
    let Some(current) = unless_gone(files::open(directory, attempt))? else { return Ok(None) };
    if log.is_same(&current)? {
        return Ok(None);
    }
    // The list comes after the file was opened: if that one has been rotated meanwhile, it is in the list.
    let rotated = files::rotated(directory, attempt)?;
    let Some(next) = log.first_after(directory, &rotated) else {
        // Until something is written to the new file, the old one may still grow.
        let is_written = current.metadata()?.len() > 0;
        let (content, rotated_before) = (LogContent::Plain(current), rotated.last().cloned());
        return Ok(is_written.then_some(OpenLog { content, rotated_before, is_rotated: false }));
    };
    let opened = unless_gone(files::open_named(directory, next))?;
    Ok(opened.map(|file| OpenLog::rotated(next, file)))
}

/// The part of a rotated file's name by which such files are ordered.
fn time(name: &str) -> &str {
    name.strip_suffix(COMPRESSED_SUFFIX).unwrap_or(name)
}
