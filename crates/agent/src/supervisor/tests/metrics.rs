//! What happens to pods is counted and measured where it happens.

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use oarsman_core::active_pods::PodConfigState;

use super::*;

#[tokio::test(start_paused = true)]
async fn the_life_of_a_pod_is_measured() {
    let fixture = SupervisorFixture::new().await;
    let cluster = &fixture.test.world.cluster;
    let mut web = pod("web", &["forever"]);
    let created = fixture.test.node.seams.clock.wall() - Duration::from_secs(3);
    web.metadata.creation_timestamp = Some(Time(created));
    cluster.create(web.clone());
    fixture.set_sources(&[], &[&web]).await;
    let metrics = &fixture.test.node.metrics;
    let work = |operation| metrics.pod_worker.snapshot().get(operation).map_or(0, |it| it.count);
    assert_eq!((work("create"), work("kill")), (1, 0));
    assert_eq!(metrics.pod_worker_start.snapshot().count, 1);
    assert_eq!(metrics.pod_start.snapshot().count, 1);
    assert_eq!(metrics.containers_per_pod.snapshot().count, 1);
    assert_eq!(metrics.sandboxes.snapshot().values().map(|it| it.count).sum::<u64>(), 1);
    assert_eq!(metrics.started_containers.snapshot(), [("container", 1)].into());
    assert!(metrics.status_sync.snapshot().count >= 1);
    assert!(metrics.relists.durations.snapshot().count >= 1);
    assert!(metrics.relists.last_seen().is_some_and(|last| last > Timestamp::UNIX_EPOCH));
    assert_eq!(metrics.startup.total().count, 0, "the API server has not shown it yet");
    let mut shown = cluster.get(&web.full_name()).unwrap();
    shown.metadata.creation_timestamp = Some(Time(created));
    fixture.set_sources(&[], &[&shown]).await;
    let total = metrics.startup.total();
    assert_eq!(total.count, 1);
    assert!(total.sum >= 8.0, "three seconds before it was seen, and five since: {total:?}");
    fixture.set_sources(&[], &[]).await;
    seconds(10).await;
    assert_eq!(work("kill"), 1);
    let ended = metrics.terminated_containers.snapshot();
    assert_eq!(
        ended.iter().map(|((kind, ..), count)| (*kind, *count)).collect::<Vec<_>>(),
        [("container", 1)]
    );
}

#[tokio::test(start_paused = true)]
async fn a_pod_that_its_source_drops_is_an_orphan_and_one_that_comes_back_a_restart() {
    let (fixture, web) = (SupervisorFixture::new().await, from_file(slow_to_stop("web")));
    let metrics = &fixture.test.node.metrics;
    let uid = web.uid();
    let state = || fixture.test.node.active_pods.by_uid(&uid).map(|pod| pod.config_state());
    fixture.set_sources(&[&web], &[]).await;
    assert_eq!(state(), Some(PodConfigState::Desired));
    fixture.set_sources(&[], &[]).await;
    assert_eq!(state(), Some(PodConfigState::Orphan));
    fixture.set_sources(&[&web], &[]).await;
    seconds(20).await;
    assert_eq!(state(), Some(PodConfigState::Desired));
    assert_eq!(metrics.restarted_pods.snapshot(), [(true, 1)].into());
    assert_eq!(metrics.orphaned_pods.get(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_pod_that_only_the_runtime_knows_is_counted() {
    let fixture = SupervisorFixture::new().await;
    let unknown = fixture.test.start(&Arc::new(pod("unknown", &["forever"])));
    seconds(5).await;
    unknown.task.abort();
    fixture.set_sources(&[], &[]).await;
    seconds(70).await;
    assert_eq!(fixture.test.node.metrics.orphaned_pods.get(), 1);
}
