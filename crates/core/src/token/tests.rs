//! Which tokens a pod wants, and how long each is used.

use serde_json::{Value, json};

use super::*;

fn pod(spec: &Value) -> Pod {
    let metadata = json!({ "name": "web", "namespace": "ns", "uid": "u" });
    serde_json::from_value(json!({ "metadata": metadata, "spec": spec })).unwrap()
}

#[test]
fn a_pod_wants_the_tokens_of_volumes_that_are_mounted() {
    let mount =
        json!([{ "name": "api", "mountPath": "/a" }, { "name": "other", "mountPath": "/b" }]);
    let token = |of: Value| json!({ "serviceAccountToken": of });
    let spec = json!({
        "containers": [{ "name": "c", "volumeMounts": mount }],
        "volumes": [
            { "name": "api", "projected": { "sources": [
                token(json!({ "path": "token", "expirationSeconds": 3607 })),
                { "configMap": { "name": "kube-root-ca.crt" } },
            ] } },
            { "name": "other", "projected": { "sources": [
                token(json!({ "path": "vault", "audience": "vault", "expirationSeconds": 600 })),
                token(json!({ "path": "plain" })),
            ] } },
            { "name": "unused", "projected": { "sources": [
                token(json!({ "path": "token", "expirationSeconds": 7200 })),
            ] } },
            { "name": "disk", "emptyDir": {} },
        ],
    });
    let request_key =
        |audience: &str, seconds| TokenRequestKey { audience: audience.to_owned(), seconds };
    let want =
        BTreeSet::from([request_key("", 3600), request_key("", 3607), request_key("vault", 600)]);
    assert_eq!(token_requests(&pod(&spec)), want);
    assert_eq!(token_requests(&Pod::default()), BTreeSet::new());
}

#[test]
fn a_pod_acts_as_the_account_it_names() {
    let named = |name: Value| pod(&json!({ "containers": [], "serviceAccountName": name }));
    assert_eq!(service_account_name(&named(json!("robot"))), "robot");
    assert_eq!(service_account_name(&named(json!(""))), "default");
    assert_eq!(service_account_name(&named(Value::Null)), "default");
}

#[test]
fn a_token_is_used_for_most_of_its_life_and_never_for_more_than_a_day() {
    let seconds = Duration::from_secs;
    let rows = [
        (3600, 0, seconds(2880)),
        (3600, 10_000, seconds(2870)),
        (3600, 10_001, seconds(2880)),
        (3600, 2_500, Duration::from_millis(2_877_500)),
        (600, 0, seconds(480)),
        (7 * 86_400, 0, seconds(86_400)),
        (7 * 86_400, 10_000, seconds(86_390)),
        (5, 10_000, seconds(10)),
    ];
    for (lifetime, jitter, want) in rows {
        assert_eq!(refresh_after(seconds(lifetime), jitter), want, "{lifetime} {jitter}");
    }
}
