//! A credential for a registry together with its source, which records of pulls name.

use oarsman_cri_types::v1::AuthConfig;

use crate::hash::{go_json_string, sha256_hex};

/// The Secret that a credential is from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SecretCoordinates {
    /// The UID of the Secret.
    pub uid: String,
    /// Its namespace, which is the pod's.
    pub namespace: String,
    /// Its name.
    pub name: String,
}

/// The service account for whose token a provider gave a credential.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServiceAccountCoordinates {
    /// The UID of the ServiceAccount.
    pub uid: String,
    /// Its namespace, which is the pod's.
    pub namespace: String,
    /// Its name.
    pub name: String,
}

/// Where a credential comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CredentialSource {
    /// The node: every pod may use it.
    Node,
    /// A Secret that the pod names.
    Secret(SecretCoordinates),
    /// The pod's service account.
    ServiceAccount(ServiceAccountCoordinates),
}

/// A credential with its source.
#[derive(Clone, Debug, PartialEq)]
pub struct TrackedAuthConfig {
    /// What the runtime shows to the registry.
    pub auth: AuthConfig,
    /// The hash by which the credential is recognised without being stored.
    pub hash: String,
    /// Where it comes from.
    pub source: CredentialSource,
}

impl TrackedAuthConfig {
    /// A credential, with the address of its entry, which is part of the hash.
    pub fn new(auth: AuthConfig, email: &str, source: CredentialSource) -> Self {
        let hash = hash(&auth, email);
        Self { auth, hash, source }
    }
}

/// The hash that the Go kubelet takes of the same entry: over its JSON with empty fields left out.
fn hash(auth: &AuthConfig, email: &str) -> String {
    let fields = [
        ("username", auth.username.as_str()),
        ("password", auth.password.as_str()),
        ("email", email),
        ("identitytoken", auth.identity_token.as_str()),
        ("registrytoken", auth.registry_token.as_str()),
    ];
    let fields = fields.into_iter().filter(|(_, value)| !value.is_empty());
    let fields = fields.map(|(name, value)| format!("\"{name}\":{}", go_json_string(value)));
    sha256_hex(format!("{{{}}}", fields.collect::<Vec<_>>().join(",")).as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The digests are those of `sha256sum` over the JSON in the comment.
    #[test]
    fn a_credential_has_the_hash_that_the_go_kubelet_writes() {
        let rows = [
            // {"username":"user","password":"pass"}
            (
                "user",
                "pass",
                "",
                "cb54b00fb550d4a17c448149caa29f38f4d5a44fb87c752e43db8160af3a032a",
            ),
            // {"username":"u","password":"a\u003cb\u0026c","email":"me@example.com"}
            (
                "u",
                "a<b&c",
                "me@example.com",
                "c1fd787853b4039b706f066d0707ecf93657ff2e2ed10ef97535a5e458980281",
            ),
        ];
        for (username, password, email, expected) in rows {
            let (username, password) = (username.to_owned(), password.to_owned());
            let auth = AuthConfig { username, password, ..AuthConfig::default() };
            let tracked = TrackedAuthConfig::new(auth, email, CredentialSource::Node);
            assert_eq!(tracked.hash, expected);
        }
    }
}
