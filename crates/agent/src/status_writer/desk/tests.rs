//! Facts about what is told when.

use k8s_openapi::api::core::v1::{
    ContainerState, ContainerStateWaiting, ContainerStatus, PodCondition,
};

use super::*;

fn name() -> FullName {
    FullName { name: "web".to_owned(), namespace: "default".to_owned() }
}

fn status(phase: &str) -> PodStatus {
    PodStatus { phase: Some(phase.to_owned()), ..PodStatus::default() }
}

fn at(millis: u64) -> Mono {
    Mono(Duration::from_millis(millis))
}

/// The first entry of a desk is born first.
fn first(uid: &PodUid) -> Key {
    Key { uid: uid.clone(), born: 1 }
}

fn phase(job: Option<Job>) -> Option<String> {
    match job {
        Some(Job::Publish { status, .. }) => status.phase,
        Some(Job::Delete { .. }) => Some("delete".to_owned()),
        None => None,
    }
}

#[test]
fn only_the_latest_status_is_told_and_only_once() {
    let (mut desk, uid) = (Desk::default(), PodUid::from("1"));
    desk.publish(&uid, &name(), status("Pending"));
    desk.publish(&uid, &name(), status("Running"));
    assert_eq!(phase(desk.take(at(0))).as_deref(), Some("Running"));
    desk.done(&first(&uid), Outcome::Published, at(0));
    desk.publish(&uid, &name(), status("Running"));
    assert_eq!(phase(desk.take(at(0))), None);
    assert_eq!(desk.next_due(at(0)), None);
}

#[test]
fn everything_has_been_taken_once_the_cluster_says_so() {
    let (mut desk, uid) = (Desk::default(), PodUid::from("a"));
    assert!(desk.is_done());
    desk.publish(&uid, &name(), status("Running"));
    assert!(!desk.is_done(), "it waits");
    let job = desk.take(at(0)).unwrap();
    assert!(!desk.is_done(), "it is under way");
    desk.done(&job.into_key(), Outcome::NotPublished(None), at(0));
    assert!(!desk.is_done(), "it waits again");
    let job = desk.take(at(60_000)).unwrap();
    desk.done(&job.into_key(), Outcome::Published, at(60_000));
    assert!(desk.is_done());
}

#[test]
fn a_status_that_comes_while_another_is_under_way_waits_for_it() {
    let (mut desk, uid) = (Desk::default(), PodUid::from("1"));
    desk.publish(&uid, &name(), status("Pending"));
    assert!(desk.take(at(0)).is_some());
    desk.publish(&uid, &name(), status("Running"));
    assert_eq!(phase(desk.take(at(0))), None);
    desk.done(&first(&uid), Outcome::Published, at(0));
    assert_eq!(phase(desk.take(at(0))).as_deref(), Some("Running"));
}

#[test]
fn a_failure_is_tried_again_later_and_later() {
    let (mut desk, uid) = (Desk::default(), PodUid::from("1"));
    desk.publish(&uid, &name(), status("Running"));
    let mut now = at(0);
    for wait in [500, 1_000, 2_000, 4_000, 8_000, 10_000, 10_000] {
        assert!(desk.take(now).is_some());
        desk.done(&first(&uid), Outcome::NotPublished(None), now);
        assert_eq!(phase(desk.take(now)), None);
        now = now + Duration::from_millis(wait);
        assert_eq!(desk.next_due(now), Some(now));
    }
}

#[test]
fn a_pod_is_deleted_after_its_last_status_was_taken() {
    let (mut desk, uid) = (Desk::default(), PodUid::from("1"));
    desk.publish(&uid, &name(), status("Succeeded"));
    desk.allow_delete(&uid, &name());
    assert_eq!(phase(desk.take(at(0))).as_deref(), Some("Succeeded"));
    assert_eq!(phase(desk.take(at(0))), None);
    desk.done(&first(&uid), Outcome::Published, at(0));
    assert_eq!(phase(desk.take(at(0))).as_deref(), Some("delete"));
    desk.done(&first(&uid), Outcome::NotDeleted(None), at(0));
    assert_eq!(phase(desk.take(at(500))).as_deref(), Some("delete"));
    desk.done(&first(&uid), Outcome::Gone, at(500));
    assert_eq!(phase(desk.take(at(10_000))), None);
}

#[test]
fn a_cluster_that_has_something_else_is_told_again() {
    let (mut desk, uid) = (Desk::default(), PodUid::from("1"));
    desk.publish(&uid, &name(), status("Failed"));
    assert!(desk.take(at(0)).is_some());
    desk.heard(&uid, &status("Pending"));
    desk.done(&first(&uid), Outcome::Published, at(0));
    assert_eq!(phase(desk.take(at(0))), None, "what was under way is no surprise");
    desk.heard(&uid, &status("Failed"));
    assert_eq!(phase(desk.take(at(0))), None);
    desk.heard(&uid, &status("Pending"));
    assert_eq!(phase(desk.take(at(0))).as_deref(), Some("Failed"));
}

#[test]
fn the_answer_about_a_forgotten_pod_is_not_taken_for_its_successors() {
    let (mut desk, uid) = (Desk::default(), PodUid::from("1"));
    desk.publish(&uid, &name(), status("Running"));
    assert!(desk.take(at(0)).is_some());
    desk.forget(&uid);
    desk.publish(&uid, &name(), status("Pending"));
    desk.done(&first(&uid), Outcome::Gone, at(0));
    assert_eq!(phase(desk.take(at(0))).as_deref(), Some("Pending"));
}

#[test]
fn an_end_that_somebody_else_wrote_is_not_undone() {
    let (mut desk, uid) = (Desk::default(), PodUid::from("1"));
    desk.publish(&uid, &name(), status("Running"));
    assert!(desk.take(at(0)).is_some());
    desk.done(&first(&uid), Outcome::Published, at(0));
    desk.heard(&uid, &status("Failed"));
    assert_eq!(phase(desk.take(at(0))), None);
}

#[test]
fn pods_take_turns() {
    let (mut desk, one, two) = (Desk::default(), PodUid::from("1"), PodUid::from("2"));
    desk.publish(&two, &name(), status("two"));
    desk.publish(&one, &name(), status("one"));
    assert_eq!(phase(desk.take(at(0))).as_deref(), Some("two"));
    desk.done(&first(&two), Outcome::Published, at(0));
    desk.publish(&two, &name(), status("two again"));
    assert_eq!(phase(desk.take(at(0))).as_deref(), Some("one"));
    assert_eq!(phase(desk.take(at(0))).as_deref(), Some("two again"));
}

fn ready(answer: &str) -> PodStatus {
    let condition = PodCondition {
        type_: "Ready".to_owned(),
        status: answer.to_owned(),
        ..PodCondition::default()
    };
    PodStatus { conditions: Some(vec![condition]), ..status("Running") }
}

/// Takes all there is to tell at one time, and has it succeed.
fn tell_all(desk: &mut Desk, now: Mono) -> Vec<String> {
    let jobs: Vec<_> = std::iter::from_fn(|| desk.take(now)).collect();
    let told = jobs.iter().map(|job| match job {
        Job::Publish { key, .. } => key.uid.to_string(),
        Job::Delete { key, .. } => format!("delete {}", key.uid),
    });
    let told = told.collect();
    for job in jobs {
        let outcome = match &job {
            Job::Publish { .. } => Outcome::Published,
            Job::Delete { .. } => Outcome::Gone,
        };
        desk.done(&job.into_key(), outcome, now);
    }
    told
}

#[test]
fn what_others_wait_for_comes_before_detail() {
    let mut desk = Desk::default();
    let publish = |desk: &mut Desk, uid: &str, status: PodStatus| {
        desk.publish(&PodUid::from(uid), &name(), status);
    };
    publish(&mut desk, "detail", status("Pending"));
    publish(&mut desk, "ready", ready("True"));
    publish(&mut desk, "ended", status("Failed"));
    publish(&mut desk, "not yet", ready("False"));
    assert_eq!(tell_all(&mut desk, at(0)), ["ready", "ended", "detail", "not yet"]);
    publish(&mut desk, "detail", status("Running"));
    publish(
        &mut desk,
        "ready",
        PodStatus { host_ip: Some("192.0.2.1".to_owned()), ..ready("True") },
    );
    publish(&mut desk, "not yet", PodStatus { reason: Some("Slow".to_owned()), ..ready("False") });
    desk.allow_delete(&PodUid::from("ended"), &name());
    assert_eq!(tell_all(&mut desk, at(1_000)), ["delete ended", "detail", "ready", "not yet"]);
    publish(&mut desk, "not yet", status("Pending"));
    publish(&mut desk, "ready", ready("False"));
    assert_eq!(tell_all(&mut desk, at(2_000)), ["ready", "not yet"]);
}

fn waiting(reason: &str, restarts: i32) -> PodStatus {
    let waiting = ContainerStateWaiting { reason: Some(reason.to_owned()), message: None };
    let state = ContainerState { waiting: Some(waiting), ..ContainerState::default() };
    let container =
        ContainerStatus { state: Some(state), restart_count: restarts, ..Default::default() };
    PodStatus { container_statuses: Some(vec![container]), ..status("Pending") }
}

#[test]
fn what_is_said_of_a_pod_that_has_only_begun_waits_for_more() {
    let (mut desk, uid) = (Desk::default(), PodUid::from("1"));
    desk.publish(&uid, &name(), waiting("ContainerCreating", 0));
    assert_eq!(phase(desk.take(at(1_000))), None);
    let more = PodStatus { pod_ip: Some("10.0.0.1".to_owned()), ..waiting("PodInitializing", 0) };
    desk.publish(&uid, &name(), more);
    assert_eq!(desk.next_due(at(1_400)), Some(at(1_500)), "from the first of it on");
    assert_eq!(phase(desk.take(at(1_499))), None);
    assert_eq!(tell_all(&mut desk, at(1_500)), ["1"], "a slow one is told of");
    desk.publish(&uid, &name(), waiting("ContainerCreating", 0));
    assert_eq!(phase(desk.take(at(2_000))), None);
    desk.publish(&uid, &name(), ready("True"));
    assert_eq!(tell_all(&mut desk, at(2_001)), ["1"], "a quick one once, with all of it");
    assert!(desk.is_done());
}

#[test]
fn nothing_else_waits_for_more() {
    let begun = || waiting("ContainerCreating", 0);
    let rows = [
        (begun(), status("Failed")),
        (begun(), waiting("ErrImagePull", 0)),
        (begun(), waiting("ContainerCreating", 1)),
        (waiting("RunContainerError", 0), waiting("CrashLoopBackOff", 0)),
        (ready("True"), begun()),
    ];
    for (before, after) in rows {
        let (mut desk, uid) = (Desk::default(), PodUid::from("1"));
        desk.publish(&uid, &name(), before);
        desk.take(at(0));
        tell_all(&mut desk, at(1_000));
        desk.done(&first(&uid), Outcome::Published, at(1_000));
        let shown = format!("{after:?}");
        desk.publish(&uid, &name(), after);
        assert!(desk.take(at(2_000)).is_some(), "{shown}");
    }
}

#[test]
fn whoever_leaves_does_not_wait_for_more() {
    let mut desk = Desk::default();
    desk.publish(&PodUid::from("1"), &name(), waiting("ContainerCreating", 0));
    assert_eq!(phase(desk.take(at(0))), None);
    desk.hurry();
    assert_eq!(desk.next_due(at(0)), Some(at(0)));
    assert_eq!(tell_all(&mut desk, at(0)), ["1"]);
}

#[test]
fn a_pod_that_somebody_took_for_dead_is_told_to_be_ready_before_all_else() {
    let mut desk = Desk::default();
    desk.publish(&PodUid::from("1"), &name(), ready("True"));
    assert_eq!(tell_all(&mut desk, at(0)), ["1"]);
    desk.publish(&PodUid::from("2"), &name(), status("Pending"));
    desk.heard(&PodUid::from("1"), &ready("False"));
    assert_eq!(tell_all(&mut desk, at(0)), ["1", "2"]);
}

#[test]
fn a_busy_cluster_is_left_alone_for_as_long_as_it_asked() {
    let (mut desk, one, two) = (Desk::default(), PodUid::from("1"), PodUid::from("2"));
    desk.publish(&one, &name(), status("Running"));
    let job = desk.take(at(0)).unwrap();
    desk.done(&job.into_key(), Outcome::NotPublished(Some(Duration::from_secs(7))), at(0));
    desk.publish(&two, &name(), status("Running"));
    assert_eq!(phase(desk.take(at(6_999))), None, "also with what it has not heard of");
    assert_eq!(desk.next_due(at(6_999)), Some(at(7_000)));
    assert_eq!(tell_all(&mut desk, at(7_000)), ["1", "2"]);
}

#[test]
fn no_more_is_told_than_a_node_may() {
    let mut desk = Desk::default();
    for number in 0..150 {
        desk.publish(&PodUid::from(format!("{number}")), &name(), status("Running"));
    }
    assert_eq!(tell_all(&mut desk, at(1_000)).len(), 100);
    assert_eq!(desk.next_due(at(1_000)), Some(at(1_020)));
    assert_eq!(tell_all(&mut desk, at(1_500)).len(), 25);
    assert_eq!(tell_all(&mut desk, at(2_500)).len(), 25);
    assert!(desk.is_done());
}

#[test]
fn after_an_hour_of_silence_each_pods_latest_status_is_told_once() {
    let mut desk = Desk::default();
    let pods = ["1", "2", "3"].map(PodUid::from);
    for second in 0..3_600 {
        for uid in &pods {
            let reason = Some(format!("{second}"));
            desk.publish(uid, &name(), PodStatus { reason, ..status("Running") });
        }
        while let Some(job) = desk.take(at(second * 1_000)) {
            desk.done(&job.into_key(), Outcome::NotPublished(None), at(second * 1_000));
        }
    }
    let back = at(3_600_000 + 10_000);
    let mut told = Vec::new();
    while let Some(Job::Publish { key, status, .. }) = desk.take(back) {
        told.push((key.uid.clone(), status.reason.unwrap()));
        desk.done(&key, Outcome::Published, back);
    }
    assert_eq!(told, pods.map(|uid| (uid, "3599".to_owned())));
    assert!(desk.is_done());
}
