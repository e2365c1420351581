//! Request and response of a credential provider plugin.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use oarsman_cri_types::v1::AuthConfig;
use serde::Deserialize;
use serde_json::json;

use super::{Coverage, CredentialProvider, ShownServiceAccount};
use crate::duration;
use crate::image::credentials::{CredentialSource, TrackedAuthConfig};
use crate::image::keyring::Keyring;
use crate::image_reference::repository_name;

/// The request to a plugin.
#[derive(Clone, PartialEq, Eq)]
pub struct CredentialProviderRequest {
    /// The JSON that the plugin reads from its standard input.
    pub text: String,
}

/// Without its text, which may hold a token.
impl fmt::Debug for CredentialProviderRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CredentialProviderRequest").finish_non_exhaustive()
    }
}

impl CredentialProviderRequest {
    /// Asks for the credentials of an image, for a service account if the provider gets tokens.
    pub fn new(
        provider: &CredentialProvider,
        image: &str,
        account: Option<&ShownServiceAccount>,
    ) -> Self {
        let mut question = json!({
            "kind": "CredentialProviderRequest",
            "apiVersion": provider.api_version,
            "image": repository_name(image),
        });
        if let Some(account) = account {
            question["serviceAccountToken"] = json!(account.token);
        }
        if let Some(account) = account.filter(|account| !account.annotations.is_empty()) {
            question["serviceAccountAnnotations"] = json!(account.annotations);
        }
        Self { text: question.to_string() }
    }
}

/// Why an answer cannot be used. What it says is not repeated: it may be a password.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ProviderResponseError {
    /// The output of the plugin is no CredentialProviderResponse.
    #[error("it is no CredentialProviderResponse in JSON (line {line}, column {column})")]
    Malformed {
        /// Counted from one.
        line: usize,
        /// Counted from one.
        column: usize,
    },
    /// It is in other words than were agreed on.
    #[error(
        "it says kind {kind:?} of {version:?} instead of CredentialProviderResponse of {wanted:?}"
    )]
    ObjectKind {
        /// What it says it is.
        kind: String,
        /// The version that the plugin answered with.
        version: String,
        /// Of which version it should be.
        wanted: String,
    },
    /// How long it counts is not a duration.
    #[error("its cacheDuration is not a duration")]
    Duration,
}

/// The response of a plugin.
#[derive(Clone, Debug, PartialEq)]
pub struct CredentialProviderResponse {
    /// The credentials by registry and path.
    pub keyring: Keyring,
    /// For what else they are good.
    pub coverage: Coverage,
    /// How long the answer may be cached.
    pub counts: Duration,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ResponseBody {
    kind: String,
    api_version: String,
    cache_key_type: Coverage,
    cache_duration: Option<String>,
    #[serde(default)]
    auth: BTreeMap<String, Auth>,
}

#[derive(Deserialize)]
struct Auth {
    #[serde(default)]
    username: String,
    #[serde(default)]
    password: String,
}

impl CredentialProviderResponse {
    /// Reads what a program wrote. Credentials that it gave for a service account's token are that account's, and all others the node's.
    ///
    /// # Errors
    /// When it is not what was agreed on.
    pub fn parse(
        provider: &CredentialProvider,
        text: &[u8],
        account: Option<&ShownServiceAccount>,
    ) -> Result<Self, ProviderResponseError> {
        let malformed = |error: serde_json::Error| {
            let (line, column) = (error.line(), error.column());
            ProviderResponseError::Malformed { line, column }
        };
        let response: ResponseBody = serde_json::from_slice(text).map_err(malformed)?;
        if response.kind != "CredentialProviderResponse"
            || response.api_version != provider.api_version
        {
            let (kind, version) = (response.kind, response.api_version);
            return Err(ProviderResponseError::ObjectKind {
                kind,
                version,
                wanted: provider.api_version.clone(),
            });
        }
        let cache_duration_text =
            response.cache_duration.as_deref().map(duration::parse).transpose();
        let counts = cache_duration_text
            .map_err(|_| ProviderResponseError::Duration)?
            .unwrap_or(provider.default_cache);
        let source = account.map_or(CredentialSource::Node, ShownServiceAccount::source);
        let auth = |(name, Auth { username, password })| {
            let auth = AuthConfig { username, password, ..AuthConfig::default() };
            (name, TrackedAuthConfig::new(auth, "", source.clone()))
        };
        let keyring = response.auth.into_iter().map(auth).collect();
        Ok(Self { keyring, coverage: response.cache_key_type, counts })
    }
}
