//! What is sent when.

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

/// The key of the first entry of a queue.
fn first(uid: &PodUid) -> JobKey {
    JobKey { uid: uid.clone(), attempt: 1, generation: 1 }
}

fn phase(job: Option<StatusJob>) -> Option<String> {
    match job {
        Some(StatusJob::Patch(_, _, status)) => status.phase,
        Some(StatusJob::Delete(..)) => Some("delete".to_owned()),
        None => None,
    }
}

#[test]
fn only_the_latest_status_is_sent_and_only_once() {
    let (mut queue, uid) = (StatusQueue::default(), PodUid::from("1"));
    queue.publish(&uid, &name(), status("Pending"), at(0));
    queue.publish(&uid, &name(), status("Running"), at(0));
    assert_eq!(phase(queue.next(at(0))).as_deref(), Some("Running"));
    queue.done((first(&uid), JobResult::Accepted), at(0));
    queue.publish(&uid, &name(), status("Running"), at(0));
    assert_eq!(phase(queue.next(at(0))), None);
    assert_eq!(queue.next_due(at(0)), None);
}

#[test]
fn the_queue_is_empty_once_everything_was_accepted() {
    let (mut queue, uid) = (StatusQueue::default(), PodUid::from("a"));
    assert!(queue.is_empty());
    queue.publish(&uid, &name(), status("Running"), at(0));
    assert!(!queue.is_empty(), "it waits");
    let job = queue.next(at(0)).unwrap();
    assert!(!queue.is_empty(), "it is under way");
    queue.done((job.key().clone(), JobResult::Failed(None)), at(0));
    assert!(!queue.is_empty(), "it waits again");
    let job = queue.next(at(60_000)).unwrap();
    queue.done((job.key().clone(), JobResult::Accepted), at(60_000));
    assert!(queue.is_empty());
}

#[test]
fn a_job_carries_how_often_it_was_tried_in_a_row() {
    let (mut queue, uid) = (StatusQueue::default(), PodUid::from("a"));
    queue.publish(&uid, &name(), status("Running"), at(0));
    for attempt in 1..=3 {
        let now = at(u64::from(attempt) * 60_000);
        let key = queue.next(now).unwrap().key().clone();
        assert_eq!(key.attempt, attempt);
        let result = if attempt == 3 { JobResult::Accepted } else { JobResult::Failed(None) };
        queue.done((key, result), now);
    }
    queue.publish(&uid, &name(), status("Failed"), at(240_000));
    assert_eq!(queue.next(at(240_000)).unwrap().key().attempt, 1);
}

#[test]
fn a_status_that_comes_while_another_is_under_way_waits_for_it() {
    let (mut queue, uid) = (StatusQueue::default(), PodUid::from("1"));
    queue.publish(&uid, &name(), status("Pending"), at(0));
    assert!(queue.next(at(0)).is_some());
    queue.publish(&uid, &name(), status("Running"), at(0));
    assert_eq!(phase(queue.next(at(0))), None);
    queue.done((first(&uid), JobResult::Accepted), at(0));
    assert_eq!(phase(queue.next(at(0))).as_deref(), Some("Running"));
}

#[test]
fn a_failure_is_tried_again_later_and_later() {
    let (mut queue, uid) = (StatusQueue::default(), PodUid::from("1"));
    queue.publish(&uid, &name(), status("Running"), at(0));
    let mut now = at(0);
    for wait in [500, 1_000, 2_000, 4_000, 8_000, 10_000, 10_000] {
        assert!(queue.next(now).is_some());
        queue.done((first(&uid), JobResult::Failed(None)), now);
        assert_eq!(phase(queue.next(now)), None);
        now = now + Duration::from_millis(wait);
        assert_eq!(queue.next_due(now), Some(now));
    }
}

#[test]
fn a_pod_is_deleted_after_its_last_status_was_taken() {
    let (mut queue, uid) = (StatusQueue::default(), PodUid::from("1"));
    queue.publish(&uid, &name(), status("Succeeded"), at(0));
    queue.allow_delete(&uid, &name(), at(0));
    assert_eq!(phase(queue.next(at(0))).as_deref(), Some("Succeeded"));
    assert_eq!(phase(queue.next(at(0))), None);
    queue.done((first(&uid), JobResult::Accepted), at(0));
    assert_eq!(phase(queue.next(at(0))).as_deref(), Some("delete"));
    queue.done((first(&uid), JobResult::Failed(None)), at(0));
    assert_eq!(phase(queue.next(at(500))).as_deref(), Some("delete"));
    queue.done((first(&uid), JobResult::Gone), at(500));
    assert_eq!(phase(queue.next(at(10_000))), None);
}

#[test]
fn a_status_that_differs_on_the_api_server_is_sent_again() {
    let (mut queue, uid) = (StatusQueue::default(), PodUid::from("1"));
    queue.publish(&uid, &name(), status("Failed"), at(0));
    assert!(queue.next(at(0)).is_some());
    queue.reconcile(&uid, &status("Pending"), at(0));
    queue.done((first(&uid), JobResult::Accepted), at(0));
    assert_eq!(phase(queue.next(at(0))), None, "what was under way is no surprise");
    queue.reconcile(&uid, &status("Failed"), at(0));
    assert_eq!(phase(queue.next(at(0))), None);
    queue.reconcile(&uid, &status("Pending"), at(0));
    assert_eq!(phase(queue.next(at(0))).as_deref(), Some("Failed"));
}

#[test]
fn the_answer_about_a_forgotten_pod_is_not_taken_for_its_successors() {
    let (mut queue, uid) = (StatusQueue::default(), PodUid::from("1"));
    queue.publish(&uid, &name(), status("Running"), at(0));
    assert!(queue.next(at(0)).is_some());
    queue.forget(&uid);
    queue.publish(&uid, &name(), status("Pending"), at(0));
    queue.done((first(&uid), JobResult::Gone), at(0));
    assert_eq!(phase(queue.next(at(0))).as_deref(), Some("Pending"));
}

#[test]
fn an_end_that_another_client_wrote_is_not_undone() {
    let (mut queue, uid) = (StatusQueue::default(), PodUid::from("1"));
    queue.publish(&uid, &name(), status("Running"), at(0));
    assert!(queue.next(at(0)).is_some());
    queue.done((first(&uid), JobResult::Accepted), at(0));
    queue.reconcile(&uid, &status("Failed"), at(0));
    assert_eq!(phase(queue.next(at(0))), None);
}

#[test]
fn pods_take_turns() {
    let (mut queue, one, two) = (StatusQueue::default(), PodUid::from("1"), PodUid::from("2"));
    queue.publish(&two, &name(), status("two"), at(0));
    queue.publish(&one, &name(), status("one"), at(0));
    assert_eq!(phase(queue.next(at(0))).as_deref(), Some("two"));
    queue.done((first(&two), JobResult::Accepted), at(0));
    queue.publish(&two, &name(), status("two again"), at(0));
    assert_eq!(phase(queue.next(at(0))).as_deref(), Some("one"));
    assert_eq!(phase(queue.next(at(0))).as_deref(), Some("two again"));
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
fn tell_all(queue: &mut StatusQueue, now: Mono) -> Vec<String> {
    let jobs: Vec<_> = std::iter::from_fn(|| queue.next(now)).collect();
    let told = jobs.iter().map(|job| match job {
        StatusJob::Patch(key, ..) => key.uid.to_string(),
        StatusJob::Delete(key, _) => format!("delete {}", key.uid),
    });
    let told = told.collect();
    for job in jobs {
        let outcome = match &job {
            StatusJob::Patch(..) => JobResult::Accepted,
            StatusJob::Delete(..) => JobResult::Gone,
        };
        queue.done((job.key().clone(), outcome), now);
    }
    told
}

#[test]
fn what_others_wait_for_comes_before_detail() {
    let mut queue = StatusQueue::default();
    let publish = |queue: &mut StatusQueue, uid: &str, status: PodStatus| {
        queue.publish(&PodUid::from(uid), &name(), status, at(0));
    };
    publish(&mut queue, "detail", status("Pending"));
    publish(&mut queue, "ready", ready("True"));
    publish(&mut queue, "ended", status("Failed"));
    publish(&mut queue, "not yet", ready("False"));
    assert_eq!(tell_all(&mut queue, at(0)), ["ready", "ended", "detail", "not yet"]);
    publish(&mut queue, "detail", status("Running"));
    publish(
        &mut queue,
        "ready",
        PodStatus { host_ip: Some("192.0.2.1".to_owned()), ..ready("True") },
    );
    publish(&mut queue, "not yet", PodStatus { reason: Some("Slow".to_owned()), ..ready("False") });
    queue.allow_delete(&PodUid::from("ended"), &name(), at(0));
    assert_eq!(tell_all(&mut queue, at(1_000)), ["delete ended", "detail", "ready", "not yet"]);
    publish(&mut queue, "not yet", status("Pending"));
    publish(&mut queue, "ready", ready("False"));
    assert_eq!(tell_all(&mut queue, at(2_000)), ["ready", "not yet"]);
}

fn waiting(reason: &str, restarts: i32) -> PodStatus {
    let waiting = ContainerStateWaiting { reason: Some(reason.to_owned()), message: None };
    let state = ContainerState { waiting: Some(waiting), ..ContainerState::default() };
    let container =
        ContainerStatus { state: Some(state), restart_count: restarts, ..Default::default() };
    PodStatus { container_statuses: Some(vec![container]), ..status("Pending") }
}

#[test]
fn the_status_of_a_pod_that_has_only_begun_is_delayed() {
    let (mut queue, uid) = (StatusQueue::default(), PodUid::from("1"));
    queue.publish(&uid, &name(), waiting("ContainerCreating", 0), at(1_000));
    assert_eq!(phase(queue.next(at(1_000))), None);
    let more = PodStatus { pod_ip: Some("10.0.0.1".to_owned()), ..waiting("PodInitializing", 0) };
    queue.publish(&uid, &name(), more, at(1_200));
    assert_eq!(queue.next_due(at(1_400)), Some(at(1_500)), "from the first of it on");
    assert_eq!(phase(queue.next(at(1_499))), None);
    assert_eq!(tell_all(&mut queue, at(1_500)), ["1"], "a slow one is told of");
    queue.publish(&uid, &name(), waiting("ContainerCreating", 0), at(2_000));
    assert_eq!(phase(queue.next(at(2_000))), None);
    queue.publish(&uid, &name(), ready("True"), at(2_001));
    assert_eq!(tell_all(&mut queue, at(2_001)), ["1"], "a quick one once, with all of it");
    assert!(queue.is_empty());
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
        let (mut queue, uid) = (StatusQueue::default(), PodUid::from("1"));
        queue.publish(&uid, &name(), before, at(0));
        queue.next(at(0));
        tell_all(&mut queue, at(1_000));
        queue.done((first(&uid), JobResult::Accepted), at(1_000));
        let shown = format!("{after:?}");
        queue.publish(&uid, &name(), after, at(0));
        assert!(queue.next(at(2_000)).is_some(), "{shown}");
    }
}

#[test]
fn an_agent_that_ends_does_not_wait_for_more() {
    let mut queue = StatusQueue::default();
    queue.publish(&PodUid::from("1"), &name(), waiting("ContainerCreating", 0), at(0));
    assert_eq!(phase(queue.next(at(0))), None);
    queue.flush(at(0));
    assert_eq!(queue.next_due(at(0)), Some(at(0)));
    assert_eq!(tell_all(&mut queue, at(0)), ["1"]);
}

#[test]
fn a_pod_that_another_client_took_for_dead_is_shown_as_ready_before_all_else() {
    let mut queue = StatusQueue::default();
    queue.publish(&PodUid::from("1"), &name(), ready("True"), at(0));
    assert_eq!(tell_all(&mut queue, at(0)), ["1"]);
    queue.publish(&PodUid::from("2"), &name(), status("Pending"), at(0));
    queue.reconcile(&PodUid::from("1"), &ready("False"), at(0));
    assert_eq!(tell_all(&mut queue, at(0)), ["1", "2"]);
}

#[test]
fn a_busy_api_server_is_left_alone_for_as_long_as_it_asked() {
    let (mut queue, one, two) = (StatusQueue::default(), PodUid::from("1"), PodUid::from("2"));
    queue.publish(&one, &name(), status("Running"), at(0));
    let job = queue.next(at(0)).unwrap();
    queue.done((job.key().clone(), JobResult::Failed(Some(Duration::from_secs(7)))), at(0));
    queue.publish(&two, &name(), status("Running"), at(0));
    assert_eq!(phase(queue.next(at(6_999))), None, "also with what it has not heard of");
    assert_eq!(queue.next_due(at(6_999)), Some(at(7_000)));
    assert_eq!(tell_all(&mut queue, at(7_000)), ["1", "2"]);
}

#[test]
fn no_more_is_sent_than_a_node_may() {
    let mut queue = StatusQueue::default();
    for number in 0..150 {
        queue.publish(&PodUid::from(format!("{number}")), &name(), status("Running"), at(0));
    }
    assert_eq!(tell_all(&mut queue, at(1_000)).len(), 100);
    assert_eq!(queue.next_due(at(1_000)), Some(at(1_020)));
    assert_eq!(tell_all(&mut queue, at(1_500)).len(), 25);
    assert_eq!(tell_all(&mut queue, at(2_500)).len(), 25);
    assert!(queue.is_empty());
}

#[test]
fn after_an_hour_of_failures_only_the_latest_status_of_each_pod_is_sent() {
    let mut queue = StatusQueue::default();
    let pods = ["1", "2", "3"].map(PodUid::from);
    for second in 0..3_600 {
        for uid in &pods {
            let reason = Some(format!("{second}"));
            queue.publish(uid, &name(), PodStatus { reason, ..status("Running") }, at(0));
        }
        while let Some(job) = queue.next(at(second * 1_000)) {
            queue.done((job.key().clone(), JobResult::Failed(None)), at(second * 1_000));
        }
    }
    let back = at(3_600_000 + 10_000);
    let mut told = Vec::new();
    while let Some(StatusJob::Patch(key, _, status)) = queue.next(back) {
        told.push((key.uid.clone(), status.reason.unwrap()));
        queue.done((key, JobResult::Accepted), back);
    }
    assert_eq!(told, pods.map(|uid| (uid, "3599".to_owned())));
    assert!(queue.is_empty());
}
