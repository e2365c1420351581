//! Providers that get tokens of service accounts.

use std::collections::BTreeMap;

use super::*;
use crate::image::credentials::{CredentialSource, ServiceAccountCoordinates};

fn attributes() -> Value {
    json!({
        "serviceAccountTokenAudience": "reg.io", "cacheType": "ServiceAccount", "requireServiceAccount": true,
        "requiredServiceAccountAnnotationKeys": ["reg.io/role"],
        "optionalServiceAccountAnnotationKeys": ["reg.io/region"],
    })
}

fn with(token_attributes: &Value) -> Value {
    let mut entry = entry("p", &["reg.io"]);
    entry["tokenAttributes"] = token_attributes.clone();
    entry
}

fn annotations(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    pairs.iter().map(|&(key, value)| (key.to_owned(), value.to_owned())).collect()
}

fn account(uid: &str, token: &str) -> ShownServiceAccount {
    let (namespace, name) = ("ns".to_owned(), "robot".to_owned());
    ShownServiceAccount {
        coordinates: ServiceAccountCoordinates { uid: uid.to_owned(), namespace, name },
        annotations: annotations(&[("reg.io/role", "reader")]),
        token: token.to_owned(),
    }
}

#[test]
fn token_attributes_are_read_and_their_errors_are_reported() {
    let found = providers([&file(&[with(&attributes())])], true).unwrap().remove(0);
    let read = found.token_attributes.unwrap();
    assert_eq!(
        (read.audience.as_str(), read.cache_type),
        ("reg.io", TokenCacheType::ServiceAccount)
    );
    assert!(read.require_service_account);
    let (required, optional) = (&read.required_annotations, &read.optional_annotations);
    assert!(required.contains("reg.io/role") && optional.contains("reg.io/region"));

    let changed = |field: &str, value: Value| {
        let mut attributes = attributes();
        attributes[field] = value;
        file(&[with(&attributes)])
    };
    let (required, optional) =
        ("requiredServiceAccountAnnotationKeys", "optionalServiceAccountAnnotationKeys");
    let mut old = with(&attributes());
    old["apiVersion"] = json!("credentialprovider.kubelet.k8s.io/v1beta1");
    let rows = [
        (changed("serviceAccountTokenAudience", json!("")), "serviceAccountTokenAudience"),
        (changed("cacheType", Value::Null), "cacheType"),
        (changed("cacheType", json!("Pod")), "cacheType"),
        (changed("requireServiceAccount", Value::Null), "requireServiceAccount"),
        (changed("requireServiceAccount", json!(false)), "requireServiceAccount: true"),
        (changed(required, json!(["a b"])), "no key of an annotation"),
        (changed(required, json!(["a", "a"])), "twice"),
        (changed(optional, json!(["reg.io/role"])), "both required and optional"),
        (changed("audience", json!("x")), "audience"),
        (file(&[old]), "need apiVersion"),
    ];
    for (file, told) in rows {
        let error = providers([&file], true).unwrap_err().to_string();
        assert!(error.contains(told), "{error} does not say {told}");
    }
    let off = providers([&file(&[with(&attributes())])], false).unwrap_err().to_string();
    assert!(off.contains(TOKENS_GATE), "{off}");
}

#[test]
fn a_provider_is_shown_the_annotations_that_it_names_and_needs_the_required_ones() {
    let attributes = providers([&file(&[with(&attributes())])], true).unwrap().remove(0);
    let attributes = attributes.token_attributes.unwrap();
    let (role, region, other) = (("reg.io/role", "r"), ("reg.io/region", "eu"), ("other", "x"));
    let rows = [
        (annotations(&[role, region, other]), Some(annotations(&[role, region]))),
        (annotations(&[role, other]), Some(annotations(&[role]))),
        (annotations(&[region, other]), None),
    ];
    for (of_account, shown) in rows {
        assert_eq!(attributes.shown_annotations(&of_account), shown, "{of_account:?}");
    }
}

#[test]
fn a_request_holds_the_token_and_the_answer_is_the_accounts() {
    let provider = providers([&file(&[with(&attributes())])], true).unwrap().remove(0);
    let account = account("sa-1", "t0ken");
    let request = CredentialProviderRequest::new(&provider, "reg.io/a:1", Some(&account));
    assert!(!format!("{request:?} {account:?}").contains("t0ken"));
    let asked: Value = serde_json::from_str(&request.text).unwrap();
    assert_eq!(
        asked,
        json!({
            "kind": "CredentialProviderRequest", "apiVersion": API_VERSIONS, "image": "reg.io/a",
            "serviceAccountToken": "t0ken", "serviceAccountAnnotations": { "reg.io/role": "reader" },
        })
    );
    let answer = json!({
        "kind": "CredentialProviderResponse", "apiVersion": API_VERSIONS, "cacheKeyType": "Registry",
        "auth": { "reg.io": { "username": "u", "password": "p" } },
    });
    let bytes = answer.to_string();
    let rows = [
        (Some(&account), CredentialSource::ServiceAccount(account.coordinates.clone())),
        (None, CredentialSource::Node),
    ];
    for (account, source) in rows {
        let read = CredentialProviderResponse::parse(&provider, bytes.as_bytes(), account).unwrap();
        assert_eq!(read.keyring.for_image("reg.io/a")[0].source, source);
    }
}

#[test]
fn an_answer_counts_for_the_account_or_for_the_token() {
    let now = Mono(Duration::from_secs(1));
    let other_role = |account: ShownServiceAccount| ShownServiceAccount {
        annotations: annotations(&[("reg.io/role", "writer")]),
        ..account
    };
    let rows = [
        // The account of another pod, and whether the answer counts by account and by token.
        (Some(account("sa-1", "first")), true, true),
        (Some(account("sa-1", "second")), true, false),
        (Some(account("sa-2", "first")), false, false),
        (Some(other_role(account("sa-1", "first"))), false, false),
        (None, false, false),
    ];
    let answer = CredentialProviderResponse {
        keyring: Keyring::default(),
        coverage: Coverage::Global,
        counts: Duration::from_secs(60),
    };
    for (other, by_account, by_token) in rows {
        for (cache_type, counts) in [("ServiceAccount", by_account), ("Token", by_token)] {
            let mut attributes = attributes();
            attributes["cacheType"] = json!(cache_type);
            let provider = providers([&file(&[with(&attributes)])], true).unwrap().remove(0);
            let first = account("sa-1", "first");
            let about =
                |account| ProviderQuestion { provider: &provider, image: "reg.io/a", account };
            let mut cache = ProviderCache::default();
            cache.keep(about(Some(&first)), &answer, now);
            let found = cache.find(about(other.as_ref()), now).is_some();
            assert_eq!(found, counts, "{cache_type} {other:?}");
        }
    }
}
