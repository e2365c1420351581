//! Dead containers are kept and removed as the deprecated flags of a kubelet say.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on may panic")]

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use oarsman_agent::{
    ActivePodsReader, AdmitAll, AgentConfig, ContainerHooks, CoreDecisions, Inputs, NodeAddresses,
    ReportStore, SyncLoopMonitor,
};
use oarsman_core::gc::containers::ContainerGcPolicy;
use oarsman_core::report::NodeReport;
use oarsman_cri::Runtime;
use oarsman_cri_types::v1::ContainerState;
use oarsman_sim::scenario::{container, pod};
use oarsman_world::faults::FaultPlan;
use oarsman_world::runtime::ImageSource;
use oarsman_world::{World, simulate};
use tokio::sync::mpsc;
use tokio::time::sleep;

fn start(world: &World, container_gc: ContainerGcPolicy) {
    world.runtime.preload(ImageSource::script("world/script:1"));
    let seams = oarsman_sim::seams(world, 1);
    let (_, commands) = mpsc::channel(1);
    let inputs = Inputs {
        sources: Vec::new(),
        admit_handler: Arc::new(AdmitAll),
        decisions: Arc::new(CoreDecisions),
        metrics: Arc::default(),
        report_store: ReportStore::new(Arc::clone(&seams.clock), NodeReport::default()),
        pods: ActivePodsReader::default(),
        node_addresses: NodeAddresses::default(),
        sync_loop_monitor: SyncLoopMonitor::default(),
        container_lifecycle: ContainerHooks::default(),
        tracer: None,
        commands,
    };
    let config = AgentConfig { container_gc, ..oarsman_sim::config() };
    tokio::spawn(oarsman_agent::run(seams, config, inputs));
}

/// A pod with one container that ends after a second.
fn ends(name: &str, policy: &str) -> Pod {
    let mut pod = pod(vec![], vec![container("main", &["out:bye", "sleep:1s", "exit:1"])], 2);
    pod.metadata.name = Some(name.to_owned());
    pod.metadata.uid = Some(format!("uid-{name}"));
    pod.spec.as_mut().unwrap().restart_policy = Some(policy.to_owned());
    pod
}

/// The numbers of dead containers, by pod.
async fn dead(world: &World) -> BTreeMap<String, usize> {
    let mut dead = BTreeMap::new();
    for container in world.runtime.list_containers(None).await.unwrap() {
        if container.state() == ContainerState::ContainerExited {
            let pod = container.labels["io.kubernetes.pod.name"].clone();
            *dead.entry(pod).or_default() += 1;
        }
    }
    dead
}

#[test]
fn dead_containers_are_kept_as_the_deprecated_flags_say() {
    for (per_container, kept) in [(Some(0), 1), (Some(1), 1), (Some(3), 3), (None, 6)] {
        let lived = simulate(1, FaultPlan::quiet(), |world| async move {
            let policy = ContainerGcPolicy { per_container, ..ContainerGcPolicy::default() };
            start(&world, policy);
            world.cluster.create(ends("crasher", "Always"));
            // The sixth end comes after waits of 0, 10, 20, 40 and 80 seconds, each up to half longer.
            sleep(Duration::from_secs(245)).await;
            dead(&world).await["crasher"]
        });
        assert_eq!(lived.unwrap(), kept, "{per_container:?}");
    }
}

#[test]
fn dead_containers_beyond_the_limit_of_the_node_are_removed_with_their_logs() {
    let lived = simulate(1, FaultPlan::quiet(), |world| async move {
        let policy =
            ContainerGcPolicy { per_container: Some(5), total: Some(2), ..Default::default() };
        start(&world, policy);
        for name in ["first", "second", "third"] {
            world.cluster.create(ends(name, "Never"));
            sleep(Duration::from_secs(5)).await;
        }
        world.cluster.create(ends("crasher", "Always"));
        sleep(Duration::from_secs(120)).await;
        // One more may have ended since the last collection; the next one, a minute later at most, removes it.
        let mut seconds_beyond = 0;
        for _ in 0..120 {
            sleep(Duration::from_secs(1)).await;
            let dead = dead(&world).await;
            let is_beyond = dead.values().sum::<usize>() > 2;
            seconds_beyond = if is_beyond { seconds_beyond + 1 } else { 0 };
            assert!(seconds_beyond <= 61, "{dead:?}");
        }
        let dead = dead(&world).await;
        assert!(dead.contains_key("crasher"), "the newest of an active pod stays: {dead:?}");
        assert!(!dead.contains_key("first"), "the oldest is gone: {dead:?}");
        let logs = world.files.below(Path::new("/var/log/pods/default_first_uid-first"));
        assert!(logs.is_empty(), "{logs:?}");
    });
    assert!(lived.is_ok());
}
