//! The objects that an installer creates in a new cluster so that nodes may join it by a bootstrap token.

use serde_json::{Value, json};

const TOKEN_ID: &str = "0arsma";
const TOKEN_SECRET: &str = "0123456789abcdef";
const GROUP: &str = "rbac.authorization.k8s.io";

pub(super) fn bootstrap_token() -> String {
    format!("{TOKEN_ID}.{TOKEN_SECRET}")
}

/// The token's secret, and the roles by which its group may request certificates that are approved automatically.
pub(super) fn objects() -> Value {
    let signing = "system:certificates.k8s.io:certificatesigningrequests";
    let items = [
        token(),
        binding("rig-bootstrap", "system:node-bootstrapper", "system:bootstrappers"),
        binding("rig-approve-new", &format!("{signing}:nodeclient"), "system:bootstrappers"),
        binding("rig-approve-renewal", &format!("{signing}:selfnodeclient"), "system:nodes"),
    ];
    json!({ "apiVersion": "v1", "kind": "List", "items": items })
}

fn token() -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Secret",
        "type": "bootstrap.kubernetes.io/token",
        "metadata": { "name": format!("bootstrap-token-{TOKEN_ID}"), "namespace": "kube-system" },
        "stringData": {
            "token-id": TOKEN_ID,
            "token-secret": TOKEN_SECRET,
            "usage-bootstrap-authentication": "true",
        },
    })
}

fn binding(name: &str, role: &str, group: &str) -> Value {
    json!({
        "apiVersion": format!("{GROUP}/v1"),
        "kind": "ClusterRoleBinding",
        "metadata": { "name": name },
        "roleRef": { "apiGroup": GROUP, "kind": "ClusterRole", "name": role },
        "subjects": [{ "apiGroup": GROUP, "kind": "Group", "name": group }],
    })
}
