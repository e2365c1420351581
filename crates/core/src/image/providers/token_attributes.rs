//! Tokens of service accounts for credential provider plugins: which plugins get one, what they are shown of the account, and for whom
//! their answers count.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use serde::Deserialize;

use crate::api::validate::qualified_name;
use crate::hash::sha256_hex;
use crate::image::credentials::{CredentialSource, ServiceAccountCoordinates};

/// For whom an answer counts that a plugin gave for a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub enum TokenCacheType {
    /// All pods of the service account.
    ServiceAccount,
    /// The pod whose token it was, while that is in use.
    Token,
}

/// The `tokenAttributes` of a provider.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TokenAttributes {
    /// To whom the token is shown in the end.
    pub audience: String,
    /// For whom its answers count.
    pub cache_type: TokenCacheType,
    /// Whether it is not asked for pods without a service account.
    pub require_service_account: bool,
    /// Annotations without which it is not asked.
    pub required_annotations: BTreeSet<String>,
    /// Annotations that it is shown if they are there.
    pub optional_annotations: BTreeSet<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct TokenAttributesEntry {
    #[serde(default)]
    service_account_token_audience: String,
    cache_type: Option<TokenCacheType>,
    require_service_account: Option<bool>,
    #[serde(default)]
    required_service_account_annotation_keys: Vec<String>,
    #[serde(default)]
    optional_service_account_annotation_keys: Vec<String>,
}

impl TokenAttributesEntry {
    /// The attributes, or what is wrong with them.
    pub(super) fn validated(self) -> Result<TokenAttributes, String> {
        if self.service_account_token_audience.is_empty() {
            return Err("set serviceAccountTokenAudience".to_owned());
        }
        let cache_type = self.cache_type.ok_or("set cacheType to ServiceAccount or Token")?;
        let require_service_account = self
            .require_service_account
            .ok_or("set requireServiceAccount: is a pod without one of any use to the plugin?")?;
        let required = keys(
            "requiredServiceAccountAnnotationKeys",
            self.required_service_account_annotation_keys,
        )?;
        let optional = keys(
            "optionalServiceAccountAnnotationKeys",
            self.optional_service_account_annotation_keys,
        )?;
        if let Some(key) = required.intersection(&optional).next() {
            return Err(format!("annotation {key:?} is both required and optional"));
        }
        if !required.is_empty() && !require_service_account {
            return Err(
                "requiredServiceAccountAnnotationKeys need requireServiceAccount: true".to_owned()
            );
        }
        Ok(TokenAttributes {
            audience: self.service_account_token_audience,
            cache_type,
            require_service_account,
            required_annotations: required,
            optional_annotations: optional,
        })
    }
}

fn keys(field: &str, keys: Vec<String>) -> Result<BTreeSet<String>, String> {
    let mut set = BTreeSet::new();
    for key in keys {
        if let Some(complaint) = qualified_name(&key.to_lowercase()).into_iter().next() {
            return Err(format!("{field}: {key:?} is no key of an annotation: {complaint}"));
        }
        if set.contains(&key) {
            return Err(format!("{field}: {key:?} is there twice"));
        }
        set.insert(key);
    }
    Ok(set)
}

impl TokenAttributes {
    /// What a plugin is shown of an account's annotations; none when a required one is missing, so that the plugin is not asked.
    pub fn shown_annotations(
        &self,
        annotations: &BTreeMap<String, String>,
    ) -> Option<BTreeMap<String, String>> {
        if !self.required_annotations.iter().all(|key| annotations.contains_key(key)) {
            return None;
        }
        let is_shown = |key: &String| {
            self.required_annotations.contains(key) || self.optional_annotations.contains(key)
        };
        let shown = annotations.iter().filter(|(key, _)| is_shown(key));
        Some(shown.map(|(key, value)| (key.clone(), value.clone())).collect())
    }
}

/// The service account of a pod as a plugin is shown it.
#[derive(Clone, PartialEq, Eq)]
pub struct ShownServiceAccount {
    /// Which one it is.
    pub coordinates: ServiceAccountCoordinates,
    /// The annotations that the plugin is shown.
    pub annotations: BTreeMap<String, String>,
    /// The token, which is bound to the pod.
    pub token: String,
}

/// Without the token.
impl fmt::Debug for ShownServiceAccount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ShownServiceAccount")
            .field("coordinates", &self.coordinates)
            .field("annotations", &self.annotations)
            .finish_non_exhaustive()
    }
}

impl ShownServiceAccount {
    /// The account as the source of credentials.
    pub fn source(&self) -> CredentialSource {
        CredentialSource::ServiceAccount(self.coordinates.clone())
    }

    /// Two pods share answers if and only if theirs are equal. An account that was deleted and created again is another one, and so is
    /// one with other annotations.
    pub(super) fn cache_key(&self, cache_type: TokenCacheType) -> String {
        let ServiceAccountCoordinates { uid, namespace, name } = &self.coordinates;
        let token = match cache_type {
            TokenCacheType::ServiceAccount => String::new(),
            // The token itself is not kept.
            TokenCacheType::Token => sha256_hex(self.token.as_bytes()),
        };
        let parts = serde_json::json!([namespace, name, uid, self.annotations, token]);
        sha256_hex(parts.to_string().as_bytes())
    }
}
