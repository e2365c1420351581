//! Secrets as `kubectl create secret docker-registry` makes them, and some that are unusable.

use std::sync::Arc;

use serde_json::{Value, json};

use super::*;

fn secret(name: &str, kind: &str, key: &str, text: &str) -> Value {
    let metadata = json!({ "name": name, "namespace": "ns" });
    json!({ "metadata": metadata, "type": kind, "stringData": { key: text } })
}

fn lookup(secrets: &[Value]) -> Lookup {
    let mut lookup = Lookup::default();
    for secret in secrets {
        let name = secret["metadata"]["name"].as_str().unwrap().to_owned();
        let name = FullName { name, namespace: "ns".to_owned() };
        lookup.secrets.insert(name, Arc::new(serde_json::from_value(secret.clone()).unwrap()));
    }
    lookup
}

fn pod(secrets: &[&str]) -> Pod {
    let secrets: Vec<Value> = secrets.iter().map(|name| json!({ "name": name })).collect();
    let spec = json!({ "containers": [], "imagePullSecrets": secrets });
    let metadata = json!({ "name": "web", "namespace": "ns" });
    serde_json::from_value(json!({ "metadata": metadata, "spec": spec })).unwrap()
}

fn config(registry: &str, user: &str) -> String {
    let entry = json!({ "username": user, "password": "p" });
    json!({ "auths": { registry: entry } }).to_string()
}

fn users(keyring: &Keyring, image: &str) -> Vec<String> {
    keyring.for_image(image).into_iter().map(|found| found.auth.username).collect()
}

const JSON: &str = "kubernetes.io/dockerconfigjson";

#[test]
fn all_secrets_together_open_what_each_of_them_opens() {
    let old = json!({ "reg.io": { "username": "old", "password": "p" } }).to_string();
    let secrets = [
        secret("new", JSON, ".dockerconfigjson", &config("reg.io/team", "new")),
        secret("old", "kubernetes.io/dockercfg", ".dockercfg", &old),
        secret("unused", JSON, ".dockerconfigjson", &config("reg.io", "unused")),
    ];
    let (keyring, events) = pull_secrets(&pod(&["old", "new"]), &lookup(&secrets));
    assert_eq!(events, []);
    assert_eq!(users(&keyring, "reg.io/team/app"), ["new", "old"]);
    assert_eq!(users(&keyring, "reg.io/other"), ["old"]);
    assert_eq!(pull_secrets(&pod(&[]), &lookup(&secrets)), (Keyring::default(), Vec::new()));
}

#[test]
fn an_unusable_pull_secret_is_an_event_and_the_others_are_still_used() {
    let secrets = [
        secret("good", JSON, ".dockerconfigjson", &config("reg.io", "good")),
        secret("opaque", "Opaque", ".dockerconfigjson", &config("reg.io", "opaque")),
        secret("keyless", JSON, "config.json", "{}"),
        secret("broken", JSON, ".dockerconfigjson", "s3cret"),
    ];
    let named = ["gone", "opaque", "keyless", "broken", "good", "lost"];
    let (keyring, events) = pull_secrets(&pod(&named), &lookup(&secrets));
    assert_eq!(users(&keyring, "reg.io/a"), ["good"]);
    let said: Vec<&str> = events.iter().map(|event| event.message.as_str()).collect();
    assert_eq!(
        said[0],
        "Unable to retrieve some image pull secrets (gone, lost); attempting to pull the image may not succeed."
    );
    assert_eq!(
        said[1],
        "Unable to use image pull secret opaque: its type is \"Opaque\": make it kubernetes.io/dockerconfigjson or kubernetes.io/dockercfg"
    );
    assert_eq!(said[2], "Unable to use image pull secret keyless: it has no key .dockerconfigjson");
    assert!(
        said[3].contains("not a Docker configuration") && !said[3].contains("s3cret"),
        "{}",
        said[3]
    );
    assert!(events.iter().all(|event| event.reason == "FailedToRetrieveImagePullSecret"));
}
