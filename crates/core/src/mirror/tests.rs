//! Mirrors come, go and come back.

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::{Pod, PodCondition, PodSpec, PodStatus};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, Time};
use k8s_openapi::jiff::Timestamp;

use super::*;
use crate::ids::{FullName, PodUid};
use crate::queue::JobQueue;
use crate::time::Mono;

const NODE: &str = "node-uid";

fn mirrors() -> MirrorPods {
    let mut mirrors = MirrorPods::default();
    mirrors.set_node(NODE, false);
    mirrors
}

fn at(millis: u64) -> Mono {
    Mono(Duration::from_millis(millis))
}

fn name() -> FullName {
    FullName { name: "web-n1".to_owned(), namespace: "default".to_owned() }
}

/// A static pod whose hash is its UID.
fn running_pod(uid: &str) -> Arc<Pod> {
    let annotations = [(HASH_ANNOTATION, uid), (crate::pod::SOURCE_ANNOTATION, "file")];
    let annotations = annotations.map(|(key, value)| (key.to_owned(), value.to_owned()));
    let spec = PodSpec { node_name: Some("n1".to_owned()), ..PodSpec::default() };
    Arc::new(Pod {
        metadata: ObjectMeta {
            name: Some("web-n1".to_owned()),
            namespace: Some("default".to_owned()),
            uid: Some(uid.to_owned()),
            annotations: Some(annotations.into()),
            ..ObjectMeta::default()
        },
        spec: Some(spec),
        status: None,
    })
}

/// What the API server made of a reflection.
fn stored(pod: &Pod, uid: &str) -> Pod {
    let mut mirror = mirror_pod(pod, NODE);
    mirror.metadata.uid = Some(uid.to_owned());
    mirror
}

fn deleting(mut mirror: Pod) -> Pod {
    mirror.metadata.deletion_timestamp = Some(Time(Timestamp::UNIX_EPOCH));
    mirror
}

fn status(phase: &str) -> PodStatus {
    PodStatus { phase: Some(phase.to_owned()), ..PodStatus::default() }
}

fn told(mirror: &str, phase: &str) -> MirrorStatus {
    MirrorStatus::Publish(name(), PodUid::from(mirror), Box::new(status(phase)))
}

#[test]
fn a_reflection_is_owned_by_the_node_and_carries_the_hash() {
    let mirror = mirror_pod(&running_pod("one"), NODE);
    assert_eq!(mirror.annotation(MIRROR_ANNOTATION), Some("one"));
    assert_eq!(mirror.annotation(HASH_ANNOTATION), Some("one"), "all annotations are shown");
    assert_eq!(mirror.metadata.uid, None, "it is a pod of its own");
    let owners = mirror.metadata.owner_references.unwrap();
    assert_eq!((owners[0].kind.as_str(), owners[0].name.as_str()), ("Node", "n1"));
    assert_eq!((owners[0].uid.as_str(), owners[0].controller), (NODE, Some(true)));
}

#[test]
fn a_pod_gets_its_mirror_once_and_the_mirror_its_status() {
    let (mut mirrors, pod) = (mirrors(), running_pod("one"));
    mirrors.add_static_pod(&pod);
    assert_eq!(
        mirrors.set_status(&pod.uid(), &name(), &status("Running")),
        None,
        "there is nobody to tell"
    );
    let errand = mirrors.next(at(0)).unwrap();
    assert_eq!(errand, MirrorAction::Create(Box::new(mirror_pod(&pod, NODE))));
    assert_eq!(mirrors.next(at(0)), None, "it is under way");
    mirrors.done((name(), true), at(0));
    assert_eq!(mirrors.next(at(0)), None, "it will be seen soon");
    assert_eq!(mirrors.observe(vec![stored(&pod, "m1")]), [told("m1", "Running")]);
    assert_eq!(mirrors.next(at(60_000)), None);
    assert_eq!(mirrors.next_due(at(60_000)), None);
    assert_eq!(
        mirrors.set_status(&pod.uid(), &name(), &status("Failed")),
        Some(told("m1", "Failed"))
    );
}

#[test]
fn what_the_mirror_shows_is_known_of_the_pod_that_it_shows() {
    let (mut mirrors, pod) = (mirrors(), running_pod("one"));
    let mirror = Pod { status: Some(status("Running")), ..stored(&pod, "m1") };
    mirrors.observe(vec![mirror]);
    assert_eq!(mirrors.shown_status(&pod.uid(), &name()), None, "there is no pod yet");
    mirrors.add_static_pod(&pod);
    assert_eq!(mirrors.shown_status(&pod.uid(), &name()), Some(status("Running")));
    let other = running_pod("two");
    mirrors.add_static_pod(&other);
    assert_eq!(mirrors.shown_status(&other.uid(), &name()), None, "it shows the pod before");
}

#[test]
fn what_is_not_seen_in_time_or_failed_is_done_again() {
    let (mut mirrors, pod) = (mirrors(), running_pod("one"));
    mirrors.add_static_pod(&pod);
    let mut now = at(0);
    for wait in [500, 1_000, 2_000, 4_000, 8_000, 10_000, 10_000] {
        assert!(mirrors.next(now).is_some());
        mirrors.done((name(), false), now);
        assert_eq!(mirrors.next(now), None);
        now = now + Duration::from_millis(wait);
        assert_eq!(mirrors.next_due(now), Some(now));
    }
    assert!(mirrors.next(now).is_some());
    mirrors.done((name(), true), now);
    assert_eq!(mirrors.next_due(now), Some(now + Duration::from_secs(10)));
}

#[test]
fn a_mirror_pod_that_is_being_deleted_is_deleted_at_once_and_recreated() {
    let (mut mirrors, pod) = (mirrors(), running_pod("one"));
    mirrors.add_static_pod(&pod);
    mirrors.set_status(&pod.uid(), &name(), &status("Running"));
    mirrors.observe(vec![stored(&pod, "m1")]);
    mirrors.observe(vec![deleting(stored(&pod, "m1"))]);
    let delete = MirrorAction::Delete(name(), PodUid::from("m1"));
    assert_eq!(mirrors.next(at(0)), Some(delete));
    mirrors.done((name(), true), at(0));
    assert_eq!(mirrors.observe(Vec::new()), [MirrorStatus::Gone(PodUid::from("m1"))]);
    assert!(matches!(mirrors.next(at(0)), Some(MirrorAction::Create(_))));
    mirrors.done((name(), true), at(0));
    assert_eq!(mirrors.observe(vec![stored(&pod, "m2")]), [told("m2", "Running")]);
}

#[test]
fn the_mirror_of_an_edited_pod_is_replaced_once_its_successor_lives() {
    let (mut mirrors, old, new) = (mirrors(), running_pod("old"), running_pod("new"));
    mirrors.add_static_pod(&old);
    mirrors.observe(vec![stored(&old, "m1")]);
    assert_eq!(mirrors.next(at(0)), None);
    mirrors.add_static_pod(&new);
    assert_eq!(
        mirrors.set_status(&new.uid(), &name(), &status("Pending")),
        None,
        "it is not its mirror"
    );
    assert_eq!(
        mirrors.set_status(&old.uid(), &name(), &status("Failed")),
        None,
        "it lives here no more"
    );
    assert_eq!(mirrors.next(at(0)), Some(MirrorAction::Delete(name(), PodUid::from("m1"))));
    mirrors.remove_pod(&old.uid());
    mirrors.done((name(), true), at(0));
    mirrors.observe(Vec::new());
    assert_eq!(mirrors.next(at(0)), Some(MirrorAction::Create(Box::new(mirror_pod(&new, NODE)))));
}

#[test]
fn a_mirror_pod_without_a_static_pod_is_deleted_once_all_sources_are_ready() {
    let pod = running_pod("one");
    let mut mirrors = mirrors();
    mirrors.observe(vec![stored(&pod, "m1")]);
    assert_eq!(mirrors.next(at(0)), None, "a source may yet tell of its pod");
    mirrors.add_terminating(&PodUid::from("one"), &name());
    mirrors.set_sources_ready();
    assert_eq!(mirrors.next(at(0)), None, "it is still being brought down");
    mirrors.remove_pod(&PodUid::from("one"));
    assert_eq!(mirrors.next(at(0)), Some(MirrorAction::Delete(name(), PodUid::from("m1"))));
    mirrors.done((name(), true), at(0));
    mirrors.observe(Vec::new());
    assert_eq!(mirrors.next(at(0)), None);
    assert_eq!(mirrors.next_due(at(0)), None);
}

#[test]
fn the_status_of_a_mirror_pod_is_compared_with_the_published_one() {
    let (mut mirrors, pod) = (mirrors(), running_pod("one"));
    mirrors.add_static_pod(&pod);
    mirrors.observe(vec![stored(&pod, "m1")]);
    let mirror = Pod { status: Some(status("Pending")), ..stored(&pod, "m1") };
    let has = MirrorStatus::Shown(PodUid::from("m1"), Box::new(status("Pending")));
    assert_eq!(mirrors.observe(vec![mirror]), [has]);
}

fn since(seconds: i64) -> Option<Time> {
    Some(Time(Timestamp::from_second(seconds).unwrap()))
}

fn running(start: i64, conditions: &[(&str, &str, i64)]) -> PodStatus {
    let condition = |(type_, status, time): &(&str, &str, i64)| PodCondition {
        type_: (*type_).to_owned(),
        status: (*status).to_owned(),
        last_transition_time: since(*time),
        ..PodCondition::default()
    };
    let conditions = Some(conditions.iter().map(condition).collect());
    PodStatus { start_time: since(start), conditions, ..status("Running") }
}

#[test]
fn an_adopted_pod_keeps_the_transition_times_of_its_mirror_pod() {
    let (mut mirrors, pod) = (mirrors(), running_pod("one"));
    let before = running(5, &[("Ready", "True", 7), ("Initialized", "False", 6)]);
    let mirror = Pod { status: Some(before), ..stored(&pod, "m1") };
    mirrors.observe(vec![mirror]);
    mirrors.add_static_pod(&pod);
    let mut tell = |status: &PodStatus| match mirrors.set_status(&pod.uid(), &name(), status) {
        Some(MirrorStatus::Publish(.., status)) => *status,
        other => panic!("{other:?}"),
    };
    let ours = running(90, &[("Ready", "True", 91), ("Initialized", "True", 92)]);
    let kept = running(5, &[("Ready", "True", 7), ("Initialized", "True", 92)]);
    assert_eq!(tell(&ours), kept);
    assert_eq!(tell(&ours), kept, "as often as it is told");
    let lost = running(90, &[("Ready", "False", 100)]);
    assert_eq!(tell(&lost), running(5, &[("Ready", "False", 100)]));
    let back = running(90, &[("Ready", "True", 110)]);
    assert_eq!(tell(&back), running(5, &[("Ready", "True", 110)]), "what changed is new");
}

#[test]
fn no_mirror_is_made_while_the_node_is_being_deleted() {
    let (mut mirrors, pod) = (mirrors(), running_pod("one"));
    mirrors.set_node(NODE, true);
    mirrors.add_static_pod(&pod);
    assert_eq!(mirrors.next(at(0)), None);
    assert_eq!(mirrors.next_due(at(60_000)), None, "nothing is tried meanwhile");
    mirrors.observe(vec![deleting(stored(&pod, "m1"))]);
    let errand = mirrors.next(at(0)).unwrap();
    assert_eq!(errand, MirrorAction::Delete(name(), "m1".into()), "one that goes is let go");
    mirrors.done((name(), true), at(0));
    mirrors.observe(Vec::new());
    assert_eq!(mirrors.next(at(0)), None, "and not made again");
    mirrors.set_node("another-uid", false);
    assert!(matches!(mirrors.next(at(0)), Some(MirrorAction::Create(_))), "for the new node");
}
