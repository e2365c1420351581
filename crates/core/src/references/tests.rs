//! What a pod refers to.

use serde_json::{Value, json};

use super::*;

fn pod(spec: Value) -> Pod {
    let mut manifest = json!({ "metadata": { "name": "web" } });
    manifest["spec"] = spec;
    serde_json::from_value(manifest).unwrap()
}

/// `kind name[key]?` for each, the question mark for what is optional.
fn named(spec: Value) -> Vec<String> {
    let show = |reference: &Reference| {
        let key = reference.key.as_ref().map(|key| format!("[{key}]")).unwrap_or_default();
        let mark = if reference.optional { "?" } else { "" };
        format!("{} {}{key}{mark}", reference.kind.as_str(), reference.name)
    };
    references(&pod(spec)).iter().map(show).collect()
}

#[test]
fn every_place_is_looked_into_and_what_is_optional_is_known() {
    let items = json!([{ "key": "k", "path": "p" }]);
    let sources = json!([
        { "configMap": { "name": "pm", "optional": true } },
        { "secret": { "name": "ps", "items": items } },
        { "downwardAPI": {} },
    ]);
    let env = json!([
        { "name": "A", "valueFrom": { "configMapKeyRef": { "name": "em", "key": "k" } } },
        { "name": "B", "valueFrom": { "secretKeyRef": { "name": "es", "key": "k", "optional": true } } },
        { "name": "C", "value": "plain" },
    ]);
    let from = json!([
        { "configMapRef": { "name": "fm", "optional": false } },
        { "secretRef": { "name": "fs", "optional": true } },
    ]);
    let found = named(json!({
        "imagePullSecrets": [{ "name": "login" }],
        "containers": [{ "name": "c", "env": env, "envFrom": from }],
        "volumes": [
            { "name": "a", "configMap": { "name": "vm", "items": items, "optional": true } },
            { "name": "b", "secret": { "secretName": "vs" } },
            { "name": "c", "projected": { "sources": sources } },
            { "name": "d", "emptyDir": {} },
        ],
    }));
    let want = [
        "Secret login",
        "ConfigMap vm?",
        "ConfigMap vm[k]?",
        "Secret vs",
        "ConfigMap pm?",
        "Secret ps",
        "Secret ps[k]",
        "ConfigMap fm",
        "Secret fs?",
        "ConfigMap em[k]",
        "Secret es[k]?",
    ];
    assert_eq!(found, want);
    assert_eq!(references(&Pod::default()), []);
}

#[test]
fn a_pod_references_objects_of_its_own_namespace() {
    let mut pod = pod(json!({ "containers": [], "volumes": [
        { "name": "v", "configMap": { "name": "m", "optional": true } },
    ]}));
    pod.metadata.namespace = Some("here".to_owned());
    let rows = [
        (ObjectKind::ConfigMap, "m", "here", true),
        (ObjectKind::Secret, "m", "here", false),
        (ObjectKind::ConfigMap, "v", "here", false),
        (ObjectKind::ConfigMap, "m", "there", false),
    ];
    for (kind, name, namespace, used) in rows {
        let name = FullName { name: name.to_owned(), namespace: namespace.to_owned() };
        let object = ObjectName { kind, name };
        assert_eq!(object.is_used_by(&pod), used, "{object:?}");
    }
}
