//! Which program is asked for what, and what becomes of its answer.

mod tokens;

use serde_json::{Value, json};

use super::*;
use crate::image::keyring::Keyring;
use crate::time::Mono;

const API_VERSIONS: &str = "credentialprovider.kubelet.k8s.io/v1";

fn entry(name: &str, images: &[&str]) -> Value {
    json!({ "name": name, "matchImages": images, "defaultCacheDuration": "10m", "apiVersion": API_VERSIONS })
}

fn file(entries: &[Value]) -> Value {
    json!({ "apiVersion": "kubelet.config.k8s.io/v1", "kind": "CredentialProviderConfig", "providers": entries })
}

fn provider(images: &[&str]) -> CredentialProvider {
    providers([&file(&[entry("p", images)])], true).unwrap().remove(0)
}

#[test]
fn an_image_is_matched_part_by_part_of_its_host() {
    let rows = [
        ("reg.io", "reg.io/team/app:1", true),
        ("reg.io", "eu.reg.io/app", false),
        ("*.reg.io", "eu.reg.io/app", true),
        ("*.reg.io", "reg.io/app", false),
        ("*.*.reg.io", "a.b.reg.io/app", true),
        ("*.dkr.ecr.*.amazonaws.com", "1.dkr.ecr.eu-west-1.amazonaws.com/app", true),
        ("reg.io:5000", "reg.io:5000/app", true),
        ("reg.io", "reg.io:5000/app", false),
        ("reg.io:5000", "reg.io/app", false),
        ("reg.io/team", "reg.io/team/app@sha256:00", true),
        ("reg.io/team", "reg.io/teams/app", true),
        ("reg.io/team", "reg.io/other", false),
        ("docker.io", "busybox", true),
        ("docker.io/library", "busybox:1", true),
        ("127.0.0.1:5000", "127.0.0.1:5000/private:1", true),
    ];
    for (pattern, image, matches_image) in rows {
        assert_eq!(
            provider(&["other.io", pattern]).matches_image(image),
            matches_image,
            "{pattern} for {image}"
        );
    }
}

#[test]
fn a_config_file_names_providers_and_its_errors_are_reported() {
    let mut whole = entry("b", &["reg.io"]);
    whole["args"] = json!(["--fast"]);
    whole["env"] = json!([{ "name": "REGION", "value": "eu" }]);
    let found = providers([&file(&[entry("a", &["x.io"])]), &file(&[whole])], true).unwrap();
    assert_eq!(found.iter().map(|one| one.name.as_str()).collect::<Vec<_>>(), ["a", "b"]);
    assert_eq!(found[1].args, ["--fast"]);
    assert_eq!(found[1].env, [("REGION".to_owned(), "eu".to_owned())]);
    assert_eq!(found[1].default_cache, Duration::from_secs(600));

    let with = |field: &str, value: Value| {
        let mut entry = entry("p", &["reg.io"]);
        entry[field] = value;
        file(&[entry])
    };
    let rows = [
        (json!({ "kind": "Pod" }), "no CredentialProviderConfig"),
        (file(&[]), "names no provider"),
        (file(&[entry("a", &["x"]), entry("a", &["y"])]), "twice"),
        (with("name", json!("../sh")), "plain name"),
        (with("matchImages", json!([])), "matchImages"),
        (with("apiVersion", json!("v7")), "apiVersion \"v7\""),
        (with("defaultCacheDuration", Value::Null), "defaultCacheDuration"),
        (with("defaultCacheDuration", json!("soon")), "defaultCacheDuration"),
        (with("matchImage", json!([])), "matchImage"),
    ];
    for (file, told) in rows {
        let error = providers([&file], true).unwrap_err().to_string();
        assert!(error.contains(told), "{error} does not say {told}");
    }
}

#[test]
fn a_program_is_asked_by_the_repository_and_its_answer_is_read() {
    let provider = provider(&["reg.io"]);
    let asked: Value =
        serde_json::from_str(&CredentialProviderRequest::new(&provider, "busybox:1", None).text)
            .unwrap();
    let image = "docker.io/library/busybox";
    assert_eq!(
        asked,
        json!({ "kind": "CredentialProviderRequest", "apiVersion": API_VERSIONS, "image": image })
    );

    let answer = |extra: Value| {
        let mut answer = json!({
            "kind": "CredentialProviderResponse", "apiVersion": API_VERSIONS, "cacheKeyType": "Registry",
            "auth": { "reg.io": { "username": "u", "password": "s3cret" } },
        });
        answer.as_object_mut().unwrap().extend(extra.as_object().unwrap().clone());
        CredentialProviderResponse::parse(&provider, answer.to_string().as_bytes(), None)
    };
    let read = answer(json!({})).unwrap();
    assert_eq!(read.keyring.for_image("reg.io/a")[0].auth.password, "s3cret");
    assert_eq!((read.coverage, read.counts), (Coverage::Registry, Duration::from_secs(600)));
    assert_eq!(answer(json!({ "cacheDuration": "0s" })).unwrap().counts, Duration::ZERO);
    for wrong in [
        json!({ "kind": "Pod" }),
        json!({ "cacheDuration": "s3cret" }),
        json!({ "cacheKeyType": "s3cret" }),
    ] {
        let error = answer(wrong).unwrap_err().to_string();
        assert!(!error.contains("s3cret"), "{error}");
    }
    assert!(CredentialProviderResponse::parse(&provider, b"s3cret", None).is_err());
}

#[test]
fn a_response_is_cached_for_its_coverage_and_its_duration() {
    let at = |seconds| Mono(Duration::from_secs(seconds));
    let provider = provider(&["reg.io"]);
    let keyring: Keyring =
        Keyring::parse(r#"{"reg.io": {"username": "u", "password": "p"}}"#).unwrap();
    let rows = [
        (Coverage::Image, "reg.io/a:2", true),
        (Coverage::Image, "reg.io/b", false),
        (Coverage::Registry, "reg.io/b", true),
        (Coverage::Registry, "other.io/b", false),
        (Coverage::Global, "other.io/b", true),
    ];
    for (coverage, image, counts) in rows {
        let mut cache = ProviderCache::default();
        let answer = CredentialProviderResponse {
            keyring: keyring.clone(),
            coverage,
            counts: Duration::from_secs(60),
        };
        let about = |image| ProviderQuestion { provider: &provider, image, account: None };
        cache.keep(about("reg.io/a:1"), &answer, at(10));
        assert_eq!(cache.find(about(image), at(69)).is_some(), counts, "{coverage:?} {image}");
        assert!(cache.find(about(image), at(70)).is_none());
        let other = CredentialProvider { name: "other".to_owned(), ..provider.clone() };
        let about = ProviderQuestion { provider: &other, image, account: None };
        assert!(cache.find(about, at(11)).is_none());
        let never = CredentialProviderResponse { counts: Duration::ZERO, ..answer };
        cache.keep(about, &never, at(11));
        assert!(cache.find(about, at(11)).is_none());
    }
}

#[test]
fn the_hash_of_the_config_tells_contents_and_their_division_apart() {
    let files = |texts: &[&str]| {
        config_hash(&texts.iter().map(|text| text.as_bytes().to_vec()).collect::<Vec<_>>())
    };
    // Of eight bytes of the length, and the byte itself.
    let one = "sha256:3b196fd4907bedf51c3090e9835f2f7cb61e7ee1b2299ea3b8fed9b4183a822a";
    assert_eq!(files(&["a"]), one);
    assert_ne!(files(&["ab", "c"]), files(&["a", "bc"]));
    assert_ne!(files(&["a"]), files(&["b"]));
}
