//! Scans of a path one after the other, and what becomes of its pods.

use k8s_openapi::api::core::v1::Pod;
use oarsman_core::pod::PodExt;

use super::*;
use crate::sources::read::OnePod;
use crate::sources::scan::Trouble;

const WEB: &str = "\
apiVersion: v1
kind: Pod
metadata: {name: web}
spec:
  containers:
  - {name: main, image: 'web:1'}
";

fn shelf() -> Shelf<OnePod> {
    Shelf::new("/pods".into(), OnePod { node: "node".to_owned() })
}

fn found(files: &[(&str, Finding)]) -> Scan {
    let files = files.iter().map(|(name, found)| (Path::new("/pods").join(name), found.clone()));
    Scan::Files(files.collect())
}

fn text(text: &str) -> Finding {
    Ok(text.as_bytes().to_vec())
}

fn named(name: &str) -> Finding {
    text(&WEB.replace("web}", &format!("{name}}}")))
}

/// The names in the set, if one is sent.
fn names(news: &News<Pod>) -> Option<Vec<String>> {
    let name = |pod: &Pod| pod.metadata.name.clone().unwrap();
    news.items.as_ref().map(|pods| pods.iter().map(name).collect())
}

fn said(news: &News<Pod>) -> Vec<String> {
    news.lines.iter().map(|line| format!("{}: {}", line.place, line)).collect()
}

fn told(names: &[&str]) -> Option<Vec<String>> {
    Some(names.iter().map(|&name| name.to_owned()).collect())
}

#[test]
fn files_become_pods_of_this_node_in_the_order_of_their_names() {
    let mut shelf = shelf();
    let news = shelf.look(found(&[("b.yaml", named("second")), ("a.yaml", named("first"))]));
    assert_eq!(names(&news), told(&["first-node", "second-node"]));
    let want = [
        "/pods/a.yaml: it holds pod first-node_default",
        "/pods/b.yaml: it holds pod second-node_default",
    ];
    assert_eq!(said(&news), want);
    let pod = &news.items.unwrap()[0];
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
fn the_same_again_is_nothing_new() {
    let mut shelf = shelf();
    let files = [("a", named("a")), ("b", text("nonsense: ["))];
    shelf.look(found(&files));
    let again = shelf.look(found(&files));
    assert_eq!((names(&again), said(&again)), (None, vec![]));
}

#[test]
fn the_first_look_always_tells_a_set_so_that_the_source_is_ready() {
    for first in [Scan::Missing, found(&[]), found(&[("a", text("nonsense: ["))])] {
        assert_eq!(names(&shelf().look(first)), told(&[]));
    }
}

#[test]
fn a_path_that_cannot_be_read_tells_nothing_until_it_can() {
    let mut shelf = shelf();
    let denied = || Scan::Unreadable("permission denied".to_owned());
    let first = shelf.look(denied());
    let want = "/pods: it cannot be read: permission denied; let the agent read it (what came from there goes on)";
    assert_eq!((names(&first), said(&first)), (None, vec![want.to_owned()]));
    assert_eq!(said(&shelf.look(denied())), [""; 0], "said once");
    let readable = shelf.look(found(&[("a", named("a"))]));
    assert_eq!(names(&readable), told(&["a-node"]));
    assert_eq!(said(&readable)[0], "/pods: it can be read now");
    assert_eq!(names(&shelf.look(denied())), None, "what was there stays");
    assert_eq!(names(&shelf.look(found(&[("a", named("a"))]))), None, "and nothing has changed");
}

#[test]
fn a_path_that_is_gone_takes_its_pods_with_it_and_is_spoken_of_once() {
    let mut shelf = shelf();
    shelf.look(found(&[("a", named("a"))]));
    let gone = shelf.look(Scan::Missing);
    let want = [
        "/pods: it does not exist: there are no pods from there",
        "/pods/a: the file is gone, and pod a-node_default with it",
    ];
    assert_eq!((names(&gone), said(&gone)), (told(&[]), want.map(str::to_owned).to_vec()));
    let still = shelf.look(Scan::Missing);
    assert_eq!((names(&still), said(&still)), (None, vec![]));
}

#[test]
fn whatever_becomes_of_a_file_its_last_good_pod_goes_on() {
    let no_image = WEB.replace(", image: 'web:1'", "");
    let two = format!("{WEB}---\n{WEB}");
    let api = WEB.replace("spec:\n", "spec:\n  serviceAccountName: mine\n");
    let rows: [(&str, Finding, &str); 12] = [
        ("empty", text(""), "it is empty or has nothing but comments"),
        ("half-written", text("apiVersion: v1\nkind: Pod\nmetadata: {name"), "it is not YAML: "),
        ("half of it", text("apiVersion: v1\nkind: Pod\n"), "the pod in /pods/web has no name"),
        ("binary", Ok(vec![0x7f, 0, 1]), "it is not text: byte 2"),
        ("something else", text("apiVersion: v1\nkind: Service\n"), "this is kind \"Service\""),
        ("a list", text("apiVersion: v1\nkind: PodList\nitems: []"), "this is kind \"PodList\""),
        ("not valid", text(&no_image), "the pod is not valid: spec.containers[0].image: "),
        ("two pods", text(&two), "it has 2 documents"),
        ("needs a server", text(&api), "static pods may not reference serviceaccounts"),
        ("circle", Err(Trouble::Circle), "it is a symbolic link that leads back to itself"),
        ("too long", Err(Trouble::TooLong), "it has more than 10485760 bytes"),
        ("io", Err(Trouble::Unreadable("EIO".to_owned())), "it cannot be read: EIO"),
    ];
    for (name, broken, want) in rows {
        let mut shelf = shelf();
        shelf.look(found(&[("web", named("web")), ("other", named("other"))]));
        let news = shelf.look(found(&[("web", broken.clone()), ("other", named("other"))]));
        assert_eq!(names(&news), None, "{name}: nothing has changed");
        let line = said(&news).pop().unwrap();
        assert!(line.starts_with(&format!("/pods/web: {want}")), "{name}: {line}");
        assert!(line.ends_with("(what it held before goes on)"), "{name}: {line}");
        let again = shelf.look(found(&[("web", broken.clone()), ("other", named("other"))]));
        assert_eq!(said(&again), [""; 0], "{name}: said once");
        let other = shelf.look(found(&[("web", broken.clone()), ("other", named("changed"))]));
        assert_eq!(names(&other), told(&["changed-node", "web-node"]), "{name}: kept");
        let mended = shelf.look(found(&[("web", named("web")), ("other", named("changed"))]));
        assert_eq!(names(&mended), None, "{name}: it is what it was");
        assert_eq!(said(&mended), ["/pods/web: it holds pod web-node_default"], "{name}");
        let gone = shelf.look(found(&[("other", named("changed"))]));
        assert_eq!(names(&gone), told(&["changed-node"]), "{name}: gone");
    }
}

#[test]
fn a_file_that_never_was_good_has_no_pod_and_hides_no_other() {
    let mut shelf = shelf();
    let broken = Err(Trouble::Other("a directory"));
    let news = shelf.look(found(&[("a", broken), ("b", named("b"))]));
    assert_eq!(names(&news), told(&["b-node"]));
    let want = "/pods/a: it is a directory, and only files are read here; move it elsewhere (nothing comes of it)";
    assert_eq!(said(&news)[0], want);
}

#[test]
fn an_edit_makes_another_pod_and_a_comment_none() {
    let mut shelf = shelf();
    let uid = |news: &News<Pod>| news.items.as_ref().unwrap()[0].uid();
    let first = uid(&shelf.look(found(&[("a", text(WEB))])));
    let commented = shelf.look(found(&[("a", text(&format!("# said\n{WEB}")))]));
    assert_eq!(names(&commented), None);
    let edited = uid(&shelf.look(found(&[("a", text(&WEB.replace("web:1", "web:2")))])));
    assert_ne!(edited, first);
}

#[test]
fn fields_that_no_pod_has_are_told_and_do_nothing() {
    let slip = WEB.replace("spec:\n", "spec:\n  hostNetwrk: true\n");
    let news = shelf().look(found(&[("a", text(&slip))]));
    assert_eq!(names(&news), told(&["web-node"]));
    let want =
        "/pods/a: no pod has these fields, so they do nothing: spec.hostNetwrk; correct them";
    assert_eq!(said(&news)[1], want);
}

#[test]
fn an_octal_mode_is_read_as_kubectl_reads_it() {
    let mode = WEB.to_owned() + "  volumes: [{name: a, downwardAPI: {defaultMode: 0400}}]\n";
    let news = shelf().look(found(&[("a", text(&mode))]));
    let pods = news.items.unwrap();
    let volume = &pods[0].spec().unwrap().volumes.as_ref().unwrap()[0];
    assert_eq!(volume.downward_api.as_ref().unwrap().default_mode, Some(256));
}

#[test]
fn people_are_told_what_is_broken_until_it_is_mended_and_where_pods_come_from() {
    let mut shelf = shelf();
    shelf.look(Scan::Missing);
    assert_eq!(shelf.found().broken[0].place, "/pods");
    shelf.look(found(&[("a.yaml", named("a")), ("b.yaml", text("}"))]));
    shelf.look(found(&[("a.yaml", text("{")), ("b.yaml", text("}"))]));
    let told = shelf.found();
    let broken: Vec<_> = told.broken.iter().map(|it| (it.place.as_str(), it.goes_on)).collect();
    assert_eq!(broken, [("/pods/a.yaml", true), ("/pods/b.yaml", false)]);
    let places: Vec<_> = told.places.iter().map(|(pod, at)| format!("{pod} {at}")).collect();
    assert_eq!(places, ["a-node_default /pods/a.yaml"]);
    shelf.look(found(&[("a.yaml", named("a"))]));
    assert_eq!(shelf.found().broken, []);
}
