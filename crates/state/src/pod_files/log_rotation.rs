//! Rotates container logs: moves them away, removes the oldest, and compresses those that are not written to any more.
//!
//! Each step leaves all lines in files with names of their own, so that it can be cut off anywhere and is completed by the next rotation.

#[cfg(test)]
pub(crate) mod tests;

use std::fs::{File, Metadata};
use std::io::{self, Read};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;

use flate2::Compression;
use flate2::write::GzEncoder;
use jiff::Timestamp;
use oarsman_core::log_rotation::{
    COMPRESSED_SUFFIX, ContainerLogFile, LogFileState, UNFINISHED_SUFFIX, logs_to_compress,
    plan_rotation,
};
use oarsman_host::beneath::RootDirectory;

use super::logs::LogDirectories;
use crate::error::{FileError, failed};
use crate::files::{names_of, unless_gone};

/// Read at a time.
const PIECE_BYTES: usize = 64 * 1024;
/// A file beyond this size, such as a sparse one that a container has made, is not worth the time.
const MAX_COMPRESSED_BYTES: u64 = 16 << 30;

impl LogDirectories {
    /// What there is of each of these logs.
    pub(super) fn states(&self, logs: &[ContainerLogFile]) -> Result<Vec<LogFileState>, FileError> {
        let root = match self.root() {
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            opened => Some(opened.map_err(failed("open the directory", self.path()))?),
        };
        let state = |log: &ContainerLogFile| {
            root.as_ref().map_or(LogFileState::Missing, |root| state_of(root, log))
        };
        Ok(logs.iter().map(state).collect())
    }

    /// Makes room for a rotated log and moves the log there; its new name.
    pub(super) fn rotate(
        &self,
        log: &ContainerLogFile,
        max_files: usize,
        now: Timestamp,
    ) -> Result<String, FileError> {
        let (directory, file) = (self.directory_of_log(log)?, log.file_name());
        let plan = plan_rotation(&file, &self.names_beside(log)?, max_files, now);
        let path = self.path().join(log.directory());
        for name in &plan.remove {
            // What cannot be removed, such as a directory that a container has made, does not let the log grow.
            if let Err(error) = unless_gone(directory.remove_file(Path::new(name))) {
                tracing::warn!(%error, path = %path.join(name).display(), "rotated container log not removed, will retry");
            }
        }
        // Nothing of that name was there when it was chosen, and nothing that has come since is replaced.
        let renamed = directory.rename_to_free_name(Path::new(&file), Path::new(&plan.rotated));
        renamed.map_err(failed("rotate the log", &path.join(&file)))?;
        Ok(plan.rotated)
    }

    /// Gives a rotated log its name back, unless the runtime has opened a new one.
    pub(super) fn restore(&self, log: &ContainerLogFile, rotated: &str) -> Result<(), FileError> {
        let (directory, file) = (self.directory_of_log(log)?, log.file_name());
        match directory.rename_to_free_name(Path::new(rotated), Path::new(&file)) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
            restored => {
                let path = self.path().join(log.directory()).join(file);
                restored.map_err(failed("restore the log", &path))
            }
        }
    }

    /// Compresses the first of the rotated logs that are not compressed; whether there was one.
    pub(super) fn compress_next(&self, log: &ContainerLogFile) -> Result<bool, FileError> {
        let directory = self.directory_of_log(log)?;
        let plain = logs_to_compress(&log.file_name(), &self.names_beside(log)?);
        let mut candidates = plain.iter().filter(|name| is_compressible(&directory, name));
        let Some(name) = candidates.next() else { return Ok(false) };
        let path = self.path().join(log.directory()).join(name);
        compress(&directory, name).map_err(failed("compress the log", &path))?;
        Ok(true)
    }

    fn directory_of_log(&self, log: &ContainerLogFile) -> Result<RootDirectory, FileError> {
        let below = log.directory();
        let opened = self.root().and_then(|root| root.open_directory(&below));
        opened.map_err(failed("open the directory", &self.path().join(below)))
    }

    fn names_beside(&self, log: &ContainerLogFile) -> Result<Vec<String>, FileError> {
        let below = log.directory();
        let opened = self.root().and_then(|root| root.open_directory(&below));
        names_of(opened, &self.path().join(below))
    }
}

fn state_of(root: &RootDirectory, log: &ContainerLogFile) -> LogFileState {
    match root.metadata(&log.directory().join(log.file_name())) {
        Ok(found) if found.is_file() => LogFileState::Size(found.size()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => LogFileState::Missing,
        Ok(_) | Err(_) => LogFileState::NotRegular,
    }
}

fn is_compressible(directory: &RootDirectory, name: &str) -> bool {
    let is_fit = |found: Metadata| found.is_file() && found.size() <= MAX_COMPRESSED_BYTES;
    directory.metadata(Path::new(name)).is_ok_and(is_fit)
}

/// Replaces a file by a compressed one. There is never a moment without either.
fn compress(directory: &RootDirectory, name: &str) -> io::Result<()> {
    let (unfinished, compressed) =
        (format!("{name}{UNFINISHED_SUFFIX}"), format!("{name}{COMPRESSED_SUFFIX}"));
    let (unfinished, name) = (Path::new(&unfinished), Path::new(name));
    unless_gone(directory.remove_file(unfinished))?;
    let write = || {
        let plain = directory.open_file(name)?;
        let mode = plain.metadata()?.permissions().mode() & 0o777;
        write_compressed(plain, directory.create_file(unfinished, mode)?)?;
        directory.rename(unfinished, Path::new(&compressed))
    };
    write().inspect_err(|_| {
        // On a full disk it holds the last bytes; what cannot be removed now goes at the next rotation.
        directory.remove_file(unfinished).ok();
    })?;
    unless_gone(directory.remove_file(name))
}

fn write_compressed(mut plain: File, compressed: File) -> io::Result<()> {
    // Nodes have less time than disk to spare.
    let mut encoder = GzEncoder::new(compressed, Compression::fast());
    let mut piece = vec![0; PIECE_BYTES];
    loop {
        match plain.read(&mut piece) {
            Ok(0) => break,
            Ok(read) => io::Write::write_all(&mut encoder, &piece[..read])?,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    // The plain file is removed next: after a crash of the machine its lines must be in this one.
    encoder.finish()?.sync_data()
}
