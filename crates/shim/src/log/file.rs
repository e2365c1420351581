//! The file that a log goes to.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags, open};

#[cfg(test)]
mod tests;

/// How many bytes wait for a file that cannot be written, such as one on a full disk. What comes after that is counted and dropped: a container
/// must not stop because its log does.
const MOST_WAITING: usize = 256 << 10;

/// A log file, and the lines that could not be written to it yet.
#[derive(Debug)]
pub(crate) struct CriLogFile {
    path: PathBuf,
    file: File,
    /// Whole lines, but for the first, of which `written` bytes are in the file.
    waiting: VecDeque<Vec<u8>>,
    waiting_bytes: usize,
    written: usize,
    lost: u64,
}

impl CriLogFile {
    /// Opens a log, at its end if there is one.
    ///
    /// # Errors
    /// When it cannot be opened, or is no regular file: writing to a pipe could block the shim.
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        let file = open_regular(path)?;
        let waiting = VecDeque::new();
        Ok(Self { path: path.to_owned(), file, waiting, waiting_bytes: 0, written: 0, lost: 0 })
    }

    /// The same with another file, such as one whose writes do not come back.
    #[cfg(test)]
    pub(crate) fn with_file(mut self, file: File) -> Self {
        self.file = file;
        self
    }

    /// Adds a line; it is written by [`CriLogFile::flush`].
    pub(crate) fn add(&mut self, line: &[u8]) {
        if self.waiting_bytes + line.len() > MOST_WAITING {
            self.flush();
        }
        if self.waiting_bytes + line.len() > MOST_WAITING {
            self.lost += u64::try_from(line.len()).unwrap_or(u64::MAX);
            return;
        }
        self.waiting_bytes += line.len();
        self.waiting.push_back(line.to_vec());
    }

    /// Writes what waits, as far as it goes.
    pub(crate) fn flush(&mut self) {
        while let Some(first) = self.waiting.front() {
            let all: Vec<u8> = if self.waiting.len() == 1 || self.written > 0 {
                first[self.written..].to_vec()
            } else {
                self.waiting.iter().flatten().copied().collect()
            };
            match self.file.write(&all) {
                Ok(0) => return,
                Ok(count) => self.advance(count),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => return,
            }
        }
    }

    fn advance(&mut self, count: usize) {
        self.written += count;
        while let Some(first) = self.waiting.front()
            && self.written >= first.len()
        {
            self.written -= first.len();
            self.waiting_bytes -= first.len();
            self.waiting.pop_front();
        }
    }

    /// Continues in a new file at the same path. Lines that wait go there, but for the rest of one that the old file has a part of.
    ///
    /// # Errors
    /// As [`CriLogFile::open`]; the old file stays then.
    pub(crate) fn reopen(&mut self) -> io::Result<()> {
        self.flush();
        let new = open_regular(&self.path)?;
        if self.written > 0 {
            let torn = self.waiting.pop_front().unwrap_or_default();
            self.waiting_bytes -= torn.len();
            self.lost += u64::try_from(torn.len() - self.written).unwrap_or(u64::MAX);
            self.written = 0;
        }
        self.file = new;
        self.flush();
        Ok(())
    }

    /// Whether lines wait that could not be written.
    pub(crate) fn is_behind(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// Bytes that were dropped.
    pub(crate) fn lost(&self) -> u64 {
        self.lost
    }
}

fn open_regular(path: &Path) -> io::Result<File> {
    let flags = OFlags::WRONLY
        | OFlags::APPEND
        | OFlags::CREATE
        | OFlags::CLOEXEC
        | OFlags::NONBLOCK
        | OFlags::NOFOLLOW;
    let file = File::from(open(path, flags, Mode::from_raw_mode(0o640))?);
    if file.metadata()?.is_file() {
        return Ok(file);
    }
    let problem = format!("the log {} is not a regular file; remove it", path.display());
    Err(io::Error::new(io::ErrorKind::InvalidInput, problem))
}
