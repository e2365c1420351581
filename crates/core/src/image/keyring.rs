//! Credentials as configuration files hold them, and which of them open an image's repository.
//!
//! The file is Docker's `config.json`, or its older form without `auths`. An entry's name is a registry, perhaps with a path
//! below it; a `*` in the registry's name stands for anything within one part between dots.

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use oarsman_cri_types::v1::AuthConfig;
use serde_json::Value;

use super::credentials::{CredentialSource, TrackedAuthConfig};
use crate::image_reference::registry_and_path;

/// What the default registry is called in configuration files.
const DOCKER_HUB: [&str; 3] = ["index.docker.io", "docker.io", "registry-1.docker.io"];

/// No file has more entries.
const MOST_ENTRIES: usize = 1000;

/// Why a file of credentials cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum KeyringError {
    /// It is not JSON of that kind.
    #[error("it is not a Docker configuration: {0}")]
    Malformed(String),
    /// Every pull would go through all of them.
    #[error("it has {count} entries, and {limit} are allowed: split it")]
    TooManyEntries {
        /// So many it has.
        count: usize,
        /// So many are allowed.
        limit: usize,
    },
    /// One entry cannot be understood. What it says is not repeated: it may be a password.
    #[error("the entry for {0:?} has an `auth` that is not `username:password` in base64")]
    Entry(String),
}

/// Credentials by registry and path, those for the longest names first.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Keyring {
    entries: Vec<(String, TrackedAuthConfig)>,
}

impl Keyring {
    /// Reads a configuration file of either form.
    pub fn parse(text: &str) -> Result<Self, KeyringError> {
        let malformed = |error: serde_json::Error| KeyringError::Malformed(error.to_string());
        let file: Value = serde_json::from_str(text).map_err(malformed)?;
        let auths = file.get("auths").cloned().unwrap_or(file);
        let auths: BTreeMap<String, Value> = serde_json::from_value(auths).map_err(malformed)?;
        if auths.len() > MOST_ENTRIES {
            return Err(KeyringError::TooManyEntries { count: auths.len(), limit: MOST_ENTRIES });
        }
        let entry = |(name, entry): (&String, &Value)| {
            let credential = credential(entry).map_err(|_| KeyringError::Entry(name.clone()))?;
            Ok(credential.map(|credential| (name.clone(), credential)))
        };
        let entries = auths.iter().map(entry).collect::<Result<Vec<_>, _>>()?;
        // Tools write empty entries beside a `credsStore`: they open nothing and void no other.
        Ok(entries.into_iter().flatten().collect())
    }

    /// The same credentials, which come from there.
    #[must_use]
    pub fn from_source(mut self, source: &CredentialSource) -> Self {
        self.entries.iter_mut().for_each(|(_, credential)| credential.source = source.clone());
        self
    }

    /// The credentials to try for an image, best first.
    pub fn for_image(&self, image: &str) -> Vec<TrackedAuthConfig> {
        let (registry, path) = registry_and_path(image);
        let registries: &[&str] = if registry.is_empty() { &DOCKER_HUB } else { &[registry] };
        let opens = |name: &str| registries.iter().any(|registry| fits(name, registry, path));
        let fitting = self.entries.iter().filter(|(name, _)| opens(name));
        fitting.map(|(_, credential)| credential.clone()).collect()
    }
}

/// By the names of their entries; of two with one name the first is tried first.
impl FromIterator<(String, TrackedAuthConfig)> for Keyring {
    fn from_iter<T: IntoIterator<Item = (String, TrackedAuthConfig)>>(entries: T) -> Self {
        let bare =
            |(name, credential): (String, TrackedAuthConfig)| (bare(&name).to_owned(), credential);
        let mut entries: Vec<_> = entries.into_iter().map(bare).collect();
        entries.sort_by(|(a, _), (b, _)| b.len().cmp(&a.len()).then(b.cmp(a)));
        Self { entries }
    }
}

/// All of them together.
impl FromIterator<Self> for Keyring {
    fn from_iter<T: IntoIterator<Item = Self>>(keyrings: T) -> Self {
        keyrings.into_iter().flat_map(|keyring| keyring.entries).collect()
    }
}

/// The name of an entry without what some tools write around it.
fn bare(name: &str) -> &str {
    let name = name.trim_start_matches("https://").trim_start_matches("http://");
    name.trim_end_matches('/').trim_end_matches("/v1").trim_end_matches("/v2").trim_end_matches('/')
}

/// An `auth` that is no pair of a name and a password.
struct MalformedAuth;

/// What an entry holds; none of an empty one.
fn credential(entry: &Value) -> Result<Option<TrackedAuthConfig>, MalformedAuth> {
    let text =
        |field: &str| entry.get(field).and_then(Value::as_str).unwrap_or_default().to_owned();
    let (username, password) = match text("username").as_str() {
        "" if !text("auth").is_empty() => decoded(&text("auth")).ok_or(MalformedAuth)?,
        _ => (text("username"), text("password")),
    };
    let (identity_token, registry_token) = (text("identitytoken"), text("registrytoken"));
    let known = !username.is_empty() || !identity_token.is_empty() || !registry_token.is_empty();
    let auth =
        AuthConfig { username, password, identity_token, registry_token, ..AuthConfig::default() };
    Ok(known.then(|| TrackedAuthConfig::new(auth, &text("email"), CredentialSource::Node)))
}

fn decoded(auth: &str) -> Option<(String, String)> {
    let bytes = STANDARD.decode(auth.trim_end_matches('\0')).ok()?;
    let both = String::from_utf8(bytes).ok()?;
    let (username, password) = both.trim_end_matches('\0').split_once(':')?;
    Some((username.to_owned(), password.to_owned()))
}

/// Whether an entry's name covers a repository.
fn fits(name: &str, registry: &str, path: &str) -> bool {
    let (of_name, below) = name.split_once('/').unwrap_or((name, ""));
    let within =
        path == below || path.strip_prefix(below).is_some_and(|rest| rest.starts_with('/'));
    same_registry(of_name, registry) && (below.is_empty() || within)
}

/// Compares part by part, so that a star never reaches over a dot; a port has to be the same.
fn same_registry(pattern: &str, registry: &str) -> bool {
    let split = |text: &'_ str| -> (Vec<String>, Option<String>) {
        let (host, port) =
            text.rsplit_once(':').map_or((text, None), |(h, p)| (h, Some(p.to_owned())));
        (host.split('.').map(str::to_owned).collect(), port)
    };
    let ((pattern, port), (host, of_host)) = (split(pattern), split(registry));
    port == of_host
        && pattern.len() == host.len()
        && pattern.iter().zip(&host).all(|(pattern, part)| matches(pattern, part))
}

/// A star stands for any text.
pub(super) fn matches(pattern: &str, text: &str) -> bool {
    matches_in_steps(pattern.as_bytes(), text.as_bytes()).0
}

/// Whether a pattern matches, and how many steps that took: a tenant writes the pattern, so that trying every length for every star
/// would take as long as the tenant likes. Only the last star is ever tried again, which is enough for any pattern.
fn matches_in_steps(pattern: &[u8], text: &[u8]) -> (bool, usize) {
    let (mut at, mut read, mut steps) = (0, 0, 0);
    // Behind the last star, and how much of the text that star has not taken yet.
    let mut retry = None;
    while read < text.len() {
        steps += 1;
        match (pattern.get(at), retry) {
            (Some(b'*'), _) => {
                at += 1;
                retry = Some((at, read));
            }
            (Some(expected), _) if *expected == text[read] => (at, read) = (at + 1, read + 1),
            (_, Some((behind, from))) => {
                (at, read) = (behind, from + 1);
                retry = Some((behind, from + 1));
            }
            (_, None) => return (false, steps),
        }
    }
    (pattern[at..].iter().all(|rest| *rest == b'*'), steps)
}
