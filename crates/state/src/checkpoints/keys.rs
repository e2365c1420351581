//! Where the key of the checkpoints is: apart from them, so that a copy of the root directory is no use without it.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use ring::digest::{SHA256, digest};
use ring::rand::{SecureRandom, SystemRandom};

use super::cipher::CipherError;
use super::{OUR_DIRECTORY, OURS};
use crate::error::{FileError, failed};
use crate::files::{make_directory, replace, unless_gone};

pub(super) const KEY_BYTES: usize = 32;
/// What a key that is none is renamed with.
const BAD: &str = ".bad";

/// A key that seals and opens.
pub(super) type KeyBytes = [u8; KEY_BYTES];

/// Where the keys of checkpoints are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CheckpointKeys {
    /// A file that the service manager provides, such as a systemd credential: preferred where it exists.
    pub credential: Option<PathBuf>,
    /// A directory with one file for each root directory.
    pub directory: PathBuf,
}

impl CheckpointKeys {
    /// The key of a root directory.
    pub(crate) fn path(&self, root: &Path) -> PathBuf {
        let root = root.canonicalize().unwrap_or_else(|_| root.to_owned());
        let hash = digest(&SHA256, root.as_os_str().as_bytes());
        let hash: String = hash.as_ref().iter().take(8).map(|byte| format!("{byte:02x}")).collect();
        let name = root.file_name().unwrap_or_default().to_string_lossy().into_owned();
        self.directory.join(format!("{name}-{hash}.key"))
    }

    /// The key that seals, and others that may have sealed what is there. `legacy` is where older versions had it.
    pub(super) fn read(&self, root: &Path, legacy: &Path) -> Result<Vec<KeyBytes>, FileError> {
        let path = self.path(root);
        let credential = self.credential.as_deref().and_then(|path| {
            let told = |error: &FileError| {
                tracing::error!(%error, path = %path.display(), "checkpoint key credential not read, not used");
            };
            read(path).inspect_err(told).ok().flatten()
        });
        if let Some(key) = credential {
            let files = [path.as_path(), legacy].map(|path| read(path).ok().flatten());
            return Ok([Some(key)].into_iter().chain(files).flatten().collect());
        }
        make_directory(&self.directory, OUR_DIRECTORY)
            .and_then(|()| take_over(legacy, &path))
            .and_then(|()| read_or_make(&path))
            .or_else(|error| {
                // A key that is there and cannot be read now is not replaced: it may be read at the next start.
                if path.exists() {
                    return Err(error);
                }
                tracing::error!(%error, path = %legacy.display(), "checkpoint key directory not usable, key stays beside the checkpoints");
                read_or_make(legacy)
            })
            .map(|key| vec![key])
            .map(|keys| match path.exists() {
                true => keys.into_iter().chain(read(legacy).ok().flatten()).collect(),
                false => keys,
            })
    }

    /// Whether the key beside the checkpoints is there and not the one that seals.
    pub(super) fn is_outdated(keys: &[KeyBytes], legacy: &Path) -> bool {
        let others = keys.get(1..).unwrap_or_default();
        read(legacy).ok().flatten().is_some_and(|key| others.contains(&key))
    }

    /// Removes the key of a root directory.
    pub(super) fn remove(&self, root: &Path) -> Result<(), FileError> {
        let path = self.path(root);
        [set_aside_path(&path), path]
            .iter()
            .try_for_each(|path| unless_gone(fs::remove_file(path)).map_err(failed("remove", path)))
    }
}

/// An older version had the key beside the checkpoints. It is written before it is removed there, so that a crash loses nothing.
fn take_over(legacy: &Path, path: &Path) -> Result<(), FileError> {
    if path.exists() {
        return Ok(());
    }
    let Some(key) = read_or_set_aside(legacy)? else { return Ok(()) };
    replace(path, &key, OURS, true).map_err(failed("write", path))?;
    fs::remove_file(legacy).map_err(failed("remove", legacy))?;
    tracing::info!(path = %path.display(), detail = %legacy.display(), "checkpoint key moved");
    Ok(())
}

fn read_or_make(path: &Path) -> Result<KeyBytes, FileError> {
    if let Some(key) = read_or_set_aside(path)? {
        return Ok(key);
    }
    let mut key = [0; KEY_BYTES];
    SystemRandom::new()
        .fill(&mut key)
        .map_err(|_| failed("make", path)(CipherError::NoRandomness))?;
    replace(path, &key, OURS, true).map_err(failed("write", path))?;
    Ok(key)
}

/// What is no key must not stop the start: what it sealed is lost, and the API server tells it again. One that cannot be read may be
/// read at the next start, and stays.
fn read_or_set_aside(path: &Path) -> Result<Option<KeyBytes>, FileError> {
    let Some(bytes) = read_bytes(path)? else { return Ok(None) };
    key_of(&bytes, path).map(Some).or_else(|error| {
        let aside = set_aside_path(path);
        // Another one that was set aside before may be the good one.
        if aside.exists() {
            return Err(failed("set aside", path)(format!("{} is there: remove one of the two", aside.display())));
        }
        fs::rename(path, &aside).map_err(failed("set aside", path))?;
        tracing::error!(%error, path = %path.display(), detail = %aside.display(), "checkpoint key damaged, set aside and replaced");
        Ok(None)
    })
}

fn set_aside_path(path: &Path) -> PathBuf {
    let mut name: OsString = path.as_os_str().to_owned();
    name.push(BAD);
    name.into()
}

/// None when there is no such file.
fn read(path: &Path) -> Result<Option<KeyBytes>, FileError> {
    read_bytes(path)?.map(|bytes| key_of(&bytes, path)).transpose()
}

fn read_bytes(path: &Path) -> Result<Option<Vec<u8>>, FileError> {
    match fs::read(path) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(failed("read", path)(error)),
    }
}

fn key_of(bytes: &[u8], path: &Path) -> Result<KeyBytes, FileError> {
    KeyBytes::try_from(bytes).map_err(|_| failed("use", path)("it is not a key of 32 bytes"))
}
