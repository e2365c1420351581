//! Records of pulls, as the Go kubelet stores them below `image_manager`: which images are being pulled, and with whose credentials an
//! image was pulled.
//!
//! Both kubelets read the files of the other. Names of files, fields and their order are the Go kubelet's; it refuses a field that it does
//! not know, and so do we.

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::credentials::{CredentialSource, TrackedAuthConfig};
use crate::hash::sha256_hex;
use crate::image_reference::{full_name, repository_name};

/// The version that is written.
const VERSION: &str = "kubelet.config.k8s.io/v1beta1";
/// The versions that are read.
const VERSIONS: [&str; 2] = [VERSION, "kubelet.config.k8s.io/v1alpha1"];
const INTENT: &str = "ImagePullIntent";
const RECORD: &str = "ImagePulledRecord";

/// Why a file is no record. An image whose record cannot be read is verified by a pull.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PullRecordError {
    /// It is not JSON of that kind.
    #[error("it is no {RECORD} or {INTENT}: {0}")]
    Malformed(String),
    /// It is something else.
    #[error("it says kind {kind:?} of {version:?}")]
    ObjectKind {
        /// The kind in the file.
        kind: String,
        /// The version in the file.
        version: String,
    },
}

/// How many files there are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PullRecordCounts {
    /// Of pulls that have not ended.
    pub intents: u64,
    /// Of images that were pulled.
    pub pulled: u64,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct IntentFile {
    kind: String,
    api_version: String,
    image: String,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct RecordFile {
    kind: String,
    api_version: String,
    last_updated_time: Timestamp,
    image_ref: String,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    credential_mapping: BTreeMap<String, ImagePullCredentials>,
}

/// The record of an image that was pulled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImagePulledRecord {
    /// When it was last changed, in whole seconds.
    pub last_updated: Timestamp,
    /// The image as the runtime calls it.
    pub image_ref: String,
    /// Who may use it, by the repository that it was pulled from.
    pub credential_mapping: BTreeMap<String, ImagePullCredentials>,
}

/// With what an image was pulled from one repository.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ImagePullCredentials {
    /// Secrets of pods.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub kubernetes_secrets: Vec<ImagePullSecret>,
    /// Service accounts of pods.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub kubernetes_service_accounts: Vec<ImagePullServiceAccount>,
    /// Without credentials or with the node's own: every pod may use it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub node_pods_accessible: bool,
}

/// A Secret that an image was pulled with.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ImagePullSecret {
    /// The UID of the Secret.
    pub uid: String,
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// The hash of the credential in it.
    pub credential_hash: String,
}

/// A service account for whose token a provider gave the credential.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ImagePullServiceAccount {
    /// The UID of the ServiceAccount.
    pub uid: String,
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
}

/// A pull that has succeeded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CompletedPull {
    /// The image as the pod names it.
    pub image: String,
    /// The image as the runtime calls it.
    pub image_ref: String,
    /// What it was pulled with; none when that is unknown, so that every pod has to show its credentials.
    pub credentials: Option<ImagePullCredentials>,
    /// When.
    pub at: Timestamp,
}

/// Pulls that were begun, and have not ended as far as the disk says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PullIntents {
    /// The images, as pods name them.
    pub images: BTreeSet<String>,
    /// The names of all files, also of those that could not be read.
    pub files: BTreeSet<String>,
}

impl PullIntents {
    /// Whether one of these images may have come by a pull that was begun: `names` are all that the image has on the node.
    pub fn cover<'n>(&self, names: impl IntoIterator<Item = &'n str>) -> bool {
        let intended: BTreeSet<String> = self.images.iter().map(|image| full_name(image)).collect();
        names.into_iter().any(|name| {
            intended.contains(&full_name(name)) || self.files.contains(&file_name(name))
        })
    }
}

/// The name of the file about an image.
pub fn file_name(image: &str) -> String {
    format!("sha256-{}", sha256_hex(image.as_bytes()))
}

/// The file of a pull that begins.
pub fn intent_text(image: &str) -> String {
    let (kind, api_version) = (INTENT.to_owned(), VERSION.to_owned());
    text(&IntentFile { kind, api_version, image: image.to_owned() })
}

/// The image that the file of an intent is about.
///
/// # Errors
/// When it is no such file.
pub fn parse_intent(text: &[u8]) -> Result<String, PullRecordError> {
    let file: IntentFile = serde_json::from_slice(text).map_err(|error| malformed(&error))?;
    check(&file.kind, INTENT, &file.api_version)?;
    Ok(file.image)
}

impl ImagePulledRecord {
    /// The file of the record.
    pub fn text(&self) -> String {
        text(&RecordFile {
            kind: RECORD.to_owned(),
            api_version: VERSION.to_owned(),
            last_updated_time: self.last_updated,
            image_ref: self.image_ref.clone(),
            credential_mapping: self.credential_mapping.clone(),
        })
    }

    /// Reads the file of a record.
    ///
    /// # Errors
    /// When it is no such file.
    pub fn parse(text: &[u8]) -> Result<Self, PullRecordError> {
        let file: RecordFile = serde_json::from_slice(text).map_err(|error| malformed(&error))?;
        check(&file.kind, RECORD, &file.api_version)?;
        Ok(Self {
            last_updated: file.last_updated_time,
            image_ref: file.image_ref,
            credential_mapping: file.credential_mapping,
        })
    }

    /// The record after a pull, if that changes it. `before` is the one there was, none also of one that could not be read: what was in it
    /// is proved again by the next pull.
    pub fn after(before: Option<&Self>, pull: &CompletedPull) -> Option<Self> {
        let repository = repository_name(&pull.image);
        let mut record = before.cloned().unwrap_or_else(|| Self::unknown(pull));
        let is_new = before.is_none();
        let changed = pull.credentials.as_ref().is_some_and(|added| record.add(&repository, added));
        record.last_updated = whole_seconds(pull.at);
        (is_new || changed).then_some(record)
    }

    fn unknown(pull: &CompletedPull) -> Self {
        let (last_updated, image_ref) = (whole_seconds(pull.at), pull.image_ref.clone());
        Self { last_updated, image_ref, credential_mapping: BTreeMap::new() }
    }

    /// Whether that changed anything.
    fn add(&mut self, repository: &str, added: &ImagePullCredentials) -> bool {
        if *added == ImagePullCredentials::default() {
            return false;
        }
        let known = self.credential_mapping.entry(repository.to_owned()).or_default();
        let before = known.clone();
        known.add(added);
        *known != before
    }

    /// Whether the record may go when the images of the node were listed at `listed`, after which it was not changed. Its time is in whole
    /// seconds: one of the same second may be younger than the list.
    pub fn is_older_than(&self, listed: Timestamp) -> bool {
        self.last_updated < whole_seconds(listed)
    }
}

impl ImagePullCredentials {
    /// What a pull with that credential, or with none, proves.
    pub fn of_pull(credential: Option<&TrackedAuthConfig>) -> Self {
        match credential.map(|credential| (&credential.source, &credential.hash)) {
            None | Some((CredentialSource::Node, _)) => {
                Self { node_pods_accessible: true, ..Self::default() }
            }
            Some((CredentialSource::Secret(secret), hash)) => Self {
                kubernetes_secrets: vec![ImagePullSecret {
                    uid: secret.uid.clone(),
                    namespace: secret.namespace.clone(),
                    name: secret.name.clone(),
                    credential_hash: hash.clone(),
                }],
                ..Self::default()
            },
            Some((CredentialSource::ServiceAccount(account), _)) => Self {
                kubernetes_service_accounts: vec![ImagePullServiceAccount {
                    uid: account.uid.clone(),
                    namespace: account.namespace.clone(),
                    name: account.name.clone(),
                }],
                ..Self::default()
            },
        }
    }

    /// An image that every pod may use needs no list any more. A Secret whose content has changed is there once, with its new hash.
    fn add(&mut self, added: &Self) {
        if self.node_pods_accessible || added.node_pods_accessible {
            *self = Self { node_pods_accessible: true, ..Self::default() };
            return;
        }
        for secret in &added.kubernetes_secrets {
            self.kubernetes_secrets.retain(|known| !known.is_same_object(secret));
            self.kubernetes_secrets.push(secret.clone());
        }
        let place = |secret: &ImagePullSecret| {
            (secret.namespace.clone(), secret.name.clone(), secret.uid.clone())
        };
        self.kubernetes_secrets.sort_by_key(place);
        self.kubernetes_service_accounts.extend(added.kubernetes_service_accounts.iter().cloned());
        let place = |account: &ImagePullServiceAccount| {
            (account.namespace.clone(), account.name.clone(), account.uid.clone())
        };
        self.kubernetes_service_accounts.sort_by_key(place);
        self.kubernetes_service_accounts.dedup();
    }
}

impl ImagePullSecret {
    /// Whether both are one object of the cluster, whatever it holds.
    pub fn is_same_object(&self, other: &Self) -> bool {
        (&self.uid, &self.namespace, &self.name) == (&other.uid, &other.namespace, &other.name)
    }
}

fn check(kind: &str, expected: &str, version: &str) -> Result<(), PullRecordError> {
    match kind == expected && VERSIONS.contains(&version) {
        true => Ok(()),
        false => {
            let (kind, version) = (kind.to_owned(), version.to_owned());
            Err(PullRecordError::ObjectKind { kind, version })
        }
    }
}

fn malformed(error: &serde_json::Error) -> PullRecordError {
    PullRecordError::Malformed(error.to_string())
}

/// With a line feed at its end, as Go's encoder writes it.
fn text(file: &impl Serialize) -> String {
    // Strings, lists and maps with strings as keys: that cannot fail.
    serde_json::to_string(file).unwrap_or_default() + "\n"
}

fn whole_seconds(time: Timestamp) -> Timestamp {
    Timestamp::from_second(time.as_second()).unwrap_or(time)
}
