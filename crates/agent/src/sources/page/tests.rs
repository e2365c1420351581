//! Responses of a URL one after the other, and what becomes of its pods.

use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use oarsman_core::pod::PodExt;
use serde_json::{Value, json};

use super::*;
use crate::sources::read::{PodOrList, typed};
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

fn page() -> Page<PodOrList> {
    Page::new(request().url(), PodOrList { node: "node".to_owned() })
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
    answer(200, typed(pod(name, "a"), "Pod").to_string())
}

/// The names in the set, if one is sent, and the messages.
fn heard(
    page: &mut Page<PodOrList>,
    answer: Result<HttpResponse, NetworkError>,
) -> (Option<String>, String) {
    let News { items: pods, lines } = page.turn(&request(), answer);
    let name = |pod: &Pod| pod.metadata.name.clone().unwrap();
    let names = pods.map(|pods| pods.iter().map(name).collect::<Vec<_>>().join(" "));
    (names, lines.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"))
}

fn told(names: &str) -> Option<String> {
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
        assert_eq!(heard(&mut page(), answered).0, told(want), "{name}");
    }
}

#[test]
fn pods_from_a_url_have_no_toleration_of_their_own() {
    let pods = page().turn(&request(), single("a")).items.unwrap();
    assert_eq!(pods[0].spec().unwrap().tolerations, None);
}

#[test]
fn the_same_answer_again_is_nothing_new() {
    let mut page = page();
    heard(&mut page, single("a"));
    assert_eq!(heard(&mut page, single("a")), (None, String::new()));
    let broken = || answer(200, "nonsense: [");
    assert!(heard(&mut page, broken()).1.starts_with("it is not YAML"));
    assert_eq!(heard(&mut page, broken()), (None, String::new()), "said once");
}

#[test]
fn whatever_goes_wrong_the_last_good_pods_go_on() {
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
        let mut page = page();
        heard(&mut page, list(&[pod("a", "i"), pod("b", "i")]));
        let (names, said) = heard(&mut page, answered);
        assert_eq!(names, None, "{name}");
        assert!(said.starts_with(want), "{name}: {said}");
        assert!(!said.contains("secret"), "{name}: {said}");
        assert!(said.contains("go on") || said.contains("goes on"), "{name}: {said}");
        let (names, _) = heard(&mut page, list(&[pod("a", "i")]));
        assert_eq!(names, told("a-node"), "{name}: and then it works again");
    }
}

#[test]
fn nothing_is_told_before_the_first_good_answer() {
    let mut page = page();
    for bad in [answer(500, ""), answer(200, "nonsense: ["), answer(404, "")] {
        assert_eq!(heard(&mut page, bad).0, None);
    }
    assert_eq!(heard(&mut page, single("a")).0, told("a-node"));
}

#[test]
fn an_empty_answer_means_no_pods_and_is_an_error_all_the_same() {
    let mut page = page();
    heard(&mut page, single("a"));
    let (names, said) = heard(&mut page, answer(200, ""));
    assert_eq!(names, told(""));
    assert_eq!(said, "it answered with nothing, so there are no pods from there");
    assert_eq!(heard(&mut page, answer(200, "")).0, None, "told once");
    assert_eq!(heard(&mut page, single("a")).0, told("a-node"));
}

#[test]
fn one_broken_pod_of_a_list_hides_no_other_and_loses_nothing() {
    let mut page = page();
    heard(&mut page, list(&[pod("a", "1"), pod("b", "1")]));
    let broken = json!({ "metadata": { "name": "a" }, "spec": {} });
    let (names, said) = heard(&mut page, list(&[broken, pod("b", "2"), json!(5)]));
    assert_eq!(names, told("a-node b-node"));
    assert!(said.contains("(what it held before goes on)"), "{said}");
    assert!(said.contains("(nothing comes of it)"), "{said}");
    assert_eq!(heard(&mut page, list(&[pod("b", "2")])).0, told("b-node"), "gone is gone");
    assert_eq!(heard(&mut page, list(&[json!(5)])).0, told(""), "also where the last is broken");
}

#[test]
fn after_three_failures_the_log_has_heard_enough_until_it_answers_again() {
    let mut page = page();
    let fail = |page: &mut Page<PodOrList>| page.turn(&request(), answer(500, "")).lines.remove(0);
    let lines: Vec<Line> = (0..5).map(|_| fail(&mut page)).collect();
    let weights: Vec<Weight> = lines.iter().map(|line| line.weight).collect();
    let (loud, quiet) = (Weight::Error, Weight::Detail);
    assert_eq!(weights, [loud, loud, loud, quiet, quiet]);
    assert!(lines[2].said.ends_with("(said no more until it changes)"), "{}", lines[2].said);
    assert!(heard(&mut page, single("a")).1.ends_with("it answers again, after 5 failures"));
    assert_eq!(fail(&mut page).weight, loud);
}
