//! Reads a log as it grows: a file that was rotated away is read to its end first, and when the container is started again its next log follows.

use std::fs::{self, File};
use std::io::{self, ErrorKind, Read};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use super::files;
use super::line::LineSplitter;

#[cfg(test)]
mod tests;

/// The callback that takes lines.
type Reader<'a> = &'a mut dyn FnMut(&[u8]) -> io::Result<()>;

/// A position in the logs of a container.
#[derive(Debug)]
pub struct LogFollower {
    directory: PathBuf,
    attempt: u32,
    file: File,
    lines: LineSplitter,
}

impl LogFollower {
    /// At the log of one start of the container, or at its last lines.
    ///
    /// # Errors
    /// When a file is there and cannot be read.
    pub fn at(directory: &Path, attempt: u32, tail: Option<usize>) -> io::Result<Self> {
        let mut file = File::open(directory.join(files::name(attempt)))?;
        tail.map_or(Ok(()), |lines| files::seek_to_last(&mut file, lines))?;
        Ok(Self { directory: directory.to_owned(), attempt, file, lines: LineSplitter::default() })
    }

    /// At the log of the last start; none when there is none yet.
    ///
    /// # Errors
    /// When a file is there and cannot be read.
    pub fn at_last(directory: &Path, tail: Option<usize>) -> io::Result<Option<Self>> {
        match files::attempts(directory)?.last() {
            Some(attempt) => unless_gone(Self::at(directory, *attempt, tail)),
            None => Ok(None),
        }
    }

    /// At the log of the first start that has left one; none when there is none yet.
    ///
    /// # Errors
    /// When a file is there and cannot be read.
    pub fn at_first(directory: &Path) -> io::Result<Option<Self>> {
        match files::attempts(directory)?.first() {
            Some(attempt) => unless_gone(Self::at(directory, *attempt, None)),
            None => Ok(None),
        }
    }

    /// Reads what is in this one file, also a last line that is not at its end.
    ///
    /// # Errors
    /// When the file cannot be read, or those of the callback.
    pub fn read_one(&mut self, each: Reader<'_>) -> io::Result<()> {
        self.drain(each)?;
        self.lines.end(each)
    }

    /// Reads all that is there by now, from file to file.
    ///
    /// # Errors
    /// When the files cannot be read, or those of the callback.
    pub fn read(&mut self, each: Reader<'_>) -> io::Result<()> {
        loop {
            // The next file is looked for first: all that was written before it was created is in this file by then.
            let next = self.next()?;
            self.drain(each)?;
            let Some((attempt, file)) = next else { return Ok(()) };
            self.lines.end(each)?;
            (self.attempt, self.file) = (attempt, file);
        }
    }

    /// Reads all that this start of the container has written by now, over rotations; with its unfinished last line, if no more
    /// will come.
    ///
    /// # Errors
    /// When the files cannot be read, or those of the callback.
    pub fn read_start(&mut self, is_over: bool, each: Reader<'_>) -> io::Result<()> {
        loop {
            let next = self.rotated()?;
            self.drain(each)?;
            if next.is_some() || is_over {
                self.lines.end(each)?;
            }
            let Some(file) = next else { return Ok(()) };
            self.file = file;
        }
    }

    /// The file after this one: the one that was created when this one was rotated, or the log of the next start.
    fn next(&self) -> io::Result<Option<(u32, File)>> {
        if let Some(file) = self.rotated()? {
            return Ok(Some((self.attempt, file)));
        }
        let attempts = files::attempts(&self.directory)?;
        let Some(next) = attempts.range(self.attempt + 1..).next() else { return Ok(None) };
        let file = unless_gone(File::open(self.directory.join(files::name(*next))))?;
        Ok(file.map(|file| (*next, file)))
    }

    /// Another file of the same name, once something is written to it: until then the old one may still grow.
    fn rotated(&self) -> io::Result<Option<File>> {
        let path = self.directory.join(files::name(self.attempt));
        let Some(found) = unless_gone(fs::metadata(&path))? else { return Ok(None) };
        let same = self.file.metadata()?;
        if (found.dev(), found.ino()) == (same.dev(), same.ino()) || found.len() == 0 {
            return Ok(None);
        }
        unless_gone(File::open(path))
    }

    fn drain(&mut self, each: Reader<'_>) -> io::Result<()> {
        let mut block = [0; 16 * 1024];
        loop {
            match self.file.read(&mut block) {
                Ok(0) => return Ok(()),
                Ok(read) => self.lines.feed(&block[..read], each)?,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }
}

fn unless_gone<T>(found: io::Result<T>) -> io::Result<Option<T>> {
    match found {
        Ok(found) => Ok(Some(found)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}
