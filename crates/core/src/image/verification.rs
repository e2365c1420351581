//! Whether a pod may use an image that is on the node already. A pod that did not pull it shows that it could have: with the credentials
//! of an earlier pull, or else by a pull of its own.

#[cfg(test)]
mod tests;

use super::credentials::{CredentialSource, TrackedAuthConfig};
use super::pull_records::{ImagePullCredentials, ImagePullSecret, ImagePulledRecord, PullIntents};
use crate::image_reference::repository_name;

/// From so many Secrets on, one that is recognised by another's hash is not added to a record: tenants that come and go would make it grow
/// without end.
const MOST_SECRETS_BY_HASH: usize = 100;

/// `imagePullCredentialsVerificationPolicy`: which images may be used by all pods.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum CredentialVerificationPolicy {
    /// All.
    NeverVerify,
    /// Those that no kubelet pulled.
    #[default]
    NeverVerifyPreloadedImages,
    /// Those of `preloadedImagesVerificationAllowlist`: a repository, or with `/*` at its end all below.
    NeverVerifyAllowlistedImages(Vec<String>),
    /// None.
    AlwaysVerify,
}

/// An image that is on the node.
#[derive(Clone, Copy, Debug)]
pub struct ImageOnNode<'a> {
    /// Its name as the pod writes it.
    pub requested: &'a str,
    /// All names that the runtime has for it.
    pub names: &'a [String],
}

/// What the disk says of earlier pulls of an image.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PullHistory {
    /// These records.
    Known {
        /// Of the image.
        record: Option<ImagePulledRecord>,
        /// Of all pulls that may be under way.
        intents: PullIntents,
    },
    /// They could not be read.
    Unreadable,
}

/// What has to be shown before a pod uses an image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequiredProof<'h> {
    /// Nothing that the pod could show matters.
    Decided(MustPullResult),
    /// One of these credentials, or a pull.
    OneOf(&'h ImagePullCredentials),
}

/// What the credentials of a pod prove.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CredentialMatch {
    /// Nothing: the pod has to pull.
    None,
    /// An earlier pull was made with one of them.
    Same,
    /// The same, by a part of it: this is to be recorded, so that it is recognised when the other part changes too.
    Changed(ImagePullCredentials),
}

/// What a check of a pod's right to an image came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum MustPullResult {
    /// The policy lets every pod use the image.
    CredentialPolicyAllowed,
    /// The records show that the pod may use it.
    CredentialRecordFound,
    /// The pod has to pull.
    MustAuthenticate,
    /// The records could not be read, so the pod has to pull.
    Error,
}

impl MustPullResult {
    /// The result by the pod's credentials.
    pub fn by_credentials(found: &CredentialMatch) -> Self {
        match found {
            CredentialMatch::None => Self::MustAuthenticate,
            CredentialMatch::Same | CredentialMatch::Changed(_) => Self::CredentialRecordFound,
        }
    }

    /// Whether the pod may use the image without a pull.
    pub fn may_use(self) -> bool {
        matches!(self, Self::CredentialPolicyAllowed | Self::CredentialRecordFound)
    }

    /// As metrics call it.
    pub fn label(self) -> &'static str {
        match self {
            Self::CredentialPolicyAllowed => "credentialPolicyAllowed",
            Self::CredentialRecordFound => "credentialRecordFound",
            Self::MustAuthenticate => "mustAuthenticate",
            Self::Error => "error",
        }
    }
}

impl CredentialVerificationPolicy {
    /// Whether a policy lets all pods use an image whatever the records say.
    fn trusts(&self, image: &str) -> bool {
        match self {
            Self::NeverVerify => true,
            Self::NeverVerifyPreloadedImages | Self::AlwaysVerify => false,
            Self::NeverVerifyAllowlistedImages(list) => {
                let repository = repository_name(image);
                list.iter().any(|pattern| covers(pattern, &repository))
            }
        }
    }

    /// What a pod has to show for an image.
    pub fn required_proof<'h>(
        &self,
        image: ImageOnNode<'_>,
        history: &'h PullHistory,
    ) -> RequiredProof<'h> {
        use MustPullResult::{
            CredentialPolicyAllowed, CredentialRecordFound, Error, MustAuthenticate,
        };
        if self.trusts(image.requested) {
            return RequiredProof::Decided(CredentialPolicyAllowed);
        }
        let PullHistory::Known { record, intents } = history else {
            return RequiredProof::Decided(Error);
        };
        let Some(record) = record else {
            let names = image.names.iter().map(String::as_str).chain([image.requested]);
            let is_preloaded = !intents.cover(names);
            return RequiredProof::Decided(match self {
                Self::NeverVerifyPreloadedImages if is_preloaded => CredentialPolicyAllowed,
                _ => MustAuthenticate,
            });
        };
        match record.credential_mapping.get(&repository_name(image.requested)) {
            Some(known) if known.node_pods_accessible => {
                RequiredProof::Decided(CredentialRecordFound)
            }
            Some(known) => RequiredProof::OneOf(known),
            None => RequiredProof::Decided(MustAuthenticate),
        }
    }
}

/// With its slash, a star stands for all below.
fn covers(pattern: &str, repository: &str) -> bool {
    match pattern.strip_suffix('*') {
        Some(prefix) => repository.starts_with(prefix),
        None => repository == pattern,
    }
}

/// Compares the credentials of a pod with those of earlier pulls.
pub fn match_credentials(
    known: &ImagePullCredentials,
    presented: &[TrackedAuthConfig],
) -> CredentialMatch {
    for credential in presented {
        let one = ImagePullCredentials::of_pull(Some(credential));
        match &credential.source {
            // One of the node would have made the image accessible to all.
            CredentialSource::Node => {}
            CredentialSource::Secret(_) => {
                let secrets = one.kubernetes_secrets.iter();
                let found = secrets.map(|secret| match_secret(known, secret));
                if let Some(found) = found.flatten().next() {
                    return found;
                }
            }
            CredentialSource::ServiceAccount(_) => {
                let accounts = &known.kubernetes_service_accounts;
                if one.kubernetes_service_accounts.iter().any(|one| accounts.contains(one)) {
                    return CredentialMatch::Same;
                }
            }
        }
    }
    CredentialMatch::None
}

fn match_secret(
    known: &ImagePullCredentials,
    presented: &ImagePullSecret,
) -> Option<CredentialMatch> {
    let same_hash = |one: &ImagePullSecret| {
        !one.credential_hash.is_empty() && one.credential_hash == presented.credential_hash
    };
    // Secrets of a manifest have no UID: anyone can name one alike.
    let same_object = |one: &ImagePullSecret| !one.uid.is_empty() && one.is_same_object(presented);
    let secrets = &known.kubernetes_secrets;
    if secrets.iter().any(|one| same_hash(one) && same_object(one)) {
        return Some(CredentialMatch::Same);
    }
    if !secrets.iter().any(|one| same_hash(one) || same_object(one)) {
        return None;
    }
    Some(match secrets.len() < MOST_SECRETS_BY_HASH {
        true => CredentialMatch::Changed(ImagePullCredentials {
            kubernetes_secrets: vec![presented.clone()],
            ..ImagePullCredentials::default()
        }),
        false => CredentialMatch::Same,
    })
}
