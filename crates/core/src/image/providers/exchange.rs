//! Request and response of a credential provider plugin.

use std::collections::BTreeMap;
use std::time::Duration;

use oarsman_cri_types::v1::AuthConfig;
use serde::Deserialize;
use serde_json::json;

use super::{Coverage, Provider, repository};
use crate::duration;
use crate::image::keyring::Keyring;

/// The request to a plugin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Question {
    /// What it reads.
    pub text: String,
}

impl Question {
    /// Asks for the credentials of an image.
    pub fn new(provider: &Provider, image: &str) -> Self {
        let question = json!({
            "kind": "CredentialProviderRequest",
            "apiVersion": provider.api_version,
            "image": repository(image),
        });
        Self { text: question.to_string() }
    }
}

/// Why an answer cannot be used. What it says is not repeated: it may be a password.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AnswerError {
    /// It is none.
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
    Kind {
        /// What it says it is.
        kind: String,
        /// Of which version.
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
pub struct Answer {
    /// The credentials.
    pub keyring: Keyring,
    /// For what else they are good.
    pub coverage: Coverage,
    /// For how long.
    pub counts: Duration,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Response {
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

impl Answer {
    /// Reads what a program wrote.
    ///
    /// # Errors
    /// When it is not what was agreed on.
    pub fn parse(provider: &Provider, text: &[u8]) -> Result<Self, AnswerError> {
        let malformed = |error: serde_json::Error| {
            let (line, column) = (error.line(), error.column());
            AnswerError::Malformed { line, column }
        };
        let response: Response = serde_json::from_slice(text).map_err(malformed)?;
        if response.kind != "CredentialProviderResponse"
            || response.api_version != provider.api_version
        {
            let (kind, version) = (response.kind, response.api_version);
            return Err(AnswerError::Kind { kind, version, wanted: provider.api_version.clone() });
        }
        let said = response.cache_duration.as_deref().map(duration::parse).transpose();
        let counts = said.map_err(|_| AnswerError::Duration)?.unwrap_or(provider.default_cache);
        let auth = |(name, Auth { username, password })| {
            (name, AuthConfig { username, password, ..AuthConfig::default() })
        };
        let keyring = response.auth.into_iter().map(auth).collect();
        Ok(Self { keyring, coverage: response.cache_key_type, counts })
    }
}
