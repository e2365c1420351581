//! Which pod a name finds.

use k8s_openapi::api::core::v1::Pod;

use super::*;

fn node(names: &[(&str, &str)]) -> NodeReport {
    let pods = names.iter().map(|(namespace, name)| {
        let mut pod = Pod::default();
        pod.metadata.name = Some((*name).to_owned());
        pod.metadata.namespace = Some((*namespace).to_owned());
        PodReport { pod, ..PodReport::default() }
    });
    NodeReport { node: "node".to_owned(), pods: pods.collect(), ..NodeReport::default() }
}

const PODS: [(&str, &str); 6] = [
    ("default", "web-node"),
    ("default", "web-two-node"),
    ("default", "db"),
    ("other", "db"),
    ("other", "cache-node"),
    ("default", "cache-of-web-node"),
];

#[test]
fn a_pod_is_found_by_name_namespace_short_name_and_how_it_begins() {
    let node = node(&PODS);
    let rows = [
        ("web-node", "web-node"),
        ("web", "web-node"),
        ("default/web", "web-node"),
        ("web-t", "web-two-node"),
        ("default/db", "db"),
        ("other/db", "other/db"),
        ("other/c", "other/cache-node"),
        ("cache", "other/cache-node"),
    ];
    for (typed, want) in rows {
        assert_eq!(find(&node, typed).map(display_name).as_deref(), Ok(want), "{typed}");
    }
}

#[test]
fn an_ambiguous_or_unknown_name_lists_other_names() {
    let node = node(&PODS);
    let rows = [
        ("db", "db could be several pods; name one of db, other/db"),
        ("web-", "web- could be several pods; name one of web-node, web-two-node"),
        (
            "other/web",
            "there is no pod other/web; did you mean web-node, web-two-node, db, other/db, cache-of-web-node, other/cache-node",
        ),
        (
            "wbe",
            "there is no pod wbe; did you mean db, other/db, web-node, web-two-node, cache-of-web-node, other/cache-node",
        ),
    ];
    for (typed, want) in rows {
        assert_eq!(find(&node, typed).unwrap_err().to_string(), want);
    }
    assert_eq!(find(&NodeReport::default(), "x").unwrap_err().to_string(), "there is no pod x");
}

#[test]
fn of_two_pods_of_one_name_the_first_is_found() {
    let node = node(&[("default", "web"), ("default", "web")]);
    assert!(std::ptr::eq(find(&node, "web").unwrap(), &node.pods[0]));
}
