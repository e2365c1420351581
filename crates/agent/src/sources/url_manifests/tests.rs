//! Responses of a URL one after the other, and what becomes of its pods.

use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use oarsman_core::pod::PodExt;
use serde_json::{Value, json};

use super::*;
use crate::sources::manifest_reader::{PodOrListReader, with_kind};
use oarsman_net::{Scheme, Trust};

const URL: &str = "http://web:80/pods";

fn request() -> HttpGet {
    HttpGet {
        scheme: Scheme::Http,
        host: "web".to_owned(),
        port: 80,
        path_and_query: "/pods?token=secret".to_owned(),
        headers: Vec::new(),
        timeout: Duration::from_secs(10),
        body_limit: 1 << 20,
        trust: Trust::System,
    }
}

fn manifests() -> UrlManifests<PodOrListReader> {
    UrlManifests::new(request().url(), PodOrListReader { node: "node".to_owned() })
}

fn answer(status: u16, body: impl Into<Vec<u8>>) -> Result<HttpResponse, NetworkError> {
    Ok(HttpResponse { status, headers: Vec::new(), body: body.into(), is_complete: true })
}

fn pod(name: &str, image: &str) -> Value {
    let containers = json!([{ "name": "main", "image": image }]);
    json!({ "metadata": { "name": name }, "spec": { "containers": containers } })
}

fn list(pods: &[Value]) -> Result<HttpResponse, NetworkError> {
    answer(200, json!({ "apiVersion": "v1", "kind": "PodList", "items": pods }).to_string())
}

fn single(name: &str) -> Result<HttpResponse, NetworkError> {
    answer(200, with_kind(pod(name, "a"), "Pod").to_string())
}

/// The names in the set, if one is sent, and the messages.
fn apply(
    manifests: &mut UrlManifests<PodOrListReader>,
    answer: Result<HttpResponse, NetworkError>,
) -> (Option<String>, String) {
    let ManifestUpdate { items: pods, messages } = manifests.update(&request(), answer);
    let name = |pod: &Pod| pod.metadata.name.clone().unwrap();
    let names = pods.map(|pods| pods.iter().map(name).collect::<Vec<_>>().join(" "));
    (names, messages.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"))
}

fn some_names(names: &str) -> Option<String> {
    Some(names.to_owned())
}

#[test]
fn a_pod_or_a_list_of_them_becomes_pods_of_this_node() {
    let rows = [
        ("a pod", single("a"), "a-node"),
        ("a list", list(&[pod("b", "i"), pod("a", "i")]), "b-node a-node"),
        ("an empty list", list(&[]), ""),
        ("a list of null", answer(200, "apiVersion: v1\nkind: PodList\nitems:\n"), ""),
        (
            "yaml",
            answer(
                200,
                "apiVersion: v1\nkind: Pod\nmetadata: {name: plain}\nspec: {containers: [{name: a, image: b}]}",
            ),
            "plain-node",
        ),
    ];
    for (name, answered, want) in rows {
        assert_eq!(apply(&mut manifests(), answered).0, some_names(want), "{name}");
    }
}

#[test]
fn pods_from_a_url_have_no_toleration_of_their_own() {
    let pods = manifests().update(&request(), single("a")).items.unwrap();
    assert_eq!(pods[0].spec().unwrap().tolerations, None);
}

#[test]
fn an_unchanged_answer_is_no_update() {
    let mut manifests = manifests();
    apply(&mut manifests, single("a"));
    assert_eq!(apply(&mut manifests, single("a")), (None, String::new()));
    let broken = || answer(200, "nonsense: [");
    assert!(apply(&mut manifests, broken()).1.starts_with("it is not YAML"));
    assert_eq!(apply(&mut manifests, broken()), (None, String::new()), "said once");
}

#[test]
fn after_any_failure_the_last_good_pods_are_kept() {
    let url = URL.to_owned();
    let cut =
        HttpResponse { status: 200, headers: Vec::new(), body: b"x".to_vec(), is_complete: false };
    let rows = [
        (
            "away",
            Err(NetworkError::TimedOut { url, limit: Duration::from_secs(10) }),
            "no answer from http://web:80/pods within 10s; what came from there goes on",
        ),
        ("ill", answer(500, "oh"), "it answered with status 500 instead of 200; what"),
        ("moved", answer(302, ""), "it answered with status 302 and points elsewhere"),
        ("cut", Ok(cut), "what http://web:80/pods answered is longer than 1048576 bytes; what"),
        ("nonsense", answer(200, "nonsense: ["), "it is not YAML: "),
        ("a login page", answer(200, "<html>hello</html>"), "this is kind \"\""),
        (
            "something else",
            answer(200, "apiVersion: v1\nkind: Service"),
            "this is kind \"Service\"",
        ),
    ];
    for (name, answered, want) in rows {
        let mut manifests = manifests();
        apply(&mut manifests, list(&[pod("a", "i"), pod("b", "i")]));
        let (names, summary) = apply(&mut manifests, answered);
        assert_eq!(names, None, "{name}");
        assert!(summary.starts_with(want), "{name}: {summary}");
        assert!(!summary.contains("secret"), "{name}: {summary}");
        assert!(summary.contains("go on") || summary.contains("goes on"), "{name}: {summary}");
        let (names, _) = apply(&mut manifests, list(&[pod("a", "i")]));
        assert_eq!(names, some_names("a-node"), "{name}: and then it works again");
    }
}

#[test]
fn no_set_is_sent_before_the_first_good_answer() {
    let mut manifests = manifests();
    for bad in [answer(500, ""), answer(200, "nonsense: ["), answer(404, "")] {
        assert_eq!(apply(&mut manifests, bad).0, None);
    }
    assert_eq!(apply(&mut manifests, single("a")).0, some_names("a-node"));
}

#[test]
fn an_empty_answer_means_no_pods_and_is_logged_as_an_error() {
    let mut manifests = manifests();
    apply(&mut manifests, single("a"));
    let (names, summary) = apply(&mut manifests, answer(200, ""));
    assert_eq!(names, some_names(""));
    assert_eq!(summary, "it answered with nothing, so there are no pods from there");
    assert_eq!(apply(&mut manifests, answer(200, "")).0, None, "told once");
    assert_eq!(apply(&mut manifests, single("a")).0, some_names("a-node"));
}

#[test]
fn a_broken_pod_of_a_list_affects_no_other_pod() {
    let mut manifests = manifests();
    apply(&mut manifests, list(&[pod("a", "1"), pod("b", "1")]));
    let broken = json!({ "metadata": { "name": "a" }, "spec": {} });
    let (names, summary) = apply(&mut manifests, list(&[broken, pod("b", "2"), json!(5)]));
    assert_eq!(names, some_names("a-node b-node"));
    assert!(summary.contains("(what it held before goes on)"), "{summary}");
    assert!(summary.contains("(nothing comes of it)"), "{summary}");
    assert_eq!(
        apply(&mut manifests, list(&[pod("b", "2")])).0,
        some_names("b-node"),
        "gone is gone"
    );
    assert_eq!(
        apply(&mut manifests, list(&[json!(5)])).0,
        some_names(""),
        "also where the last is broken"
    );
}

#[test]
fn after_three_failures_nothing_is_logged_until_it_answers_again() {
    let mut manifests = manifests();
    let fail = |manifests: &mut UrlManifests<PodOrListReader>| {
        manifests.update(&request(), answer(500, "")).messages.remove(0)
    };
    let messages: Vec<ManifestMessage> = (0..5).map(|_| fail(&mut manifests)).collect();
    let weights: Vec<MessageLevel> = messages.iter().map(|message| message.level).collect();
    let (loud, quiet) = (MessageLevel::Error, MessageLevel::Debug);
    assert_eq!(weights, [loud, loud, loud, quiet, quiet]);
    assert!(
        messages[2].summary.ends_with("(said no more until it changes)"),
        "{}",
        messages[2].summary
    );
    assert!(apply(&mut manifests, single("a")).1.ends_with("it answers again, after 5 failures"));
    assert_eq!(fail(&mut manifests).level, loud);
}
