//! The node's own credentials for registries, where the Go kubelet looks for them.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::{CredentialError, failed};

/// The first file there is: Docker's configuration, then its older form.
pub(super) fn read(root: &Path) -> Result<Option<String>, CredentialError> {
    for path in candidate_files(root) {
        match fs::read_to_string(&path) {
            Ok(text) => return Ok(Some(text)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(failed("read", &path)(error)),
        }
    }
    Ok(None)
}

fn candidate_files(root: &Path) -> [PathBuf; 6] {
    let home = std::env::home_dir().unwrap_or_default();
    [
        root.join("config.json"),
        home.join(".docker/config.json"),
        PathBuf::from("/.docker/config.json"),
        root.join(".dockercfg"),
        home.join(".dockercfg"),
        PathBuf::from("/.dockercfg"),
    ]
}
