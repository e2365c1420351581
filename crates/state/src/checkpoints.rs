//! The seam to checkpoints of the cluster's pods, and encrypted files behind it.
//!
//! The key is a credential of the service manager, or lies in a file of another directory that only root can read.
//! It keeps what a copy of the directory would give away, such as a backup or a disk that is sent in: secrets of pods. It is no
//! defence against root on this machine, who can read the key.

mod cipher;
mod keys;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use async_trait::async_trait;
use oarsman_host::blocking::{BlockingKind, BlockingPool};
use oarsman_host::files::is_plain_name;
use oarsman_seam::seam;

use crate::error::{FileError, failed};
use crate::files::{
    make_directory, names_in, remove_for_good, remove_unfinished, replace, unless_gone,
};

use cipher::CheckpointCipher;
pub use keys::CheckpointKeys;

const SUFFIX: &str = ".sealed";
const KEY: &str = "key";
const OURS: u32 = 0o600;
const OUR_DIRECTORY: u32 = 0o700;

/// Checkpoints by name. The checkpoints alone cannot be read.
#[seam]
pub trait CheckpointStore: Send + Sync + 'static {
    /// Writes a checkpoint in the place of the one of that name; when `lasting`, a crash of the machine does not lose it.
    #[seam(call = "write the checkpoint", object = name)]
    async fn write(&self, name: &str, content: Vec<u8>, lasting: bool) -> Result<(), FileError>;

    /// Every checkpoint that can be read. One that cannot is logged and left out: it must not keep the others from being read.
    #[seam(call = "read the checkpoints")]
    async fn read_all(&self) -> Result<BTreeMap<String, Vec<u8>>, FileError>;

    /// Removes a checkpoint; one that is not there is gone already.
    #[seam(call = "remove the checkpoint", object = name)]
    async fn remove(&self, name: &str) -> Result<(), FileError>;
}

/// Checkpoints as encrypted files below the root directory.
#[derive(Clone, Debug)]
pub struct EncryptedCheckpoints(Arc<CheckpointDirectory>);

#[derive(Debug)]
struct CheckpointDirectory {
    checkpoints: PathBuf,
    cipher: CheckpointCipher,
    pool: BlockingPool,
}

impl EncryptedCheckpoints {
    /// Opens the one below the agent's root directory, which gets a key if it has none.
    ///
    /// # Errors
    /// When a file or directory cannot be made.
    pub fn open(root: &Path, keys: &CheckpointKeys) -> Result<Self, FileError> {
        let directory = root.join("oarsman-vault");
        let checkpoints = directory.join("pages");
        make_directory(&directory, OUR_DIRECTORY)?;
        make_directory(&checkpoints, OUR_DIRECTORY)?;
        remove_unfinished(&checkpoints)?;
        let legacy = directory.join(KEY);
        let keys = keys.read(root, &legacy)?;
        let cipher = CheckpointCipher::new(&keys).map_err(failed("use the key of", &directory))?;
        let pool = BlockingPool::new(BlockingKind::Checkpoints);
        let opened = CheckpointDirectory { checkpoints, cipher, pool };
        if CheckpointKeys::is_outdated(&keys, &legacy)
            && let Err(error) = opened.replace_key(&legacy)
        {
            tracing::warn!(%error, path = %legacy.display(), "checkpoint key of an older version not removed, next start retries");
        }
        Ok(Self(Arc::new(opened)))
    }

    /// Removes all checkpoints below a root directory, and the key.
    ///
    /// # Errors
    /// When it cannot be removed.
    pub fn destroy(root: &Path, keys: &CheckpointKeys) -> Result<(), FileError> {
        let directory = root.join("oarsman-vault");
        unless_gone(fs::remove_dir_all(&directory)).map_err(failed("remove", &directory))?;
        keys.remove(root)
    }

    async fn blocking<T: Send + 'static>(
        &self,
        object: &str,
        work: impl FnOnce(&CheckpointDirectory) -> Result<T, FileError> + Send + 'static,
    ) -> Result<T, FileError> {
        let checkpoints = Arc::clone(&self.0);
        self.0
            .pool
            .run(object, move || work(&checkpoints), failed("use", &self.0.checkpoints))
            .await
    }
}

#[async_trait]
impl CheckpointStore for EncryptedCheckpoints {
    async fn write(&self, name: &str, content: Vec<u8>, lasting: bool) -> Result<(), FileError> {
        let name = name.to_owned();
        self.blocking("", move |checkpoints| checkpoints.write(&name, content, lasting)).await
    }

    async fn read_all(&self) -> Result<BTreeMap<String, Vec<u8>>, FileError> {
        self.blocking("", CheckpointDirectory::read_all).await
    }

    async fn remove(&self, name: &str) -> Result<(), FileError> {
        let name = name.to_owned();
        self.blocking("", move |checkpoints| {
            let path = checkpoints.path(&name)?;
            remove_for_good(&path).map_err(failed("remove", &path))
        })
        .await
    }
}

impl CheckpointDirectory {
    fn path(&self, name: &str) -> Result<PathBuf, FileError> {
        let path = self.checkpoints.join(format!("{name}{SUFFIX}"));
        match is_plain_name(name) {
            true => Ok(path),
            false => Err(failed("keep", &path)("its name is not a plain one")),
        }
    }

    fn write(&self, name: &str, content: Vec<u8>, lasting: bool) -> Result<(), FileError> {
        let path = self.path(name)?;
        let sealed = self.cipher.encrypt(name, content).map_err(failed("seal", &path))?;
        replace(&path, &sealed, OURS, lasting).map_err(failed("write", &path))
    }

    /// Seals all checkpoints anew, so that an older key beside them is needed no longer, and removes it.
    fn replace_key(&self, legacy: &Path) -> Result<(), FileError> {
        for (name, content) in self.read_all()? {
            self.write(&name, content, true)?;
        }
        remove_for_good(legacy).map_err(failed("remove", legacy))
    }

    fn read_all(&self) -> Result<BTreeMap<String, Vec<u8>>, FileError> {
        let names = names_in(&self.checkpoints)?;
        let names = names.iter().filter_map(|name| name.strip_suffix(SUFFIX));
        let mut checkpoints = BTreeMap::new();
        for name in names {
            match self.open(name) {
                Ok(content) => drop(checkpoints.insert(name.to_owned(), content)),
                Err(error) => {
                    let path = error.path.display();
                    tracing::warn!(%path, %error, "checkpoint not read, skipped");
                }
            }
        }
        Ok(checkpoints)
    }

    fn open(&self, name: &str) -> Result<Vec<u8>, FileError> {
        let path = self.path(name)?;
        let sealed = fs::read(&path).map_err(failed("read", &path))?;
        self.cipher.decrypt(name, &sealed).map_err(failed("unseal", &path))
    }
}
