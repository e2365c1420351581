//! The seam to registry credentials, on the fake disk: there may be a file, and programs that give one answer each.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use async_trait::async_trait;
use oarsman_core::image::providers::CredentialProvider;
use oarsman_images::{CredentialError, CredentialPlugins};

use super::FakeDisk;
use crate::lock;

/// The path of the node's registry credentials.
const CREDENTIALS: &str = "/var/lib/oarsman/config.json";

/// Programs that know credentials.
#[derive(Default)]
pub(super) struct FakePlugins {
    /// What each answers, by name.
    answers: BTreeMap<String, String>,
    /// The requests so far, in order.
    requests: Vec<String>,
}

impl FakeDisk {
    /// A credential provider program that answers every request with this text.
    pub fn put_credential_plugin(&self, name: &str, answer: &str) {
        lock(&self.0.plugins).answers.insert(name.to_owned(), answer.to_owned());
    }

    /// The requests to credential provider programs so far.
    pub fn credential_requests(&self) -> Vec<String> {
        lock(&self.0.plugins).requests.clone()
    }
}

#[async_trait]
impl CredentialPlugins for FakeDisk {
    async fn node_credentials(&self) -> Result<Option<String>, CredentialError> {
        let file = self.0.files.read(Path::new(CREDENTIALS)).ok();
        Ok(file.and_then(|bytes| String::from_utf8(bytes).ok()))
    }

    async fn exec(
        &self,
        provider: &CredentialProvider,
        request: &str,
    ) -> Result<Vec<u8>, CredentialError> {
        let mut plugins = lock(&self.0.plugins);
        plugins.requests.push(request.to_owned());
        if let Some(answer) = plugins.answers.get(&provider.name) {
            return Ok(answer.clone().into_bytes());
        }
        let (path, why) = (PathBuf::from(&provider.name), "there is no such program".to_owned());
        Err(CredentialError { doing: "start", path, why })
    }
}
