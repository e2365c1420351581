//! Reads a log as it grows: a file that was rotated away is read to its end first, then those that were rotated since, and when the
//! container is started again its next log follows.

use std::io::{self, ErrorKind, Read};
use std::ops::Bound;
use std::path::{Path, PathBuf};

use super::files;
use super::line::LineSplitter;
use super::rotated::{OpenLog, next_rotated};
use super::tail::TailSearch;

#[cfg(test)]
mod tests;

/// Read at a time.
const PIECE_BYTES: usize = 64 * 1024;

/// How far reading has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReadProgress {
    /// There is more to be read at once.
    More,
    /// All that was there has been read.
    CaughtUp,
}

/// Who takes the lines.
type Reader<'a> = &'a mut dyn FnMut(&[u8]) -> io::Result<()>;

/// A position in the logs of a container.
#[derive(Debug)]
pub struct LogFollower {
    directory: PathBuf,
    attempt: u32,
    log: OpenLog,
    lines: LineSplitter,
    /// The search for the last lines, until it is done.
    tail: Option<TailSearch>,
    /// What is read when this file has been read to its end.
    following: Option<(u32, OpenLog)>,
}

impl LogFollower {
    /// At the log of one start of the container, or at its last lines.
    ///
    /// # Errors
    /// When a file is there and cannot be read.
    pub fn at(directory: &Path, attempt: u32, tail: Option<usize>) -> io::Result<Self> {
        let mut file = files::open(directory, attempt)?;
        let tail = tail.map(|lines| TailSearch::new(&mut file, lines)).transpose()?;
        let log = OpenLog::current(directory, attempt, file)?;
        let directory = directory.to_owned();
        Ok(Self { directory, attempt, log, lines: LineSplitter::default(), tail, following: None })
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
        while self.read_piece(each)? == ReadProgress::More {}
        self.lines.end(each)
    }

    /// Reads all that is there by now, from file to file.
    ///
    /// # Errors
    /// When the files cannot be read, or those of the callback.
    pub fn read(&mut self, each: Reader<'_>) -> io::Result<()> {
        while self.read_next(each)? == ReadProgress::More {}
        Ok(())
    }

    /// Reads a bounded piece of what is there by now, from file to file.
    ///
    /// # Errors
    /// When the files cannot be read, or those of the callback.
    pub fn read_next(&mut self, each: Reader<'_>) -> io::Result<ReadProgress> {
        // What comes next is looked for first: all that was written before it is in the file by then.
        if self.following.is_none() {
            self.following = self.next()?;
        }
        let is_more = self.read_piece(each)? == ReadProgress::More || self.switch(each)?;
        Ok(if is_more { ReadProgress::More } else { ReadProgress::CaughtUp })
    }

    /// Reads a bounded piece of what this start of the container has written by now, over rotations; with its unfinished last line,
    /// if no more will come.
    ///
    /// # Errors
    /// When it cannot be read, or the errors of the function that takes the lines.
    pub fn read_start(&mut self, is_over: bool, each: Reader<'_>) -> io::Result<ReadProgress> {
        // Kept from piece to piece: a log may be rotated twice before a slow reader has read the first file.
        if self.following.is_none() {
            self.following = self.rotated()?.map(|log| (self.attempt, log));
        }
        if self.read_piece(each)? == ReadProgress::More || self.switch(each)? {
            return Ok(ReadProgress::More);
        }
        if is_over {
            self.lines.end(each)?;
        }
        Ok(ReadProgress::CaughtUp)
    }

    /// Goes on with the file that follows, if there is one.
    fn switch(&mut self, each: Reader<'_>) -> io::Result<bool> {
        let Some((attempt, log)) = self.following.take() else { return Ok(false) };
        self.lines.end(each)?;
        (self.attempt, self.log) = (attempt, log);
        Ok(true)
    }

    /// The file after this one: the one that was created when this one was rotated, or the log of the next start.
    fn next(&self) -> io::Result<Option<(u32, OpenLog)>> {
        if let Some(log) = self.rotated()? {
            return Ok(Some((self.attempt, log)));
        }
        let attempts = files::attempts(&self.directory)?;
        let later = (Bound::Excluded(self.attempt), Bound::Unbounded);
        let Some(next) = attempts.range(later).next() else { return Ok(None) };
        let opened = files::open(&self.directory, *next);
        let log = opened.and_then(|file| OpenLog::current(&self.directory, *next, file));
        Ok(unless_gone(log)?.map(|log| (*next, log)))
    }

    /// What follows on this file in the log of the same start.
    fn rotated(&self) -> io::Result<Option<OpenLog>> {
        next_rotated(&self.directory, self.attempt, &self.log)
    }

    fn read_piece(&mut self, each: Reader<'_>) -> io::Result<ReadProgress> {
        if let Some(search) = &mut self.tail {
            if search.step(self.log.file_mut())? {
                self.tail = None;
            }
            return Ok(ReadProgress::More);
        }
        let mut piece = vec![0; PIECE_BYTES];
        loop {
            match self.log.read(&mut piece) {
                Ok(0) => return Ok(ReadProgress::CaughtUp),
                Ok(read) => {
                    self.lines.feed(&piece[..read], each)?;
                    return Ok(ReadProgress::More);
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }
}

pub(super) fn unless_gone<T>(found: io::Result<T>) -> io::Result<Option<T>> {
    match found {
        Ok(found) => Ok(Some(found)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}
