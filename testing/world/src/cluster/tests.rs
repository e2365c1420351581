//! The semantics of the server for users, and for an agent over its link.

use std::slice::from_ref;
use std::time::Duration;

use futures::StreamExt;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Container, Pod, PodSpec, PodStatus};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use oarsman_cluster::{ClusterError, PodSets};
use oarsman_core::event::{EventRecord, PodEvent};
use oarsman_core::event_queue::CountedEvent;
use oarsman_core::ids::FullName;
use oarsman_core::pod::PodExt;
use tokio::time::{sleep, timeout};

use crate::World;
use crate::faults::FaultPlan;
use crate::fixtures::SECOND;
use crate::link::RemoteService;
use crate::rng::Probability;

fn name(pod: &str) -> FullName {
    FullName { name: pod.to_owned(), namespace: "default".to_owned() }
}

fn pod(name: &str, grace: Option<i64>) -> Pod {
    let spec = PodSpec {
        containers: vec![Container { name: "main".to_owned(), ..Container::default() }],
        termination_grace_period_seconds: grace,
        ..PodSpec::default()
    };
    let metadata = ObjectMeta { name: Some(name.to_owned()), ..ObjectMeta::default() };
    Pod { metadata, spec: Some(spec), status: None }
}

fn status(phase: &str) -> PodStatus {
    PodStatus { phase: Some(phase.to_owned()), ..PodStatus::default() }
}

/// A world without faults and the pod `a` in it.
fn world_with_a(grace: Option<i64>) -> (World, Pod) {
    let world = World::new(1, FaultPlan::quiet());
    let created = world.cluster.create(pod("a", grace)).unwrap();
    (world, created)
}

fn end(pod: &Pod) -> Option<String> {
    pod.metadata.deletion_timestamp.as_ref().map(|time| time.0.to_string())
}

async fn next(sets: &mut PodSets) -> Vec<Pod> {
    let set = timeout(600 * SECOND, sets.next()).await.unwrap().unwrap();
    set.iter().map(|pod| Pod::clone(pod)).collect()
}

#[tokio::test(start_paused = true)]
async fn a_new_pod_is_pending_and_has_a_uid_of_its_own_and_a_version() {
    let (world, first) = world_with_a(None);
    assert_eq!(world.cluster.create(pod("a", None)), None);
    let second = world.cluster.create(pod("b", None)).unwrap();
    assert_ne!(first.uid(), second.uid());
    assert_eq!(first.uid().as_str().len(), 36);
    assert_eq!(first.metadata.generation, Some(1));
    assert_eq!(second.metadata.resource_version.as_deref(), Some("2"));
    let status = first.status.unwrap();
    assert_eq!(
        (status.phase.as_deref(), status.qos_class.as_deref()),
        (Some("Pending"), Some("BestEffort"))
    );
    let given = Pod {
        metadata: ObjectMeta { uid: Some("mine".to_owned()), ..pod("c", None).metadata },
        ..pod("c", None)
    };
    assert_eq!(world.cluster.create(given).unwrap().uid().as_str(), "mine");
}

#[tokio::test(start_paused = true)]
async fn only_a_changed_spec_makes_a_new_generation_and_only_a_change_a_new_version() {
    let (world, created) = world_with_a(None);
    let versions = |pod: &Pod| (pod.metadata.generation, pod.metadata.resource_version.clone());
    let update =
        |change: fn(&mut Pod)| versions(&world.cluster.update(&name("a"), change).unwrap());
    assert_eq!(update(|_| {}), (Some(1), Some("1".to_owned())));
    let label =
        |pod: &mut Pod| pod.metadata.labels = Some([("a".to_owned(), "b".to_owned())].into());
    assert_eq!(update(label), (Some(1), Some("2".to_owned())));
    let image =
        |pod: &mut Pod| pod.spec.as_mut().unwrap().containers[0].image = Some("b".to_owned());
    assert_eq!(update(image), (Some(2), Some("3".to_owned())));
    let identity = |pod: &mut Pod| pod.metadata.uid = Some("other".to_owned());
    assert_eq!(update(identity), (Some(2), Some("3".to_owned())));
    assert_eq!(world.cluster.get(&name("a")).unwrap().uid(), created.uid());
    assert_eq!(world.cluster.update(&name("b"), |_| {}), None);
}

#[tokio::test(start_paused = true)]
async fn a_deletion_takes_the_grace_given_or_the_pods_own_or_half_a_minute() {
    let rows = [
        (Some(5), None, Some((5, "2027-01-01T00:00:05Z"))),
        (Some(5), Some(60), Some((60, "2027-01-01T00:01:00Z"))),
        (None, None, Some((30, "2027-01-01T00:00:30Z"))),
        (Some(5), Some(-1), Some((1, "2027-01-01T00:00:01Z"))),
        (Some(5), Some(0), None),
        (Some(0), None, None),
    ];
    for (own, given, left) in rows {
        let (world, _) = world_with_a(own);
        assert!(world.cluster.delete(&name("a"), given));
        let stored = world.cluster.get(&name("a"));
        let grace = stored.as_ref().and_then(|pod| pod.metadata.deletion_grace_period_seconds);
        assert_eq!(grace, left.map(|(grace, _)| grace), "{own:?} {given:?}");
        assert_eq!(stored.as_ref().and_then(end).as_deref(), left.map(|(_, end)| end));
        assert!(stored.is_none_or(|pod| pod.metadata.generation == Some(2)));
    }
}

#[tokio::test(start_paused = true)]
async fn a_second_deletion_only_shortens_the_first_counted_from_its_beginning() {
    let rows = [
        (Some(10), Some((10, "2027-01-01T00:00:10Z"))),
        (Some(20), Some((20, "2027-01-01T00:00:20Z"))),
        (Some(40), Some((20, "2027-01-01T00:00:20Z"))),
        (None, Some((20, "2027-01-01T00:00:20Z"))),
        (Some(0), None),
    ];
    for (second, left) in rows {
        let (world, _) = world_with_a(None);
        world.cluster.delete(&name("a"), Some(20));
        sleep(5 * SECOND).await;
        assert!(world.cluster.delete(&name("a"), second));
        let stored = world.cluster.get(&name("a"));
        let grace = stored.as_ref().and_then(|pod| pod.metadata.deletion_grace_period_seconds);
        assert_eq!(grace, left.map(|(grace, _)| grace), "{second:?}");
        assert_eq!(stored.as_ref().and_then(end).as_deref(), left.map(|(_, end)| end));
    }
}

#[tokio::test(start_paused = true)]
async fn a_pod_that_has_ended_is_deleted_at_once_and_what_is_gone_not_at_all() {
    for phase in ["Failed", "Succeeded"] {
        let (world, created) = world_with_a(None);
        let agent = world.cluster_for(1);
        agent.publish(&name("a"), &created.uid(), &status(phase)).await.unwrap();
        assert!(world.cluster.delete(&name("a"), None));
        assert_eq!(world.cluster.get(&name("a")), None);
        assert!(!world.cluster.delete(&name("a"), None));
    }
}

#[tokio::test(start_paused = true)]
async fn a_pod_of_the_same_name_and_another_uid_is_never_touched() {
    let (world, old) = world_with_a(None);
    let agent = world.cluster_for(1);
    world.cluster.delete(&name("a"), Some(0));
    let gone = Err(ClusterError::Gone { object: ClusterError::pod(&name("a")) });
    assert_eq!(agent.publish(&name("a"), &old.uid(), &status("Running")).await, gone);
    let new = world.cluster.create(pod("a", None)).unwrap();
    assert_eq!(agent.publish(&name("a"), &old.uid(), &status("Running")).await, gone);
    assert_eq!(agent.delete(&name("a"), &old.uid()).await, gone);
    assert_eq!(world.cluster.get(&name("a")), Some(new.clone()));
    assert!(world.cluster.statuses().is_empty() && world.cluster.agent_deletions().is_empty());
    agent.publish(&name("a"), &new.uid(), &status("Running")).await.unwrap();
    assert_eq!(world.cluster.get(&name("a")).unwrap().status, Some(status("Running")));
}

#[tokio::test(start_paused = true)]
async fn the_history_says_what_was_published_and_how_things_stood_at_a_deletion() {
    for (phase, asked) in [("Running", false), ("Running", true), ("Failed", true)] {
        let (world, created) = world_with_a(None);
        let (agent, uid) = (world.cluster_for(1), created.uid());
        if asked {
            world.cluster.delete(&name("a"), None);
        }
        agent.publish(&name("a"), &uid, &status(phase)).await.unwrap();
        agent.delete(&name("a"), &uid).await.unwrap();
        let published = world.cluster.statuses();
        assert_eq!(published.len(), 1);
        assert_eq!((&published[0].uid, &published[0].status), (&uid, &status(phase)));
        let deletion = &world.cluster.agent_deletions()[0];
        assert_eq!((deletion.terminal, deletion.asked), (phase == "Failed", asked));
        assert_eq!(world.cluster.list(), []);
    }
}

#[tokio::test(start_paused = true)]
async fn a_watch_begins_with_all_pods_and_sends_every_change_once() {
    let (world, created) = world_with_a(None);
    let agent = world.cluster_for(1);
    let mut sets = agent.pods().unwrap();
    assert_eq!(next(&mut sets).await, from_ref(&created));
    agent.publish(&name("a"), &created.uid(), &status("Running")).await.unwrap();
    assert_eq!(next(&mut sets).await[0].status, Some(status("Running")));
    agent.publish(&name("a"), &created.uid(), &status("Running")).await.unwrap();
    assert!(timeout(3_600 * SECOND, sets.next()).await.is_err());
    world.cluster.delete(&name("a"), Some(0));
    assert_eq!(next(&mut sets).await, []);
}

#[tokio::test(start_paused = true)]
async fn a_slow_reader_sees_the_latest_only() {
    let (world, _) = world_with_a(None);
    let mut sets = world.cluster_for(1).pods().unwrap();
    next(&mut sets).await;
    for other in ["b", "c", "d"] {
        world.cluster.create(pod(other, None));
        sleep(SECOND).await;
    }
    assert_eq!(next(&mut sets).await.len(), 4);
    assert!(timeout(3_600 * SECOND, sets.next()).await.is_err());
}

#[tokio::test(start_paused = true)]
async fn a_watch_outlives_an_outage_and_calls_fail_meanwhile() {
    let (world, created) = world_with_a(None);
    let agent = world.cluster_for(1);
    let mut sets = agent.pods().unwrap();
    next(&mut sets).await;
    world.cluster.restart(60 * SECOND, Probability::NEVER);
    let published = agent.publish(&name("a"), &created.uid(), &status("Running")).await;
    assert!(matches!(published, Err(ClusterError::Unavailable { .. })), "{published:?}");
    assert_eq!(next(&mut sets).await, from_ref(&created));
    assert!(world.clock.elapsed() >= 60 * SECOND, "{:?}", world.clock.elapsed());
    agent.publish(&name("a"), &created.uid(), &status("Running")).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn with_faults_calls_fail_or_take_effect_all_the_same_and_the_watch_catches_up() {
    let world = World::new(1, FaultPlan::rough(Duration::MAX));
    let created = world.cluster.create(pod("a", None)).unwrap();
    let agent = world.cluster_for(1);
    let mut failures = 0;
    for number in 0..300 {
        let status = status(&number.to_string());
        let result = agent.publish(&name("a"), &created.uid(), &status).await;
        failures += usize::from(result.is_err());
    }
    let taken = world.cluster.statuses().len();
    assert!(failures > 0 && taken > 300 - failures && taken < 300, "{failures} {taken}");
    let mut sets = agent.pods().unwrap();
    assert_eq!(next(&mut sets).await, world.cluster.list());
}

#[tokio::test(start_paused = true)]
async fn a_watch_with_faults_stalls_at_times_and_then_sends_the_newest_set() {
    let world = World::new(1, FaultPlan::rough(Duration::MAX));
    let mut sets = world.cluster_for(1).pods().unwrap();
    let mut longest = Duration::ZERO;
    for number in 0..100 {
        world.cluster.create(pod(&format!("pod-{number}"), None));
        let began = world.clock.elapsed();
        while next(&mut sets).await.len() <= number {}
        longest = longest.max(world.clock.elapsed() - began);
    }
    assert!(longest > 10 * SECOND, "{longest:?}");
}

fn counted(pod: &Pod, event: PodEvent, count: i32) -> CountedEvent {
    let (name, time) = (event.reason.to_string(), Timestamp::UNIX_EPOCH);
    let record =
        EventRecord { name, message: event.message.clone(), count, first: time, last: time };
    let (pod, uid) = (pod.full_name(), pod.uid());
    CountedEvent { pod, uid, resource_version: None, event, record }
}

#[tokio::test(start_paused = true)]
async fn of_events_the_latest_are_kept_and_one_that_is_sent_again_is_there_once() {
    let (world, created) = world_with_a(None);
    for number in 0..2_000 {
        let event = PodEvent::normal("Pulled", number.to_string());
        world.cluster.record(counted(&created, event, number)).unwrap();
    }
    let agent = world.cluster_for(1);
    let killing = counted(&created, PodEvent::normal("Killing", "main"), 1);
    agent.record(&killing).await.unwrap();
    agent.record(&killing).await.unwrap();
    let events = world.cluster.events();
    assert_eq!(events.len(), 1_024);
    assert_eq!(events[1_023].event.reason, "Killing");
    assert_eq!(events[0].event.message, (2_000 - 1_023).to_string());
}

#[tokio::test(start_paused = true)]
async fn a_dead_incarnation_neither_receives_nor_changes_anything() {
    let (world, created) = world_with_a(None);
    let agent = world.cluster_for(1);
    let mut sets = agent.pods().unwrap();
    world.kill_switch.end();
    assert!(timeout(3_600 * SECOND, sets.next()).await.is_err());
    let (pod, uid, status) = (name("a"), created.uid(), status("Running"));
    assert!(timeout(3_600 * SECOND, agent.publish(&pod, &uid, &status)).await.is_err());
    assert_eq!(world.cluster.list(), [created]);
}
