//! A file or a directory of logs, opened below the log directory.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use axum::body::Bytes;
use oarsman_host::beneath::RootDirectory;
use tokio::sync::mpsc;

use crate::endpoints::LogLimits;

/// What is read and sent at a time.
const PIECE_BYTES: usize = 64 * 1024;
/// What is looked at to tell a text from other bytes.
const SNIFFED_BYTES: usize = 512;
/// Names that a list has at most.
const MAX_NAMES: usize = 16 * 1024;

/// What is at a path.
pub(super) enum FoundLog {
    Directory(DirectoryNames),
    File(LogFileReader),
}

/// The names in a directory, in their order; those of directories end in a slash.
#[derive(Debug, Default)]
pub(super) struct DirectoryNames {
    pub(super) names: Vec<OsString>,
    /// Whether there are more.
    pub(super) is_cut: bool,
}

impl FoundLog {
    /// Blocks.
    pub(super) fn at(root: &Path, below: &Path) -> io::Result<Self> {
        let root = RootDirectory::open(root)?;
        let below = if below.as_os_str().is_empty() { Path::new(".") } else { below };
        match root.open_directory(below) {
            Ok(directory) => Ok(Self::Directory(DirectoryNames::read(&directory)?)),
            Err(error) if error.kind() == io::ErrorKind::NotADirectory => {
                Ok(Self::File(LogFileReader::open(&root, below)?))
            }
            Err(error) => Err(error),
        }
    }
}

impl DirectoryNames {
    fn read(directory: &RootDirectory) -> io::Result<Self> {
        let mut found = Self::default();
        directory.each_name(&mut |name| {
            found.is_cut = found.names.len() >= MAX_NAMES;
            if !found.is_cut {
                found.names.push(with_slash(directory, name));
            }
            !found.is_cut
        })?;
        found.names.sort_unstable();
        Ok(found)
    }
}

fn with_slash(directory: &RootDirectory, name: &OsStr) -> OsString {
    let is_directory = directory.has_directory(Path::new(name)).unwrap_or_default();
    let mut name = name.to_owned();
    if is_directory {
        name.push("/");
    }
    name
}

/// A regular file, of which no more is read than it had when it was opened.
pub(super) struct LogFileReader {
    file: File,
    left: u64,
    /// What was read to look at it.
    begin: Vec<u8>,
}

impl LogFileReader {
    /// Blocks.
    pub(super) fn open(root: &RootDirectory, below: &Path) -> io::Result<Self> {
        let file = root.open_file(below)?;
        let left = file.metadata()?.len();
        let mut reader = Self { file, left, begin: Vec::new() };
        reader.begin = reader.read_piece(SNIFFED_BYTES)?;
        Ok(reader)
    }

    pub(super) fn is_text(&self) -> bool {
        !self.begin.contains(&0)
    }

    fn read_piece(&mut self, most: usize) -> io::Result<Vec<u8>> {
        let most = u64::try_from(most).unwrap_or(u64::MAX).min(self.left);
        let mut piece = Vec::new();
        let read = (&mut self.file).take(most).read_to_end(&mut piece)?;
        // A file that became shorter has ended.
        let read = u64::try_from(read).unwrap_or(u64::MAX);
        self.left = if read < most { 0 } else { self.left - read };
        Ok(piece)
    }

    /// Sends it to its end; without an error also when the client has gone.
    pub(super) async fn send(
        mut self,
        reads: &LogLimits,
        sender: &mpsc::Sender<io::Result<Bytes>>,
    ) -> io::Result<()> {
        let mut piece = std::mem::take(&mut self.begin);
        while !piece.is_empty() && sender.send(Ok(piece.into())).await.is_ok() {
            let read = move || {
                let piece = self.read_piece(PIECE_BYTES)?;
                Ok::<_, io::Error>((self, piece))
            };
            (self, piece) = reads.read(read).await.flatten()?;
        }
        Ok(())
    }
}
