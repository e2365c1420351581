//! Scans of a path one after the other, and what becomes of its pods.

use k8s_openapi::api::core::v1::Pod;
use oarsman_core::pod::PodExt;

use super::*;
use crate::sources::manifest_reader::SinglePodReader;
use crate::sources::scan::ManifestFileError;

const WEB: &str = "\
apiVersion: v1
kind: Pod
metadata: {name: web}
spec:
  containers:
  - {name: main, image: 'web:1'}
";

fn manifests() -> FileManifests<SinglePodReader> {
    FileManifests::new("/pods".into(), SinglePodReader { node: "node".to_owned() })
}

fn found(files: &[(&str, FileRead)]) -> Scan {
    let files = files.iter().map(|(name, found)| (Path::new("/pods").join(name), found.clone()));
    Scan::Files(files.collect())
}

fn text(text: &str) -> FileRead {
    Ok(text.as_bytes().to_vec())
}

fn named(name: &str) -> FileRead {
    text(&WEB.replace("web}", &format!("{name}}}")))
}

/// The names in the set, if one is sent.
fn names(update: &ManifestUpdate<Pod>) -> Option<Vec<String>> {
    let name = |pod: &Pod| pod.metadata.name.clone().unwrap();
    update.items.as_ref().map(|pods| pods.iter().map(name).collect())
}

fn messages_of(update: &ManifestUpdate<Pod>) -> Vec<String> {
    update.messages.iter().map(|message| format!("{}: {}", message.place, message)).collect()
}

fn some_names(names: &[&str]) -> Option<Vec<String>> {
    Some(names.iter().map(|&name| name.to_owned()).collect())
}

#[test]
fn files_become_pods_of_this_node_in_the_order_of_their_names() {
    let mut manifests = manifests();
    let update =
        manifests.update(found(&[("b.yaml", named("second")), ("a.yaml", named("first"))]));
    assert_eq!(names(&update), some_names(&["first-node", "second-node"]));
    let want = [
        "/pods/a.yaml: it holds pod first-node_default",
        "/pods/b.yaml: it holds pod second-node_default",
    ];
    assert_eq!(messages_of(&update), want);
    let pod = &update.items.unwrap()[0];
    let spec = pod.spec().unwrap();
    assert_eq!(spec.node_name.as_deref(), Some("node"));
    assert_eq!(spec.restart_policy.as_deref(), Some("Always"), "with defaults");
    assert_eq!(
        spec.tolerations.as_ref().map(Vec::len),
        Some(1),
        "stays when the node has problems"
    );
}

#[test]
fn an_unchanged_scan_is_no_update() {
    let mut manifests = manifests();
    let files = [("a", named("a")), ("b", text("nonsense: ["))];
    manifests.update(found(&files));
    let again = manifests.update(found(&files));
    assert_eq!((names(&again), messages_of(&again)), (None, vec![]));
}

#[test]
fn the_first_scan_always_sends_a_set() {
    for first in [Scan::Missing, found(&[]), found(&[("a", text("nonsense: ["))])] {
        assert_eq!(names(&manifests().update(first)), some_names(&[]));
    }
}

#[test]
fn an_unreadable_path_sends_no_set() {
    let mut manifests = manifests();
    let denied = || Scan::Unreadable("permission denied".to_owned());
    let first = manifests.update(denied());
    let want = "/pods: it cannot be read: permission denied; let the agent read it (what came from there goes on)";
    assert_eq!((names(&first), messages_of(&first)), (None, vec![want.to_owned()]));
    assert_eq!(messages_of(&manifests.update(denied())), [""; 0], "said once");
    let parsed_pod = manifests.update(found(&[("a", named("a"))]));
    assert_eq!(names(&parsed_pod), some_names(&["a-node"]));
    assert_eq!(messages_of(&parsed_pod)[0], "/pods: it can be read now");
    assert_eq!(names(&manifests.update(denied())), None, "what was there stays");
    assert_eq!(
        names(&manifests.update(found(&[("a", named("a"))]))),
        None,
        "and nothing has changed"
    );
}

#[test]
fn a_missing_path_removes_its_pods_and_is_reported_once() {
    let mut manifests = manifests();
    manifests.update(found(&[("a", named("a"))]));
    let gone = manifests.update(Scan::Missing);
    let want = [
        "/pods: it does not exist: there are no pods from there",
        "/pods/a: the file is gone, and pod a-node_default with it",
    ];
    assert_eq!(
        (names(&gone), messages_of(&gone)),
        (some_names(&[]), want.map(str::to_owned).to_vec())
    );
    let still = manifests.update(Scan::Missing);
    assert_eq!((names(&still), messages_of(&still)), (None, vec![]));
}

#[test]
fn a_broken_file_keeps_its_last_good_pod() {
    let no_image = WEB.replace(", image: 'web:1'", "");
    let two = format!("{WEB}---\n{WEB}");
    let api = WEB.replace("spec:\n", "spec:\n  serviceAccountName: mine\n");
    let rows: [(&str, FileRead, &str); 12] = [
        ("empty", text(""), "it is empty or has nothing but comments"),
        ("half-written", text("apiVersion: v1\nkind: Pod\nmetadata: {name"), "it is not YAML: "),
        ("half of it", text("apiVersion: v1\nkind: Pod\n"), "the pod in /pods/web has no name"),
        ("binary", Ok(vec![0x7f, 0, 1]), "it is not text: byte 2"),
        ("something else", text("apiVersion: v1\nkind: Service\n"), "this is kind \"Service\""),
        ("a list", text("apiVersion: v1\nkind: PodList\nitems: []"), "this is kind \"PodList\""),
        ("not valid", text(&no_image), "the pod is not valid: spec.containers[0].image: "),
        ("two pods", text(&two), "it has 2 documents"),
        ("needs a server", text(&api), "static pods may not reference serviceaccounts"),
        (
            "circle",
            Err(ManifestFileError::LinkLoop),
            "it is a symbolic link that leads back to itself",
        ),
        ("too long", Err(ManifestFileError::TooLong), "it has more than 10485760 bytes"),
        ("io", Err(ManifestFileError::Unreadable("EIO".to_owned())), "it cannot be read: EIO"),
    ];
    for (name, broken, want) in rows {
        let mut manifests = manifests();
        manifests.update(found(&[("web", named("web")), ("other", named("other"))]));
        let update = manifests.update(found(&[("web", broken.clone()), ("other", named("other"))]));
        assert_eq!(names(&update), None, "{name}: nothing has changed");
        let message = messages_of(&update).pop().unwrap();
        assert!(message.starts_with(&format!("/pods/web: {want}")), "{name}: {message}");
        assert!(message.ends_with("(what it held before goes on)"), "{name}: {message}");
        let again = manifests.update(found(&[("web", broken.clone()), ("other", named("other"))]));
        assert_eq!(messages_of(&again), [""; 0], "{name}: said once");
        let other =
            manifests.update(found(&[("web", broken.clone()), ("other", named("changed"))]));
        assert_eq!(names(&other), some_names(&["changed-node", "web-node"]), "{name}: kept");
        let mended = manifests.update(found(&[("web", named("web")), ("other", named("changed"))]));
        assert_eq!(names(&mended), None, "{name}: it is what it was");
        assert_eq!(messages_of(&mended), ["/pods/web: it holds pod web-node_default"], "{name}");
        let gone = manifests.update(found(&[("other", named("changed"))]));
        assert_eq!(names(&gone), some_names(&["changed-node"]), "{name}: gone");
    }
}

#[test]
fn a_file_that_was_never_valid_has_no_pod_and_affects_no_other() {
    let mut manifests = manifests();
    let broken = Err(ManifestFileError::Other("a directory"));
    let update = manifests.update(found(&[("a", broken), ("b", named("b"))]));
    assert_eq!(names(&update), some_names(&["b-node"]));
    let want = "/pods/a: it is a directory, and only files are read here; move it elsewhere (nothing comes of it)";
    assert_eq!(messages_of(&update)[0], want);
}

#[test]
fn an_edit_replaces_the_pod_and_a_comment_does_not() {
    let mut manifests = manifests();
    let uid = |update: &ManifestUpdate<Pod>| update.items.as_ref().unwrap()[0].uid();
    let first = uid(&manifests.update(found(&[("a", text(WEB))])));
    let commented = manifests.update(found(&[("a", text(&format!("# said\n{WEB}")))]));
    assert_eq!(names(&commented), None);
    let edited = uid(&manifests.update(found(&[("a", text(&WEB.replace("web:1", "web:2")))])));
    assert_ne!(edited, first);
}

#[test]
fn unknown_fields_are_reported_and_ignored() {
    let slip = WEB.replace("spec:\n", "spec:\n  hostNetwrk: true\n");
    let update = manifests().update(found(&[("a", text(&slip))]));
    assert_eq!(names(&update), some_names(&["web-node"]));
    let want =
        "/pods/a: no pod has these fields, so they do nothing: spec.hostNetwrk; correct them";
    assert_eq!(messages_of(&update)[1], want);
}

#[test]
fn an_octal_mode_is_read_as_kubectl_reads_it() {
    let mode = WEB.to_owned() + "  volumes: [{name: a, downwardAPI: {defaultMode: 0400}}]\n";
    let update = manifests().update(found(&[("a", text(&mode))]));
    let pods = update.items.unwrap();
    let volume = &pods[0].spec().unwrap().volumes.as_ref().unwrap()[0];
    assert_eq!(volume.downward_api.as_ref().unwrap().default_mode, Some(256));
}

#[test]
fn broken_manifests_are_reported_until_fixed() {
    let mut manifests = manifests();
    manifests.update(Scan::Missing);
    assert_eq!(manifests.source_report().broken[0].place, "/pods");
    manifests.update(found(&[("a.yaml", named("a")), ("b.yaml", text("}"))]));
    manifests.update(found(&[("a.yaml", text("{")), ("b.yaml", text("}"))]));
    let some_names = manifests.source_report();
    let broken: Vec<_> =
        some_names.broken.iter().map(|it| (it.place.as_str(), it.goes_on)).collect();
    assert_eq!(broken, [("/pods/a.yaml", true), ("/pods/b.yaml", false)]);
    let places: Vec<_> = some_names.places.iter().map(|(pod, at)| format!("{pod} {at}")).collect();
    assert_eq!(places, ["a-node_default /pods/a.yaml"]);
    manifests.update(found(&[("a.yaml", named("a"))]));
    assert_eq!(manifests.source_report().broken, []);
}
