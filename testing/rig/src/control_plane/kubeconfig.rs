//! Writes kubeconfig files: the address of the API server, and the identity of a client.

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use serde_json::{Value, json};

use super::certificates::CertificatePem;

/// The identity of a client.
pub(super) enum ClientIdentity<'a> {
    Certificate(&'a CertificatePem),
    Token(&'a str),
}

/// The text of a kubeconfig without references to other files. JSON is YAML, too.
pub(super) fn kubeconfig(server: &str, authority: &str, identity: &ClientIdentity<'_>) -> String {
    let cluster = json!({ "server": server, "certificate-authority-data": encoded(authority) });
    let context = json!({ "cluster": "rig", "user": "rig", "namespace": "default" });
    let file = json!({
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{ "name": "rig", "cluster": cluster }],
        "users": [{ "name": "rig", "user": user(identity) }],
        "contexts": [{ "name": "rig", "context": context }],
        "current-context": "rig",
    });
    format!("{file:#}\n")
}

fn user(identity: &ClientIdentity<'_>) -> Value {
    match identity {
        ClientIdentity::Certificate(pair) => json!({
            "client-certificate-data": encoded(&pair.certificate),
            "client-key-data": encoded(&pair.key),
        }),
        ClientIdentity::Token(token) => json!({ "token": token }),
    }
}

fn encoded(text: &str) -> String {
    BASE64_STANDARD.encode(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_has_its_identity_in_it() {
        let pair = CertificatePem { certificate: "c".to_owned(), key: "k".to_owned() };
        let rows = [
            (
                ClientIdentity::Certificate(&pair),
                json!({ "client-certificate-data": "Yw==", "client-key-data": "aw==" }),
            ),
            (ClientIdentity::Token("t"), json!({ "token": "t" })),
        ];
        for (identity, user) in rows {
            let text = kubeconfig("https://10.78.1.1:6443", "a", &identity);
            let file: Value = serde_json::from_str(&text).unwrap();
            assert_eq!(file["users"][0]["user"], user);
            assert_eq!(file["clusters"][0]["cluster"]["certificate-authority-data"], "YQ==");
        }
    }
}
