//! The node's own credentials for registries, where the Go kubelet looks for them.

use std::fs;
use std::io;
use std::path::PathBuf;

use super::Plot;
use crate::files::failed;
use crate::seams::DiskError;

impl Plot {
    /// The first file there is: Docker's configuration, then its older form.
    pub(super) fn read_credentials(&self) -> Result<Option<String>, DiskError> {
        for path in self.places_of_credentials() {
            match fs::read_to_string(&path) {
                Ok(text) => return Ok(Some(text)),
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(failed("read", &path)(error)),
            }
        }
        Ok(None)
    }

    fn places_of_credentials(&self) -> Vec<PathBuf> {
        let (root, home) = (self.settings.root.clone(), std::env::home_dir().unwrap_or_default());
        vec![
            root.join("config.json"),
            home.join(".docker/config.json"),
            PathBuf::from("/.docker/config.json"),
            root.join(".dockercfg"),
            home.join(".dockercfg"),
            PathBuf::from("/.dockercfg"),
        ]
    }
}
