//! The read model of active pods, through a pod's lifecycle and a restart of the agent.

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::{Container, Pod, PodSpec};
use oarsman_agent::{
    ActivePodsReader, AdmitAll, ContainerHooks, CoreDecisions, Inputs, NodeAddresses, ReportStore,
    SyncLoopMonitor,
};
use oarsman_core::active_pods::{ActivePod, PodStage};
use oarsman_core::ids::{ContainerId, FullName};
use oarsman_core::lifecycle::Stage;
use oarsman_core::report::NodeReport;
use oarsman_core::sources::Source;
use oarsman_world::faults::FaultPlan;
use oarsman_world::runtime::ImageSource;
use oarsman_world::{World, simulate};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;
use tokio::time::sleep;

const IMAGE: &str = "world/script:1";

/// The agent's inputs and outputs besides the world.
struct NodeFixture {
    /// The manifests of static pods.
    files: watch::Sender<Vec<Pod>>,
    pods: ActivePodsReader,
}

impl NodeFixture {
    fn by_name(&self, pod: &str) -> Option<Arc<ActivePod>> {
        self.pods.by_name(&name(pod))
    }

    fn stage(&self, uid: &str) -> Option<PodStage> {
        self.pods.by_uid(&uid.into()).map(|pod| pod.stage)
    }
}

fn start_agent(world: &World, incarnation: u32, node: &NodeFixture) -> JoinHandle<()> {
    let seams = oarsman_sim::seams(world, incarnation);
    let (_, commands) = mpsc::channel(1);
    let inputs = Inputs {
        sources: vec![oarsman_sim::file_source(&node.files)],
        admit_handler: Arc::new(AdmitAll),
        decisions: Arc::new(CoreDecisions),
        metrics: Arc::default(),
        report_store: ReportStore::new(Arc::clone(&seams.clock), NodeReport::default()),
        pods: node.pods.clone(),
        node_addresses: NodeAddresses::default(),
        sync_loop_monitor: SyncLoopMonitor::default(),
        container_lifecycle: ContainerHooks::default(),
        tracer: None,
        commands,
    };
    tokio::spawn(oarsman_agent::run(seams, oarsman_sim::config(), inputs))
}

/// A pod whose container takes three seconds to end after SIGTERM.
fn pod(name: &str, uid: &str) -> Pod {
    let container = Container {
        name: "main".to_owned(),
        image: Some(IMAGE.to_owned()),
        image_pull_policy: Some("IfNotPresent".to_owned()),
        args: Some(vec!["on-term:sleep:3s,exit:0".to_owned(), "forever".to_owned()]),
        ..Container::default()
    };
    let spec = PodSpec {
        containers: vec![container],
        priority: Some(7),
        restart_policy: Some("Always".to_owned()),
        termination_grace_period_seconds: Some(30),
        ..PodSpec::default()
    };
    let mut pod = Pod { spec: Some(spec), ..Pod::default() };
    pod.metadata.name = Some(name.to_owned());
    pod.metadata.namespace = Some("default".to_owned());
    pod.metadata.uid = Some(uid.to_owned());
    pod
}

fn name(pod: &str) -> FullName {
    FullName { name: pod.to_owned(), namespace: "default".to_owned() }
}

fn container_of(pod: &ActivePod) -> Option<ContainerId> {
    let container = pod.status()?.container_statuses.as_ref()?.first()?;
    let (_, id) = container.container_id.as_ref()?.split_once("://")?;
    Some(ContainerId::from(id))
}

/// Runs a world with one agent that runs a pod of the API server and a static one.
fn with_running_pods(happens: impl AsyncFnOnce(&World, &NodeFixture, JoinHandle<()>)) {
    let lived = simulate(1, FaultPlan::quiet(), |world| async move {
        world.runtime.preload(ImageSource::script(IMAGE));
        let files = watch::Sender::new(vec![pod("static", "static-1")]);
        let node = NodeFixture { files, pods: ActivePodsReader::default() };
        let agent = start_agent(&world, 1, &node);
        world.cluster.create(pod("web", "web-1"));
        sleep(Duration::from_secs(10)).await;
        happens(&world, &node, agent).await;
    });
    assert!(lived.is_ok(), "the world did not run: {lived:?}");
}

#[test]
fn a_static_pod_is_found_by_the_uid_of_its_mirror_pod() {
    with_running_pods(async |world, node, agent| {
        let mirror = world.cluster.get(&name("static")).unwrap().metadata.uid.unwrap();
        let found = node.pods.by_name_and_uid(&name("static"), &mirror.as_str().into()).unwrap();
        assert_ne!(found.pod.metadata.uid.as_ref(), Some(&mirror));
        assert_eq!(found.source(), Some(Source::File));
        assert!(node.pods.by_name_and_uid(&name("web"), &mirror.as_str().into()).is_none());
        agent.abort();
    });
}

#[test]
fn a_pod_that_runs_is_found_by_name_and_container_with_the_status_that_was_published() {
    with_running_pods(async |world, node, agent| {
        for (name, source) in [("web", Source::Api), ("static", Source::File)] {
            let found = node.by_name(name).unwrap();
            assert_eq!(found.stage, PodStage::Worker(Stage::Syncing), "{name}");
            assert_eq!((found.priority(), found.source()), (7, Some(source)));
            assert_eq!(found.status().unwrap().phase.as_deref(), Some("Running"), "{name}");
            let container = container_of(&found).unwrap();
            assert!(Arc::ptr_eq(&found, &node.pods.by_container(&container).unwrap()));
        }
        let shown = world.cluster.get(&name("web")).unwrap().status.unwrap();
        let found = node.by_name("web").unwrap();
        assert_eq!(found.status().unwrap().container_statuses, shown.container_statuses);
        agent.abort();
    });
}

#[test]
fn a_pod_that_waits_for_a_name_is_found_by_it_once_the_other_pod_is_gone() {
    with_running_pods(async |_, node, agent| {
        let container = container_of(&node.by_name("static").unwrap()).unwrap();
        node.files.send_replace(vec![pod("static", "static-2")]);
        sleep(Duration::from_millis(500)).await;
        assert_eq!(node.stage("static-1"), Some(PodStage::Worker(Stage::Terminating)));
        assert_eq!(node.stage("static-2"), Some(PodStage::Waiting));
        assert_eq!(node.by_name("static"), node.pods.by_uid(&"static-1".into()));
        sleep(Duration::from_secs(120)).await;
        assert_eq!(node.stage("static-1"), None);
        assert_eq!(node.stage("static-2"), Some(PodStage::Worker(Stage::Syncing)));
        assert_eq!(node.by_name("static"), node.pods.by_uid(&"static-2".into()));
        assert_eq!(node.pods.by_container(&container), None);
        agent.abort();
    });
}

#[test]
fn a_pod_that_is_deleted_is_removed_and_another_one_keeps_its_entry() {
    with_running_pods(async |world, node, agent| {
        let other = node.by_name("static").unwrap();
        world.cluster.delete(&name("web"), Some(10));
        sleep(Duration::from_millis(500)).await;
        assert_eq!(node.stage("web-1"), Some(PodStage::Worker(Stage::Terminating)));
        sleep(Duration::from_secs(60)).await;
        assert_eq!(node.by_name("web"), None);
        assert!(Arc::ptr_eq(&other, &node.by_name("static").unwrap()), "nothing of it changed");
        agent.abort();
    });
}

#[test]
fn readers_outlive_an_agent_and_read_what_the_next_one_finds() {
    with_running_pods(async |world, node, agent| {
        let before = node.by_name("web").unwrap();
        agent.abort();
        sleep(Duration::from_secs(1)).await;
        let next = start_agent(world, 2, node);
        sleep(Duration::from_secs(10)).await;
        let after = node.by_name("web").unwrap();
        assert!(!Arc::ptr_eq(&before, &after));
        assert_eq!(after.stage, PodStage::Worker(Stage::Syncing));
        assert!(container_of(&before).is_some());
        assert_eq!(container_of(&before), container_of(&after), "nothing was restarted");
        next.abort();
    });
}
