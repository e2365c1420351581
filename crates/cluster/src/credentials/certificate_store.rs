//! The directory of certificates: files with the time in their names, and a link to the one that counts.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, symlink};
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use oarsman_core::certificates::CertificatePurpose;

use super::key::Key;
use super::{CredentialsError, Result};

/// Certificates that are kept, the current one among them.
const MAX_FILES: usize = 3;

/// Where certificates of one purpose lie.
#[derive(Clone, Debug)]
pub(super) struct CertificateStore {
    directory: PathBuf,
    purpose: CertificatePurpose,
}

impl CertificateStore {
    pub(super) fn new(directory: &Path, purpose: CertificatePurpose) -> Self {
        // The link leads to the file from wherever it is read.
        let directory = std::path::absolute(directory).unwrap_or_else(|_| directory.to_owned());
        Self { directory, purpose }
    }

    /// The link to the certificate that counts, and its key.
    pub(super) fn current(&self) -> PathBuf {
        self.directory.join(self.purpose.current_file())
    }

    /// The files of certificates, newest first: their names have the time in them.
    pub(super) fn earlier(&self) -> Vec<PathBuf> {
        let prefix = format!("{}-", self.purpose.file_prefix());
        let (current, temporary) = (self.current(), self.temporary());
        let entries = fs::read_dir(&self.directory).into_iter().flatten().flatten();
        let mut files: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
        files.retain(|file| {
            let name = file.file_name().unwrap_or_default().to_string_lossy();
            let is_one = name.starts_with(&prefix) && name.ends_with(".pem");
            is_one && *file != current && *file != temporary
        });
        files.sort();
        files.reverse();
        files
    }

    /// Certificate and key in one file, as of now the one that counts.
    pub(super) fn write(&self, certificate: &[u8], key: &Key, now: Timestamp) -> Result<PathBuf> {
        let file = self.directory.join(self.purpose.file(now));
        let mut text = certificate.to_vec();
        if !text.ends_with(b"\n") {
            text.push(b'\n');
        }
        text.extend_from_slice(key.text().as_bytes());
        write(&file, &text)?;
        let (link, current) = (self.temporary(), self.current());
        remove(&link)
            .and_then(|()| symlink(&file, &link))
            .and_then(|()| fs::rename(&link, &current))
            .and_then(|()| sync_directory(&current))
            .map_err(|error| file_error("link", &current, &error))?;
        self.remove_old();
        Ok(current)
    }

    /// Removes all but the newest files. What is left over does no harm, and is removed the next time.
    fn remove_old(&self) {
        for old in self.earlier().iter().skip(MAX_FILES) {
            fs::remove_file(old).ok();
        }
    }

    /// The key of the request that is waited for, kept over restarts so that the same is asked again.
    pub(super) fn pending_key(&self) -> Result<Key> {
        let file = self.pending_key_file();
        // One that is damaged is replaced.
        let kept = fs::read_to_string(&file).ok().and_then(|text| Key::read(&text).ok());
        if let Some(key) = kept {
            return Ok(key);
        }
        let key = Key::generate().map_err(|error| key_error(&error))?;
        write(&file, key.text().as_bytes())?;
        Ok(key)
    }

    /// Removes the key of a request that was answered.
    pub(super) fn remove_pending_key(&self) -> Result<()> {
        let file = self.pending_key_file();
        remove(&file).map_err(|error| file_error("remove", &file, &error))
    }

    fn pending_key_file(&self) -> PathBuf {
        self.directory.join(format!("{}.key.tmp", self.purpose.file_prefix()))
    }

    fn temporary(&self) -> PathBuf {
        self.directory.join(format!("{}-updated.pem", self.purpose.file_prefix()))
    }
}

/// Writes a file that only we may read, all at once.
pub(super) fn write(file: &Path, text: &[u8]) -> Result<()> {
    let mut name = file.as_os_str().to_owned();
    name.push(".new");
    let new = PathBuf::from(name);
    let write = || {
        if let Some(directory) = file.parent() {
            DirBuilder::new().recursive(true).mode(0o700).create(directory)?;
        }
        remove(&new)?;
        let mut opened = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&new)?;
        opened.write_all(text)?;
        opened.sync_all()?;
        fs::rename(&new, file)?;
        sync_directory(file)
    };
    write().map_err(|error| file_error("write", file, &error))
}

/// A renaming is in the directory: without this, a crash of the machine may bring the old file back.
fn sync_directory(file: &Path) -> io::Result<()> {
    file.parent().map_or(Ok(()), |directory| File::open(directory)?.sync_all())
}

fn remove(file: &Path) -> io::Result<()> {
    match fs::remove_file(file) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

pub(super) fn file_error(what: &'static str, file: &Path, error: &io::Error) -> CredentialsError {
    CredentialsError::File { what, file: file.to_owned(), why: error.to_string() }
}

pub(super) fn key_error(error: &rcgen::Error) -> CredentialsError {
    CredentialsError::Key { why: error.to_string() }
}
