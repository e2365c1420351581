//! Credential provider plugins: which of them are asked for an image, the protocol, and for how long a response is cached.

mod cache;
mod config;
mod protocol;
#[cfg(test)]
mod tests;
mod token_attributes;

use std::time::Duration;

pub use cache::{Coverage, ProviderCache, ProviderQuestion};
pub use config::{ProviderConfigError, TOKENS_GATE, config_hash, providers};
pub use protocol::{CredentialProviderRequest, CredentialProviderResponse, ProviderResponseError};
pub use token_attributes::{ShownServiceAccount, TokenAttributes, TokenCacheType};

use super::keyring::matches;
use crate::image_reference::repository_name;

/// A program that knows credentials.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CredentialProvider {
    /// The name of its file.
    pub name: String,
    /// Patterns of the images that it is asked for.
    pub match_images: Vec<String>,
    /// How long an answer counts that does not say.
    pub default_cache: Duration,
    /// The version of the words that it understands.
    pub api_version: String,
    /// What it is started with.
    pub args: Vec<String>,
    /// Variables that it gets besides the agent's own.
    pub env: Vec<(String, String)>,
    /// Which token of the pod's service account it gets; none if it gets none.
    pub token_attributes: Option<TokenAttributes>,
}

impl CredentialProvider {
    /// Whether it is asked for an image.
    pub fn matches_image(&self, image: &str) -> bool {
        let repository = repository_name(image);
        self.match_images.iter().any(|pattern| covers(pattern, &repository))
    }
}

/// Part by part of the host's name, so that a star never reaches over a dot; the port has to be the same, and the path may go on.
fn covers(pattern: &str, repository: &str) -> bool {
    let (of_pattern, below) = pattern.split_once('/').unwrap_or((pattern, ""));
    let (of_image, path) = repository.split_once('/').unwrap_or((repository, ""));
    let ((glob, port), (host, of_host)) = (host_and_port(of_pattern), host_and_port(of_image));
    let (glob, host): (Vec<&str>, Vec<&str>) =
        (glob.split('.').collect(), host.split('.').collect());
    port == of_host
        && glob.len() == host.len()
        && glob.iter().zip(&host).all(|(glob, part)| matches(glob, part))
        && path.starts_with(below.trim_end_matches('/'))
}

fn host_and_port(text: &str) -> (&str, &str) {
    text.rsplit_once(':').unwrap_or((text, ""))
}
