//! What makes a manifest a pod of this node.

mod adoption;
mod references;

use k8s_openapi::api::core::v1::{Container, PodSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use proptest::prelude::*;

use super::*;

fn manifest() -> Pod {
    let app =
        Container { name: "app".to_owned(), image: Some("app:1".to_owned()), ..Default::default() };
    Pod {
        metadata: ObjectMeta { name: Some("web".to_owned()), ..Default::default() },
        spec: Some(PodSpec { containers: vec![app], ..Default::default() }),
        status: None,
    }
}

fn file(path: &str) -> ManifestOrigin {
    ManifestOrigin::File(path.to_owned())
}

fn prepared(pod: Pod) -> Pod {
    prepare(pod, &file("/etc/pods/web.yaml"), "Node-1", StaticPodNaming::OfNode).unwrap()
}

#[test]
fn a_manifest_becomes_a_pod_of_this_node() {
    let pod = prepared(manifest());
    assert_eq!(pod.metadata.name.as_deref(), Some("web-node-1"), "lower case");
    assert_eq!(pod.metadata.namespace.as_deref(), Some("default"));
    assert_eq!(pod.spec().unwrap().node_name.as_deref(), Some("Node-1"), "as it is");
    assert_eq!(pod.status.as_ref().unwrap().phase.as_deref(), Some("Pending"));
    assert_eq!(pod.annotation(HASH_ANNOTATION), Some(pod.uid().as_str()));
}

#[test]
fn the_uid_of_a_manifest_is_kept() {
    let mut given = manifest();
    given.metadata.uid = Some("given".to_owned());
    given.metadata.namespace = Some("kube-system".to_owned());
    let pod = prepared(given);
    assert_eq!(pod.uid().as_str(), "given");
    assert_eq!(pod.annotation(HASH_ANNOTATION), Some("given"));
    assert_eq!(pod.metadata.namespace.as_deref(), Some("kube-system"));
}

#[test]
fn a_manifest_without_a_name_is_refused() {
    for name in [None, Some(String::new())] {
        let mut pod = manifest();
        pod.metadata.name = name;
        let error =
            prepare(pod, &file("/etc/pods/web.yaml"), "node", StaticPodNaming::OfNode).unwrap_err();
        let want = "the pod in /etc/pods/web.yaml has no name: set metadata.name";
        assert_eq!(error.to_string(), want);
    }
}

#[test]
fn only_pods_from_files_stay_when_the_node_has_problems() {
    let tolerations = |origin| {
        let pod = prepare(manifest(), &origin, "node", StaticPodNaming::OfNode).unwrap();
        pod.spec.unwrap().tolerations.unwrap_or_default()
    };
    let all = Toleration {
        operator: Some("Exists".to_owned()),
        effect: Some("NoExecute".to_owned()),
        ..Default::default()
    };
    assert_eq!(tolerations(file("/web.yaml")), [all]);
    assert_eq!(tolerations(ManifestOrigin::Url("http://host/".to_owned())), []);
}

#[test]
fn a_toleration_of_the_same_taints_is_replaced_and_others_are_kept() {
    let toleration = |key: Option<&str>, seconds| Toleration {
        key: key.map(str::to_owned),
        operator: Some("Exists".to_owned()),
        effect: Some("NoExecute".to_owned()),
        toleration_seconds: seconds,
        ..Default::default()
    };
    let mut pod = manifest();
    let given = vec![toleration(Some(""), Some(5)), toleration(Some("disk"), None)];
    pod.spec.as_mut().unwrap().tolerations = Some(given);
    let got = prepared(pod).spec.unwrap().tolerations.unwrap();
    assert_eq!(got, [toleration(Some("disk"), None), toleration(None, None)]);
}

#[test]
fn a_made_uid_follows_content_node_and_place() {
    let uid =
        |pod, origin, node| prepare(pod, &origin, node, StaticPodNaming::OfNode).unwrap().uid();
    let base = uid(manifest(), file("/a"), "n");
    assert_eq!(base, uid(manifest(), file("/a"), "n"), "the same again");
    let mut edited = manifest();
    edited.spec.as_mut().unwrap().containers[0].args = Some(vec!["-v".to_owned()]);
    let others = [
        ("content", uid(edited, file("/a"), "n")),
        ("node", uid(manifest(), file("/a"), "m")),
        ("path", uid(manifest(), file("/b"), "n")),
        ("url", uid(manifest(), ManifestOrigin::Url("/a".to_owned()), "n")),
    ];
    for (name, other) in others {
        assert_ne!(base, other, "{name}");
    }
}

#[test]
fn this_uid_has_been_given_out_and_must_not_change() {
    let uid = prepare(manifest(), &file("/etc/pods/web.yaml"), "node-1", StaticPodNaming::OfNode)
        .unwrap()
        .uid();
    assert_eq!(uid.as_str(), "eeb49077fbf7c8a308291495acaa1bef");
}

proptest! {
    #[test]
    fn a_made_uid_is_32_lower_case_hex_digits(name in "[a-z]{1,20}", node in "[a-z0-9]{1,9}") {
        let mut pod = manifest();
        pod.metadata.name = Some(name);
        let uid = prepare(pod, &file("/a"), &node, StaticPodNaming::OfNode).unwrap().uid();
        prop_assert_eq!(uid.as_str().len(), 32);
        prop_assert!(uid.as_str().chars().all(|c| matches!(c, '0'..='9' | 'a'..='f')));
    }
}
