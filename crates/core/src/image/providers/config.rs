//! The file in which it stands which programs know credentials.

use std::collections::BTreeSet;

use serde::Deserialize;
use serde_json::Value;

use super::CredentialProvider;
use super::token_attributes::TokenAttributesEntry;
use crate::duration;
use crate::hash::sha256_hex;

const KIND: &str = "CredentialProviderConfig";
const GROUP: &str = "kubelet.config.k8s.io/";
/// The version whose requests hold tokens.
const WITH_TOKENS: &str = "credentialprovider.kubelet.k8s.io/v1";
/// The gate of tokens for providers.
pub const TOKENS_GATE: &str = "KubeletServiceAccountTokenForCredentialProviders";
/// The words that programs and we understand.
const API_VERSIONS: [&str; 3] = [
    WITH_TOKENS,
    "credentialprovider.kubelet.k8s.io/v1beta1",
    "credentialprovider.kubelet.k8s.io/v1alpha1",
];

/// What is wrong with such a file.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ProviderConfigError {
    /// The text is no CredentialProviderConfig.
    #[error("it is no {KIND} of {GROUP}v1: {0}")]
    Malformed(String),
    /// One program cannot be used as it stands there.
    #[error("provider {name:?}: {why}")]
    CredentialProvider {
        /// The name of the provider in the file.
        name: String,
        /// The field and what is wrong with it.
        why: String,
    },
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct File {
    api_version: String,
    kind: String,
    providers: Vec<Entry>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Entry {
    name: String,
    #[serde(default)]
    match_images: Vec<String>,
    default_cache_duration: Option<String>,
    #[serde(default)]
    api_version: String,
    #[serde(default)]
    args: Vec<String>,
    #[serde(default)]
    env: Vec<Variable>,
    token_attributes: Option<TokenAttributesEntry>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Variable {
    name: String,
    #[serde(default)]
    value: String,
}

/// The programs that files name, in their order. `tokens_enabled` says whether they may ask for tokens ([`TOKENS_GATE`]).
///
/// # Errors
/// With the first thing that is wrong: a program that is left out silently would be looked for in vain.
pub fn providers<'a>(
    files: impl IntoIterator<Item = &'a Value>,
    tokens_enabled: bool,
) -> Result<Vec<CredentialProvider>, ProviderConfigError> {
    let (mut all, mut names) = (Vec::new(), BTreeSet::new());
    for file in files {
        for entry in read(file)?.providers {
            let provider = provider(entry, tokens_enabled)?;
            if !names.insert(provider.name.clone()) {
                return Err(wrong(&provider.name, "it is there twice: take one out"));
            }
            all.push(provider);
        }
    }
    Ok(all)
}

fn read(file: &Value) -> Result<File, ProviderConfigError> {
    let file: File = serde_path_to_error::deserialize(file)
        .map_err(|error| ProviderConfigError::Malformed(error.to_string()))?;
    if file.kind != KIND || !file.api_version.starts_with(GROUP) {
        let stated = format!("it says kind {:?} of {:?}", file.kind, file.api_version);
        return Err(ProviderConfigError::Malformed(stated));
    }
    match file.providers.is_empty() {
        true => Err(ProviderConfigError::Malformed("it names no provider".to_owned())),
        false => Ok(file),
    }
}

fn wrong(name: &str, why: impl Into<String>) -> ProviderConfigError {
    ProviderConfigError::CredentialProvider { name: name.to_owned(), why: why.into() }
}

fn provider(entry: Entry, tokens_enabled: bool) -> Result<CredentialProvider, ProviderConfigError> {
    let name = entry.name.clone();
    if matches!(name.as_str(), "" | "." | "..") || name.contains(['/', ' ', '\0']) {
        return Err(wrong(&name, "name must be the plain name of a file"));
    }
    if entry.match_images.iter().all(String::is_empty) {
        return Err(wrong(&name, "matchImages must name at least one image"));
    }
    if !API_VERSIONS.contains(&entry.api_version.as_str()) {
        let why =
            format!("apiVersion {:?} is none of {}", entry.api_version, API_VERSIONS.join(", "));
        return Err(wrong(&name, why));
    }
    let token_attributes = match entry.token_attributes {
        None => None,
        Some(_) if !tokens_enabled => {
            let why = format!(
                "tokenAttributes: switch the feature gate {TOKENS_GATE} on, or take them out"
            );
            return Err(wrong(&name, why));
        }
        Some(_) if entry.api_version != WITH_TOKENS => {
            return Err(wrong(&name, format!("tokenAttributes need apiVersion {WITH_TOKENS}")));
        }
        Some(written) => {
            let told = |why| wrong(&name, format!("tokenAttributes: {why}"));
            Some(written.validated().map_err(told)?)
        }
    };
    let stated =
        entry.default_cache_duration.ok_or_else(|| wrong(&name, "set defaultCacheDuration"))?;
    let default_cache = duration::parse(&stated)
        .map_err(|error| wrong(&name, format!("defaultCacheDuration: {error}")))?;
    let env = entry.env.into_iter().map(|variable| (variable.name, variable.value)).collect();
    Ok(CredentialProvider {
        name,
        match_images: entry.match_images,
        default_cache,
        api_version: entry.api_version,
        args: entry.args,
        env,
        token_attributes,
    })
}

/// The hash of the files, in their order. Each has its length before it, so that what is moved from one file to the next is a change.
pub fn config_hash(files: &[Vec<u8>]) -> String {
    let with_length = |bytes: &Vec<u8>| [&(bytes.len() as u64).to_be_bytes()[..], bytes].concat();
    let all: Vec<u8> = files.iter().flat_map(with_length).collect();
    format!("sha256:{}", sha256_hex(&all))
}
