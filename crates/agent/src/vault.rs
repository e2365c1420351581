//! Pages in sealed files, with the key in another file that only root can read.
//!
//! It keeps what a copy of the directory would give away, such as a backup or a disk that is sent in: secrets of pods. It is no
//! defence against root on this machine, who can read the key.

mod seal;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use async_trait::async_trait;

use crate::files::{failed, is_plain_name, make_directory, names_in, replace, unless_gone};
use crate::seams::{DiskError, Vault};

use seal::Seal;

const SUFFIX: &str = ".sealed";
const KEY: &str = "key";
const OURS: u32 = 0o600;
const OUR_DIRECTORY: u32 = 0o700;

/// A directory of sealed files.
#[derive(Clone, Debug)]
pub struct SealedFiles(Arc<Room>);

#[derive(Debug)]
struct Room {
    pages: PathBuf,
    seal: Seal,
}

impl SealedFiles {
    /// Opens the one below the agent's root directory, which gets a key if it has none.
    ///
    /// # Errors
    /// When a file or directory cannot be made or the key is not one.
    pub fn open(root: &Path) -> Result<Self, DiskError> {
        let directory = root.join("oarsman-vault");
        let pages = directory.join("pages");
        make_directory(&pages, OUR_DIRECTORY)?;
        let seal = Seal::of_file(&directory.join(KEY))?;
        Ok(Self(Arc::new(Room { pages, seal })))
    }

    /// Removes everything that was kept below a root directory, and the key: what nobody wants to be kept any more.
    ///
    /// # Errors
    /// When it cannot be removed.
    pub fn destroy(root: &Path) -> Result<(), DiskError> {
        let directory = root.join("oarsman-vault");
        unless_gone(fs::remove_dir_all(&directory)).map_err(failed("remove", &directory))
    }

    async fn on_a_thread<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Room) -> Result<T, DiskError> + Send + 'static,
    ) -> Result<T, DiskError> {
        let room = Arc::clone(&self.0);
        let done = tokio::task::spawn_blocking(move || work(&room)).await;
        done.unwrap_or_else(|error| Err(failed("use", &self.0.pages)(error)))
    }
}

#[async_trait]
impl Vault for SealedFiles {
    async fn keep(&self, name: &str, page: Vec<u8>, lasting: bool) -> Result<(), DiskError> {
        let name = name.to_owned();
        self.on_a_thread(move |room| room.keep(&name, page, lasting)).await
    }

    async fn kept(&self) -> Result<BTreeMap<String, Vec<u8>>, DiskError> {
        self.on_a_thread(Room::kept).await
    }

    async fn discard(&self, name: &str) -> Result<(), DiskError> {
        let name = name.to_owned();
        self.on_a_thread(move |room| {
            let path = room.path(&name)?;
            unless_gone(fs::remove_file(&path)).map_err(failed("remove", &path))
        })
        .await
    }
}

impl Room {
    fn path(&self, name: &str) -> Result<PathBuf, DiskError> {
        let path = self.pages.join(format!("{name}{SUFFIX}"));
        match is_plain_name(name) {
            true => Ok(path),
            false => Err(failed("keep", &path)("its name is not a plain one")),
        }
    }

    fn keep(&self, name: &str, page: Vec<u8>, lasting: bool) -> Result<(), DiskError> {
        let path = self.path(name)?;
        let sealed = self.seal.close(name, page).map_err(failed("seal", &path))?;
        replace(&path, &sealed, OURS, lasting).map_err(failed("write", &path))
    }

    fn kept(&self) -> Result<BTreeMap<String, Vec<u8>>, DiskError> {
        let names = names_in(&self.pages)?;
        let names = names.iter().filter_map(|name| name.strip_suffix(SUFFIX));
        let mut pages = BTreeMap::new();
        for name in names {
            match self.open(name) {
                Ok(page) => drop(pages.insert(name.to_owned(), page)),
                Err(error) => tracing::warn!(%error, "what was kept there is lost"),
            }
        }
        Ok(pages)
    }

    fn open(&self, name: &str) -> Result<Vec<u8>, DiskError> {
        let path = self.path(name)?;
        let sealed = fs::read(&path).map_err(failed("read", &path))?;
        self.seal.open(name, &sealed).map_err(failed("unseal", &path))
    }
}
