//! Tokens: bound to their pod, replaced in time, used until they expire when there are no newer ones.

use oarsman_core::ids::PodUid;
use oarsman_core::token::TokenRequestKey;

use super::*;
use crate::ClusterError;

/// A pod that has a token for the API server, and one for a vault.
fn with_tokens(uid: &str) -> Pod {
    let token = |path: &str, audience: Option<&str>, seconds: i64| {
        let of = json!({ "path": path, "audience": audience, "expirationSeconds": seconds });
        json!({ "serviceAccountToken": of })
    };
    let sources = json!([token("token", None, 3600), token("vault", Some("vault"), 600)]);
    let mut pod = pod(uid, &json!([{ "name": "v", "projected": { "sources": sources } }]));
    pod.spec.as_mut().unwrap().service_account_name = Some("robot".to_owned());
    pod
}

fn request_key(audience: &str, seconds: i64) -> TokenRequestKey {
    TokenRequestKey { audience: audience.to_owned(), seconds }
}

/// The token for the API server.
async fn token(objects: &ObjectManager, pod: &Pod) -> Result<String, String> {
    objects.lookup(pod).await.unwrap().tokens[&request_key("", 3600)].clone()
}

#[tokio::test(start_paused = true)]
async fn tokens_are_bound_to_the_pod_and_asked_for_once() {
    let server = FakeApiServer::default();
    let objects = objects(&server);
    let first = token(&objects, &with_tokens("a")).await.unwrap();
    assert_eq!(token(&objects, &with_tokens("a")).await.unwrap(), first);
    let asked = server.asked();
    let bound = json!({ "apiVersion": "v1", "kind": "Pod", "name": "web-a", "uid": "a" });
    let plain = json!({ "boundObjectRef": bound, "expirationSeconds": 3600 });
    let vault =
        json!({ "boundObjectRef": bound, "expirationSeconds": 600, "audiences": ["vault"] });
    assert_eq!(asked.len(), 2);
    assert!(asked.contains(&plain) && asked.contains(&vault), "{asked:?}");
    assert!(server.log().contains(&"token namespaces/ns/serviceaccounts/robot/token".to_owned()));
    assert_ne!(token(&objects, &with_tokens("b")).await.unwrap(), first, "another pod has its own");
}

#[tokio::test(start_paused = true)]
async fn a_token_is_refreshed_after_four_fifths_of_its_lifetime() {
    let server = FakeApiServer::default();
    let objects = objects(&server);
    let mut changes = objects.changes();
    let first = token(&objects, &with_tokens("a")).await.unwrap();
    server.asked();
    seconds(469).await;
    assert_eq!(server.asked().len(), 0);
    seconds(12).await;
    assert_eq!(server.asked().len(), 1, "the vault's");
    assert_eq!(told(&mut changes).await, [ObjectChange::Token(PodUid::from("a"))]);
    assert_eq!(token(&objects, &with_tokens("a")).await.unwrap(), first);
    seconds(2880 - 480).await;
    assert_ne!(token(&objects, &with_tokens("a")).await.unwrap(), first);
    assert_eq!(told(&mut changes).await, [ObjectChange::Token(PodUid::from("a"))]);
}

#[tokio::test(start_paused = true)]
async fn an_old_token_is_used_until_it_expires() {
    let server = FakeApiServer::default();
    let objects = objects(&server);
    let first = token(&objects, &with_tokens("a")).await.unwrap();
    server.fail_with(503);
    seconds(590).await;
    assert_eq!(objects.lookup(&with_tokens("a")).await.unwrap().tokens.len(), 2);
    assert_eq!(token(&objects, &with_tokens("a")).await.unwrap(), first);
    seconds(100).await;
    let error = objects.lookup(&with_tokens("a")).await.unwrap_err();
    assert!(matches!(error, ClusterError::Unavailable { call: "token", .. }), "{error}");
    let mut changes = objects.changes();
    server.recover();
    seconds(60).await;
    assert_eq!(told(&mut changes).await, [ObjectChange::Token(PodUid::from("a"))]);
    assert_eq!(token(&objects, &with_tokens("a")).await.unwrap(), first);
}

#[tokio::test(start_paused = true)]
async fn a_refused_token_is_reported_with_its_reason() {
    let server = FakeApiServer::default();
    let objects = objects(&server);
    let plain = pod("p", &json!([]));
    objects.lookup(&plain).await.unwrap();
    let gone = "serviceaccount ns/robot is not there any more";
    for (code, said) in [(403, "the answer is 403"), (404, gone)] {
        server.fail_with(code);
        let why = token(&objects, &with_tokens(&code.to_string())).await.unwrap_err();
        assert_eq!(why, said);
    }
}

#[tokio::test(start_paused = true)]
async fn no_token_is_requested_for_a_pod_that_has_ended() {
    let server = FakeApiServer::default();
    let objects = objects(&server);
    token(&objects, &with_tokens("a")).await.unwrap();
    server.asked();
    objects.forget(&PodUid::from("a"));
    seconds(7200).await;
    assert_eq!(server.asked().len(), 0);
}

/// Row C22 of docs/security.md: the first of them ended the task with a panic, the other one never rested.
#[tokio::test(start_paused = true)]
async fn a_lifetime_of_a_million_years_and_one_of_nothing_are_lifetimes() {
    let of = |seconds: i64| {
        let token = json!({ "path": "token", "expirationSeconds": seconds });
        let sources = json!([{ "serviceAccountToken": token }]);
        pod("a", &json!([{ "name": "v", "projected": { "sources": sources } }]))
    };
    for (lifetime, most) in [(i64::MAX, 1), (0, 7), (-1, 7)] {
        let server = FakeApiServer::default();
        let objects = objects(&server);
        let found = objects.lookup(&of(lifetime)).await.unwrap();
        assert!(found.tokens[&request_key("", lifetime)].is_ok(), "{lifetime}");
        seconds(60).await;
        let asked = server.asked().len();
        assert!((1..=most).contains(&asked), "{lifetime}: {asked} requests in a minute");
    }
}
