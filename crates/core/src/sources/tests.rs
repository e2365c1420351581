//! What several sources say, and what comes of it.

use std::sync::Arc;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Container, PodCondition, PodReadinessGate, PodSpec, PodStatus};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference, Time};
use proptest::prelude::*;

use super::*;
use crate::event::EventKind;
use crate::ids::PodUid;
use crate::pod::{MIRROR_ANNOTATION, PodExt, SEEN_ANNOTATION, SOURCE_ANNOTATION};

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap()
}

fn pod(uid: &str) -> Pod {
    let metadata = ObjectMeta {
        name: Some(format!("name-of-{uid}")),
        namespace: Some("default".to_owned()),
        uid: Some(uid.to_owned()),
        ..Default::default()
    };
    let containers = vec![Container { name: "app".to_owned(), ..Default::default() }];
    let spec = PodSpec { containers, ..Default::default() };
    Pod { metadata, spec: Some(spec), status: None }
}

fn edited(uid: &str, edit: impl FnOnce(&mut Pod)) -> Pod {
    let mut pod = pod(uid);
    edit(&mut pod);
    pod
}

fn annotated(uid: &str, key: &str, value: &str) -> Pod {
    edited(uid, |p| {
        p.metadata.annotations.get_or_insert_default().insert(key.to_owned(), value.to_owned());
    })
}

fn in_phase(uid: &str, phase: &str) -> Pod {
    edited(uid, |p| p.status.get_or_insert_default().phase = Some(phase.to_owned()))
}

fn deleting(uid: &str) -> Pod {
    edited(uid, |p| p.metadata.deletion_timestamp = Some(Time(at(7))))
}

fn reimaged(uid: &str) -> Pod {
    edited(uid, |p| p.spec.as_mut().unwrap().containers[0].image = Some("new".to_owned()))
}

fn shared(pods: Vec<Pod>) -> Vec<Arc<Pod>> {
    pods.into_iter().map(Arc::new).collect()
}

/// A merger that has heard of these pods from the API server at second 1.
fn knowing(pods: Vec<Pod>) -> PodConfig {
    let mut pod_config = PodConfig::new([Source::Api]);
    pod_config.merge(Source::Api, shared(pods), at(1));
    pod_config
}

fn received(
    pod_config: &mut PodConfig,
    source: Source,
    pods: Vec<Pod>,
) -> Vec<(PodOperation, String)> {
    let merged = pod_config.merge(source, shared(pods), at(2));
    merged.deltas.iter().map(|d| (d.change, d.pod.uid().to_string())).collect()
}

fn row(change: PodOperation, uid: &str) -> (PodOperation, String) {
    (change, uid.to_owned())
}

#[test]
fn the_very_same_pod_is_not_looked_at_again() {
    let mut pod_config = PodConfig::new([Source::Api]);
    let (one, two) = (Arc::new(pod("1")), Arc::new(pod("2")));
    pod_config.merge(Source::Api, vec![Arc::clone(&one), two], at(1));
    let kept = Arc::clone(pod_config.pod(&PodUid::from("1")).unwrap());
    let merged = pod_config.merge(Source::Api, vec![one, Arc::new(reimaged("2"))], at(2));
    let changes: Vec<_> = merged.deltas.iter().map(|d| (d.change, d.pod.uid())).collect();
    assert_eq!(changes, [(PodOperation::Update, PodUid::from("2"))]);
    assert!(Arc::ptr_eq(&kept, pod_config.pod(&PodUid::from("1")).unwrap()));
}

#[test]
fn only_what_matters_is_a_change() {
    let owned = |p: &mut Pod| {
        p.metadata.owner_references = Some(vec![OwnerReference::default()]);
        p.metadata.finalizers = Some(vec!["keep".to_owned()]);
        p.metadata.resource_version = Some("9".to_owned());
        p.metadata.generation = Some(9);
    };
    let labelled = |p: &mut Pod| {
        p.metadata.labels.get_or_insert_default().insert("a".to_owned(), "b".to_owned());
    };
    let shorter = |p: &mut Pod| p.metadata.deletion_grace_period_seconds = Some(3);
    let table = [
        ("nothing", pod("1"), None),
        ("spec", reimaged("1"), Some(PodOperation::Update)),
        ("labels", edited("1", labelled), Some(PodOperation::Update)),
        ("no labels and none", edited("1", |p| p.metadata.labels = Some([].into())), None),
        ("deletion", deleting("1"), Some(PodOperation::Delete)),
        ("deletion grace", edited("1", shorter), Some(PodOperation::Update)),
        ("annotation", annotated("1", "a", "b"), Some(PodOperation::Update)),
        ("local annotation source", annotated("1", SOURCE_ANNOTATION, "x"), None),
        ("local annotation mirror", annotated("1", MIRROR_ANNOTATION, "x"), None),
        ("local annotation seen", annotated("1", SEEN_ANNOTATION, "x"), None),
        ("status", in_phase("1", "Running"), Some(PodOperation::Reconcile)),
        ("owners, finalizers, versions", edited("1", owned), None),
    ];
    for (name, next, want) in table {
        let got = received(&mut knowing(vec![pod("1")]), Source::Api, vec![next]);
        assert_eq!(got.first().map(|(change, _)| *change), want, "{name}");
    }
}

/// A pod with a readiness gate, whose condition is True.
fn gated(gates: &[&str], conditions: &[(&str, &str)]) -> Pod {
    let gate = |it: &&str| PodReadinessGate { condition_type: (*it).to_owned() };
    let condition = |(type_, status): &(&str, &str)| PodCondition {
        type_: (*type_).to_owned(),
        status: (*status).to_owned(),
        ..PodCondition::default()
    };
    edited("1", |p| {
        p.spec.as_mut().unwrap().readiness_gates = Some(gates.iter().map(gate).collect());
        let conditions = Some(conditions.iter().map(condition).collect());
        p.status = Some(PodStatus { conditions, ..PodStatus::default() });
    })
}

#[test]
fn a_gate_that_others_move_is_a_change_and_any_other_condition_is_none() {
    let (one, shut, open) = (&["door"][..], &[("door", "False")][..], &[("door", "True")][..]);
    let table = [
        (gated(one, &[]), gated(one, open), PodOperation::Update),
        (gated(one, shut), gated(one, open), PodOperation::Update),
        (gated(one, open), gated(one, &[]), PodOperation::Update),
        (gated(one, open), gated(one, &[("door", "True"), ("x", "y")]), PodOperation::Reconcile),
        (gated(&[], shut), gated(&[], open), PodOperation::Reconcile),
    ];
    for (before, after, want) in table {
        let got = received(&mut knowing(vec![before.clone()]), Source::Api, vec![after.clone()]);
        assert_eq!(got, [row(want, "1")], "{before:?}\n{after:?}");
    }
}

#[test]
fn a_changed_pod_takes_over_what_counts_and_keeps_the_rest() {
    let mut pod_config =
        knowing(vec![edited("1", |p| p.metadata.resource_version = Some("1".to_owned()))]);
    let mut next = annotated("1", "a", "b");
    next.metadata.resource_version = Some("2".to_owned());
    next.metadata.generation = Some(5);
    next.metadata.deletion_grace_period_seconds = Some(3);
    next.metadata.deletion_timestamp = Some(Time(at(7)));
    next.metadata.labels = Some([("a".to_owned(), "b".to_owned())].into());
    next.metadata.finalizers = Some(vec!["keep".to_owned()]);
    next.spec = reimaged("1").spec;
    next.status = Some(PodStatus::default());
    let received = next.clone();
    let merged = pod_config.merge(Source::Api, shared(vec![next]), at(2));
    let got = &merged.deltas[0].pod;
    assert_eq!(got.annotation("a"), Some("b"));
    assert_eq!(got.annotation(SOURCE_ANNOTATION), Some("api"));
    assert_eq!(got.annotation(SEEN_ANNOTATION), Some("1970-01-01T00:00:01Z"), "as first seen");
    assert_eq!(got.metadata.generation, Some(5));
    assert_eq!(got.metadata.deletion_grace_period_seconds, Some(3));
    assert_eq!(got.metadata.deletion_timestamp, received.metadata.deletion_timestamp);
    assert_eq!(got.metadata.labels, received.metadata.labels);
    assert_eq!((&got.spec, &got.status), (&received.spec, &received.status));
    assert_eq!(got.metadata.finalizers, None, "of no concern to us");
    assert_eq!(got.metadata.resource_version.as_deref(), Some("1"));
}

#[test]
fn our_own_annotations_outlive_a_change_of_everything_else() {
    let mut first = annotated("1", MIRROR_ANNOTATION, "hash-1");
    first.metadata.annotations.get_or_insert_default().insert("a".to_owned(), "old".to_owned());
    let rows = [
        ("not said again", annotated("1", "a", "new"), Some("new")),
        (
            "said differently",
            edited("1", |p| {
                let local = [SOURCE_ANNOTATION, MIRROR_ANNOTATION, SEEN_ANNOTATION];
                let local = local.map(|key| (key.to_owned(), "other".to_owned()));
                p.metadata.annotations = Some(local.into());
            }),
            None,
        ),
        ("no annotations at all", reimaged("1"), None),
    ];
    for (name, next, foreign_annotations) in rows {
        let mut pod_config = knowing(vec![first.clone()]);
        let got = pod_config.merge(Source::Api, shared(vec![next]), at(2)).deltas[0].pod.clone();
        assert_eq!(got.annotation(SOURCE_ANNOTATION), Some("api"), "{name}");
        assert_eq!(got.annotation(MIRROR_ANNOTATION), Some("hash-1"), "{name}");
        assert_eq!(got.annotation(SEEN_ANNOTATION), Some("1970-01-01T00:00:01Z"), "{name}");
        assert_eq!(
            got.annotation("a"),
            foreign_annotations,
            "{name}: those of others are as they are now"
        );
    }
}

#[test]
fn changes_come_in_the_order_that_makes_room_first() {
    let mut pod_config = knowing(["1", "2", "3", "4", "5"].map(pod).to_vec());
    let next =
        vec![in_phase("5", "Running"), deleting("4"), pod("7"), reimaged("3"), pod("6"), pod("2")];
    let want = [
        row(PodOperation::Remove, "1"),
        row(PodOperation::Add, "7"),
        row(PodOperation::Add, "6"),
        row(PodOperation::Update, "3"),
        row(PodOperation::Delete, "4"),
        row(PodOperation::Reconcile, "5"),
    ];
    assert_eq!(received(&mut pod_config, Source::Api, next), want);
}

#[test]
fn a_pod_first_seen_while_being_deleted_is_an_addition() {
    let got = received(&mut PodConfig::new([Source::Api]), Source::Api, vec![deleting("1")]);
    assert_eq!(got, [row(PodOperation::Add, "1")]);
}

#[test]
fn a_new_pod_is_annotated_with_its_source_and_time() {
    let mut pod_config = PodConfig::new([Source::File]);
    let merged = pod_config.merge(
        Source::File,
        shared(vec![annotated("1", SOURCE_ANNOTATION, "api")]),
        at(9),
    );
    let got = &merged.deltas[0].pod;
    assert_eq!(got.annotation(SOURCE_ANNOTATION), Some("file"), "the manifest has no say in it");
    assert_eq!(got.annotation(SEEN_ANNOTATION), Some("1970-01-01T00:00:09Z"));
    assert!(got.is_static());
}

#[test]
fn of_two_pods_with_one_name_or_uid_the_first_is_kept_and_the_other_reported() {
    let namesake = edited("2", |p| p.metadata.name = Some("name-of-1".to_owned()));
    let elsewhere = edited("3", |p| {
        p.metadata.name = Some("name-of-1".to_owned());
        p.metadata.namespace = Some("other".to_owned());
    });
    let twin = edited("1", |p| p.metadata.name = Some("twin".to_owned()));
    let mut pod_config = PodConfig::new([Source::Api]);
    let merged =
        pod_config.merge(Source::Api, shared(vec![pod("1"), namesake, elsewhere, twin]), at(1));
    let kept: Vec<String> = merged.deltas.iter().map(|d| d.pod.uid().to_string()).collect();
    assert_eq!(kept, ["1", "3"]);
    let refused: Vec<_> =
        merged.refused.iter().map(|(p, e)| (p.uid(), e.kind, &*e.reason)).collect();
    let failed = |uid| (PodUid::from(uid), EventKind::Warning, "FailedValidation");
    assert_eq!(refused, [failed("2"), failed("1")]);
}

#[test]
fn sources_are_ready_once_each_has_sent_a_set_be_it_empty() {
    let mut pod_config = PodConfig::new([Source::File, Source::Api]);
    assert!(!pod_config.all_ready());
    assert_eq!(received(&mut pod_config, Source::File, Vec::new()), []);
    assert!(!pod_config.all_ready());
    received(&mut pod_config, Source::Api, vec![pod("1")]);
    assert!(pod_config.all_ready());
    assert!(PodConfig::new([]).all_ready(), "nobody to wait for");
}

#[test]
fn no_pod_is_removed_before_all_sources_are_ready() {
    let mut pod_config = PodConfig::new([Source::File, Source::Http, Source::Api]);
    let first = ["1", "2", "3", "4"].map(pod).to_vec();
    let rows = [
        ("pods come at once", Source::File, first, "Add 1, Add 2, Add 3, Add 4"),
        ("the removal of three waits", Source::File, vec![pod("1")], ""),
        ("one is back as it was", Source::File, ["1", "2"].map(pod).to_vec(), ""),
        ("one changes", Source::File, vec![reimaged("1"), pod("2")], "Update 1"),
        ("a deletion does not wait", Source::File, vec![deleting("1"), pod("2")], "Delete 1"),
        ("another source has one of them", Source::Http, vec![pod("3")], "Update 3"),
        ("the last is heard", Source::Api, vec![pod("5")], "Remove 4, Add 5"),
        ("from now on nothing waits", Source::Http, Vec::new(), "Remove 3"),
    ];
    for (name, source, pods, want) in rows {
        let got = received(&mut pod_config, source, pods);
        let got: Vec<_> = got.iter().map(|(change, uid)| format!("{change:?} {uid}")).collect();
        assert_eq!(got.join(", "), want, "{name}");
    }
}

#[test]
fn what_is_recalled_is_wanted_and_nothing_is_unwanted_for_it() {
    let mut pod_config = PodConfig::new([Source::File, Source::Api]);
    assert_eq!(
        received(&mut pod_config, Source::File, vec![pod("static")]),
        [row(PodOperation::Add, "static")]
    );
    let recalled =
        pod_config.recall(Source::Api, shared(vec![pod("1"), pod("2"), pod("3")]), at(2));
    let changes: Vec<_> = recalled.deltas.iter().map(|d| d.change).collect();
    assert_eq!(changes, [PodOperation::Add; 3]);
    assert_eq!(recalled.deltas[0].pod.annotation(SOURCE_ANNOTATION), Some("api"));
    assert!(!pod_config.all_ready(), "the source has not spoken");
    assert_eq!(received(&mut pod_config, Source::File, Vec::new()), [], "so nothing goes");
    // Its word is compared with what was recalled: what is the same changes nothing.
    let said = received(&mut pod_config, Source::Api, vec![pod("1"), reimaged("2"), pod("4")]);
    let [gone, new, update] = [PodOperation::Remove, PodOperation::Add, PodOperation::Update];
    let expected = [row(gone, "3"), row(gone, "static"), row(new, "4"), row(update, "2")];
    assert_eq!(said, expected);
    assert!(
        pod_config.recall(Source::Api, shared(vec![pod("5")]), at(3)).deltas.is_empty(),
        "it has spoken"
    );
}

#[test]
fn a_pod_whose_removal_is_delayed_is_still_desired() {
    let mut pod_config = PodConfig::new([Source::File, Source::Api]);
    received(&mut pod_config, Source::File, vec![pod("1")]);
    received(&mut pod_config, Source::File, Vec::new());
    assert!(pod_config.pod(&PodUid::from("1")).is_some());
    received(&mut pod_config, Source::Api, Vec::new());
    assert!(pod_config.pod(&PodUid::from("1")).is_none());
}

#[test]
fn a_source_changes_its_own_pods_only() {
    let mut pod_config = knowing(vec![pod("1")]);
    assert_eq!(
        received(&mut pod_config, Source::File, vec![pod("2")]),
        [row(PodOperation::Add, "2")]
    );
    assert_eq!(
        received(&mut pod_config, Source::File, Vec::new()),
        [row(PodOperation::Remove, "2")]
    );
    assert_eq!(
        received(&mut pod_config, Source::Api, Vec::new()),
        [row(PodOperation::Remove, "1")]
    );
    assert_eq!(pod_config.pods().count(), 0);
}

#[test]
fn one_pod_known_under_two_sources_is_one_pod_and_goes_with_the_last() {
    let mut pod_config = knowing(vec![pod("1")]);
    let got = received(&mut pod_config, Source::File, vec![reimaged("1")]);
    assert_eq!(got, [row(PodOperation::Update, "1")], "the file has the say");
    assert_eq!(pod_config.pods().count(), 1);
    assert_eq!(
        received(&mut pod_config, Source::Api, vec![in_phase("1", "Running")]),
        [],
        "the API has not"
    );
    assert_eq!(
        received(&mut pod_config, Source::File, Vec::new()),
        [row(PodOperation::Update, "1")]
    );
    let left = pod_config.pod(&PodUid::from("1")).unwrap();
    assert_eq!(left.annotation(SOURCE_ANNOTATION), Some("api"), "the API takes over");
    assert_eq!(
        received(&mut pod_config, Source::Api, Vec::new()),
        [row(PodOperation::Remove, "1")]
    );
}

fn sets() -> impl Strategy<Value = (Source, Vec<Pod>)> {
    let source = prop_oneof![Just(Source::File), Just(Source::Http), Just(Source::Api)];
    let uid = prop_oneof![Just("1"), Just("2"), Just("3"), Just("4")];
    let state = uid.prop_flat_map(|uid| {
        prop_oneof![
            Just(pod(uid)),
            Just(reimaged(uid)),
            Just(deleting(uid)),
            Just(in_phase(uid, "Running")),
        ]
    });
    (source, proptest::collection::vec(state, 0..5))
}

proptest! {
    /// A listener that only sees the changes knows exactly the pods that the merger holds, and these are, once all have
    /// been heard, those that some source had in its last set.
    #[test]
    fn the_changes_add_up_to_what_is_wanted(sets in proptest::collection::vec(sets(), 0..20)) {
        let mut pod_config = PodConfig::new([Source::File, Source::Http, Source::Api]);
        let mut heard = std::collections::BTreeMap::new();
        let mut last = std::collections::BTreeMap::new();
        for (source, pods) in sets {
            last.insert(source, pods.iter().map(Pod::uid).collect::<Vec<_>>());
            for PodDelta { change, pod } in pod_config.merge(source, shared(pods), at(1)).deltas {
                let (known, uid) = (heard.contains_key(&pod.uid()), pod.uid());
                prop_assert_eq!(known, change != PodOperation::Add, "{:?} of {}", change, uid);
                match change {
                    PodOperation::Remove => heard.remove(&uid),
                    _ => heard.insert(uid, pod),
                };
            }
        }
        let somewhere: std::collections::BTreeSet<_> = last.values().flatten().collect();
        prop_assert!(somewhere.iter().all(|uid| heard.contains_key(*uid)));
        prop_assert!(!pod_config.all_ready() || heard.len() == somewhere.len());
        let held: Vec<_> = pod_config.pods().cloned().collect();
        let heard: Vec<_> = heard.into_values().collect();
        prop_assert_eq!(held, heard);
    }
}
