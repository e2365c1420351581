//! Which running pod is taken for a static pod of ours.

use std::sync::Arc;

use super::*;
use crate::fixture::{self, ViewBuilder};
use crate::labels::ROOT_ANNOTATION;
use crate::pod::{SEEN_ANNOTATION, SOURCE_ANNOTATION};
use crate::view::{PodView, SandboxView};

const THEIRS: &str = "0123456789abcdef0123456789abcdef";

/// What a Go kubelet would have running of the pod, edited.
fn run_by_another(pod: &Pod, edit: impl FnOnce(ViewBuilder) -> ViewBuilder) -> PodView {
    let view = edit(fixture::view(pod).sandbox().edit_sandbox(mark_theirs).running("app")).build();
    PodView { uid: PodUid::from(THEIRS), ..view }
}

fn mark_theirs(sandbox: &mut SandboxView) {
    for (key, value) in
        [(SOURCE_ANNOTATION, "file"), (SEEN_ANNOTATION, "2026-01-01"), (HASH_ANNOTATION, THEIRS)]
    {
        sandbox.annotations.insert(key.to_owned(), value.to_owned());
    }
}

fn annotate(view: ViewBuilder, key: &str, value: &str) -> ViewBuilder {
    view.edit_sandbox(|sandbox| {
        sandbox.annotations.insert(key.to_owned(), value.to_owned());
    })
}

/// The UID the pod gets at start, given what runs.
fn uid_at_start(pod: &Pod, held: PodView) -> PodUid {
    let mut adoptions = Adoptions::default();
    let pods = vec![Arc::new(pod.clone())];
    adoptions.learn(Source::File, &pods, &[held]);
    adoptions.apply(Source::File, pods)[0].uid()
}

#[test]
fn a_pod_that_another_kubelet_started_keeps_its_uid() {
    let pod = Arc::new(prepared(manifest()));
    let mut adoptions = Adoptions::default();
    let held = [run_by_another(&pod, |view| view)];
    adoptions.learn(Source::File, std::slice::from_ref(&pod), &held);
    let uid_from_content = pod.uid();
    let adopted = adoptions.apply(Source::File, vec![pod]).remove(0);
    assert_eq!(adopted.uid().as_str(), THEIRS);
    assert_eq!(adopted.annotation(HASH_ANNOTATION), Some(THEIRS));
    assert_eq!(adopted.annotation(MADE_UID_ANNOTATION), Some(uid_from_content.as_str()));
}

#[test]
fn only_an_identical_pod_is_adopted() {
    let pod = Arc::new(prepared(manifest()));
    let ours = pod.uid();
    let table: Vec<(&str, PodView)> = vec![
        ("another name", {
            let mut view = run_by_another(&pod, |view| view);
            view.full_name.name.push('x');
            view
        }),
        ("another source", run_by_another(&pod, |v| annotate(v, SOURCE_ANNOTATION, "http"))),
        ("a pod of the API", run_by_another(&pod, |v| annotate(v, SOURCE_ANNOTATION, "api"))),
        ("another hash", run_by_another(&pod, |v| annotate(v, HASH_ANNOTATION, "f00"))),
        ("an annotation more", run_by_another(&pod, |v| annotate(v, "a", "b"))),
        (
            "made by us from other content",
            run_by_another(&pod, |v| annotate(v, ROOT_ANNOTATION, "/")),
        ),
        ("not ready", run_by_another(&pod, |v| v.edit_sandbox(|s| s.ready = false))),
        ("another network", run_by_another(&pod, |v| v.edit_sandbox(|s| s.host_network = true))),
        ("another image", run_by_another(&pod, |v| v.edit_container(|c| c.label.hash = Some(1)))),
        ("no hash", run_by_another(&pod, |v| v.edit_container(|c| c.label.hash = None))),
        ("a container more", run_by_another(&pod, |v| v.running("more"))),
        ("a uid that a manifest gave", {
            let view = run_by_another(&pod, |v| annotate(v, HASH_ANNOTATION, "given"));
            PodView { uid: PodUid::from("given"), ..view }
        }),
        ("no sandbox", {
            let mut view = run_by_another(&pod, |view| view);
            view.sandboxes.clear();
            view
        }),
    ];
    for (name, view) in table {
        assert_eq!(uid_at_start(&pod, view), ours, "{name}");
    }
    assert_eq!(uid_at_start(&pod, run_by_another(&pod, |v| v)).as_str(), THEIRS, "but this one is");
}

#[test]
fn a_uid_that_a_manifest_gives_is_never_swapped() {
    let mut given = manifest();
    given.metadata.uid = Some("11111111-2222-3333-4444-555555555555".to_owned());
    let pod = prepared(given);
    assert_eq!(uid_at_start(&pod, run_by_another(&pod, |v| v)), pod.uid());
}

#[test]
fn a_pod_that_is_only_half_started_is_adopted_too() {
    let mut two = manifest();
    let mut more = two.spec.as_ref().unwrap().containers[0].clone();
    more.name = "more".to_owned();
    two.spec.as_mut().unwrap().containers.push(more);
    let pod = prepared(two);
    assert_eq!(uid_at_start(&pod, run_by_another(&pod, |v| v)).as_str(), THEIRS);
}

#[test]
fn what_is_left_of_an_earlier_sandbox_does_not_matter() {
    let pod = Arc::new(prepared(manifest()));
    let old = fixture::view(&pod).dead_sandbox().exited("app", 1);
    let old = old.edit_container(|container| container.label.hash = Some(1));
    let view = old.sandbox().edit_sandbox(mark_theirs).running("app").build();
    assert_eq!(uid_at_start(&pod, PodView { uid: PodUid::from(THEIRS), ..view }).as_str(), THEIRS);
}

#[test]
fn a_pod_adopted_once_is_known_again_in_a_sandbox_of_our_own() {
    let pod = Arc::new(prepared(manifest()));
    let rebuilt = |uid_from_content: &str| {
        run_by_another(&pod, |v| {
            annotate(annotate(v, ROOT_ANNOTATION, "/"), MADE_UID_ANNOTATION, uid_from_content)
        })
    };
    assert_eq!(uid_at_start(&pod, rebuilt(pod.uid().as_str())).as_str(), THEIRS);
    assert_eq!(uid_at_start(&pod, rebuilt("f00")), pod.uid(), "its manifest was edited since");
}

#[test]
fn an_edit_after_the_start_makes_a_new_pod() {
    let pod = Arc::new(prepared(manifest()));
    let mut adoptions = Adoptions::default();
    let held = [run_by_another(&pod, |view| view)];
    adoptions.learn(Source::File, std::slice::from_ref(&pod), &held);
    let mut edited = manifest();
    edited.spec.as_mut().unwrap().containers[0].args = Some(vec!["-v".to_owned()]);
    let edited = Arc::new(prepared(edited));
    assert_eq!(adoptions.apply(Source::File, vec![edited.clone()]), [edited]);
    let back = adoptions.apply(Source::File, vec![pod.clone()]);
    assert_eq!(back, [pod], "and the old one is forgotten");
}

#[test]
fn the_set_of_another_source_changes_nothing() {
    let pod = Arc::new(prepared(manifest()));
    let mut adoptions = Adoptions::default();
    let held = [run_by_another(&pod, |view| view)];
    adoptions.learn(Source::File, std::slice::from_ref(&pod), &held);
    assert_eq!(adoptions.apply(Source::Http, Vec::new()), []);
    assert_eq!(adoptions.apply(Source::File, vec![pod])[0].uid().as_str(), THEIRS);
}
