//! The seam to registry credentials, on the fake disk: there may be a file, and there are no plugins.

use std::path::{Path, PathBuf};

use async_trait::async_trait;
use oarsman_core::image::providers::CredentialProvider;
use oarsman_images::{CredentialError, CredentialPlugins};

use super::FakeDisk;

/// The path of the node's registry credentials.
const CREDENTIALS: &str = "/var/lib/oarsman/config.json";

#[async_trait]
impl CredentialPlugins for FakeDisk {
    async fn node_credentials(&self) -> Result<Option<String>, CredentialError> {
        let file = self.0.files.read(Path::new(CREDENTIALS)).ok();
        Ok(file.and_then(|bytes| String::from_utf8(bytes).ok()))
    }

    async fn exec(
        &self,
        provider: &CredentialProvider,
        _: &str,
    ) -> Result<Vec<u8>, CredentialError> {
        let (path, why) = (PathBuf::from(&provider.name), "there is no such program".to_owned());
        Err(CredentialError { doing: "start", path, why })
    }
}
