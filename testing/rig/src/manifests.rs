//! The directory of an agent's static pods.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

/// The directory of an agent's manifests.
#[derive(Clone, Debug)]
pub struct Manifests(PathBuf);

impl Manifests {
    /// Makes the directory.
    ///
    /// # Errors
    /// When it cannot be made.
    pub fn create(directory: PathBuf) -> Result<Self> {
        fs::create_dir_all(&directory)
            .with_context(|| format!("cannot make {}", directory.display()))?;
        Ok(Self(directory))
    }

    /// The directory.
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// Writes a manifest atomically, and replaces one of the same name.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn write(&self, name: &str, text: &str) -> Result<()> {
        let unfinished = self.0.with_extension("unfinished");
        fs::write(&unfinished, text)?;
        Ok(fs::rename(unfinished, self.of(name))?)
    }

    /// Removes a manifest; one that is gone is no error.
    ///
    /// # Errors
    /// When it cannot be removed.
    pub fn remove(&self, name: &str) -> Result<()> {
        match fs::remove_file(self.of(name)) {
            Err(error) if error.kind() != ErrorKind::NotFound => Err(error.into()),
            _ => Ok(()),
        }
    }

    /// Removes all manifests.
    ///
    /// # Errors
    /// When one cannot be removed.
    pub fn clear(&self) -> Result<()> {
        for entry in fs::read_dir(&self.0)? {
            fs::remove_file(entry?.path())?;
        }
        Ok(())
    }

    fn of(&self, name: &str) -> PathBuf {
        self.0.join(format!("{name}.yaml"))
    }
}
