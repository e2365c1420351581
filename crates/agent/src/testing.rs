//! For unit tests: a node over the simulated world. Calls can be held back or made to fail by name, and every step of a worker is logged.

mod calls;
mod step_log;

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Container, Pod, PodSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use oarsman_core::admission::{AdmissionNode, Mode, Ownership};
use oarsman_core::cri_spec::NodeSettings;
use oarsman_core::features::FeatureGates;
use oarsman_core::gc::containers::ContainerGcPolicy;
use oarsman_core::ids::PodUid;
use oarsman_core::image::verification::CredentialVerificationPolicy;
use oarsman_core::lifecycle::WorkerStart;
use oarsman_core::node::addresses::AddressSettings;
use oarsman_core::pod::{HASH_ANNOTATION, PodExt, SOURCE_ANNOTATION};
use oarsman_core::report::{NodeReport, PodReport};
use oarsman_core::requeue::Requeue;
use oarsman_core::user_namespace::UserNamespaceSettings;
use oarsman_seam::WithMiddleware;
use oarsman_sync::{Guarded, ordered_watch};
use oarsman_world::World;
use oarsman_world::faults::FaultPlan;
use oarsman_world::runtime::ImageSource;
use oarsman_world::seams::POD_LOGS;
use oarsman_world::trace::{ContainerTransition, TraceEntry};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use crate::active_pods::{ActivePodsReader, PodUpdates};
use crate::container_lifecycle::ContainerHooks;
use crate::event_recorder::EventRecorder;
use crate::images::ImageManagerConfig;
use crate::images::image_uses::ImageUses;
use crate::images::pull_manager::PullManager;
use crate::mailbox::Mailbox;
use crate::metrics::AgentMetrics;
use crate::mirror_manager::MirrorManager;
use crate::node::{AgentConfig, AgentContext, PendingResizes, WorkerNotice};
use crate::node_addresses::NodeAddresses;
use crate::node_status::NodeEventSender;
use crate::pull_queue::PullQueue;
use crate::report_store::ReportStore;
use crate::runtime_health::RuntimeHealthCache;
use crate::seams::Seams;
use crate::status_manager::{self, StatusManager};
use crate::sync_loop_monitor::SyncLoopMonitor;
use crate::user_namespaces::UserNamespaceManager;
use crate::volume_manager::VolumeManager;
use crate::{CHANNEL_CAPACITY, pod_worker};

pub(crate) use calls::Calls;
pub(crate) use step_log::StepLog;

/// An image that is there, and one that has to be pulled.
const PRESENT: &str = "world/script:1";
pub(crate) const PULLABLE: &str = "reg.world/script:1";

const ROOT: &str = "/var/lib/world";

/// A node in a world in which nothing goes wrong by itself.
pub(crate) struct TestNode {
    pub(crate) world: World,
    pub(crate) node: Arc<AgentContext>,
    pub(crate) calls: Calls,
    pub(crate) log: Arc<StepLog>,
    pub(crate) notices: mpsc::Receiver<WorkerNotice>,
    pub(crate) admission_node: ordered_watch::Sender<AdmissionNode>,
}

/// A pod worker on such a node.
pub(crate) struct TestWorker {
    pub(crate) mailbox: Mailbox,
    pub(crate) task: JoinHandle<()>,
}

impl TestNode {
    pub(crate) fn new() -> Self {
        Self::with(|_| {})
    }

    /// With another node than usual.
    pub(crate) fn with(edit: impl FnOnce(&mut AgentContext)) -> Self {
        let world = World::new(1, FaultPlan::quiet());
        world.runtime.preload(ImageSource::script(PRESENT));
        world
            .runtime
            .publish(ImageSource::script(PULLABLE), oarsman_world::runtime::ImageAccess::PUBLIC);
        Self::with_incarnation(world, 1, edit)
    }

    /// As that life of an agent in the world, which ends the one before.
    pub(crate) fn with_incarnation(
        world: World,
        life: u32,
        edit: impl FnOnce(&mut AgentContext),
    ) -> Self {
        let (calls, log) = (Calls::default(), Arc::new(StepLog::new()));
        let (sender, notices) = mpsc::channel(CHANNEL_CAPACITY);
        let mut node = node(seams(&world, life, &calls), sender);
        node.decisions = Arc::clone(&log) as _;
        edit(&mut node);
        tokio::spawn(status_manager::sync_batch(node.statuses.clone(), node.seams.clone()));
        let admission_node = ordered_watch::Sender::new(node.config.admission_node.clone());
        Self { world, node: Arc::new(node), calls, log, notices, admission_node }
    }

    /// Starts a worker for a pod that a source holds.
    pub(crate) fn start(&self, pod: &Arc<Pod>) -> TestWorker {
        self.start_as(pod, WorkerStart::Wanted(Arc::clone(pod)))
    }

    pub(crate) fn start_as(&self, pod: &Arc<Pod>, begin: WorkerStart) -> TestWorker {
        self.node.report_store.set_pod(pod, false);
        let (node, mailbox) = (Arc::clone(&self.node), Mailbox::default());
        let life = pod_worker::run(node, pod.uid(), pod.full_name(), begin, mailbox.clone());
        TestWorker { mailbox, task: tokio::spawn(life) }
    }

    pub(crate) fn report(&self, uid: &PodUid) -> PodReport {
        let mut pods = self.node.report_store.report().pods.into_iter();
        pods.find(|report| report.pod.uid() == *uid).unwrap_or_default()
    }

    /// The subjects of the calls of that name that reached the world.
    pub(crate) fn called(&self, name: &str) -> Vec<String> {
        let records = self.world.trace.records().into_iter();
        let subject = |entry| match entry {
            TraceEntry::Called { call, subject, .. } if call == name => Some(subject),
            _ => None,
        };
        records.filter_map(|record| subject(record.entry)).collect()
    }

    /// What happened to containers of the pod, and when.
    pub(crate) fn changes(&self, uid: &PodUid) -> Vec<(Duration, ContainerTransition)> {
        let records = self.world.trace.records().into_iter();
        let change = |entry| match entry {
            TraceEntry::Container { target, change } if target.pod_uid == uid.as_str() => {
                Some(change)
            }
            _ => None,
        };
        records.filter_map(|record| Some((record.at, change(record.entry)?))).collect()
    }

    /// When containers of the pod were started.
    pub(crate) fn starts(&self, uid: &PodUid) -> Vec<Duration> {
        let changes = self.changes(uid).into_iter();
        changes
            .filter(|(_, change)| *change == ContainerTransition::Started)
            .map(|(at, _)| at)
            .collect()
    }
}

fn seams(world: &World, life: u32, calls: &Calls) -> Seams {
    let world = world.seams(life);
    Seams {
        runtime: Arc::new(WithMiddleware::new(world.runtime, calls.clone())),
        cluster: Arc::new(WithMiddleware::new(world.cluster, calls.clone())),
        volumes: Arc::new(WithMiddleware::new(world.volumes, calls.clone())),
        cgroups: Arc::new(WithMiddleware::new(world.cgroups, calls.clone())),
        host_info: world.host_info,
        pod_files: Arc::new(WithMiddleware::new(world.pod_files, calls.clone())),
        records: Arc::new(WithMiddleware::new(world.records, calls.clone())),
        pull_records: Arc::new(WithMiddleware::new(world.pull_records, calls.clone())),
        credential_plugins: world.credential_plugins,
        clock: world.clock,
        network: world.network,
        checkpoints: None,
    }
}

fn node(seams: Seams, notices: mpsc::Sender<WorkerNotice>) -> AgentContext {
    let report_store = ReportStore::new(Arc::clone(&seams.clock), NodeReport::default());
    let metrics = Arc::<AgentMetrics>::default();
    let statuses = StatusManager::new(Arc::clone(&seams.clock), Arc::clone(&metrics));
    let (pull_records, clock) = (Arc::clone(&seams.pull_records), Arc::clone(&seams.clock));
    AgentContext {
        began: seams.clock.wall(),
        pull_manager: PullManager::new(pull_records, clock, &config().images),
        image_uses: ImageUses::default(),
        active_pods: ActivePodsReader::default(),
        node_events: NodeEventSender::new(&config(), Arc::clone(&seams.clock)),
        config: config(),
        decisions: Arc::new(crate::CoreDecisions),
        mirrors: MirrorManager::new(statuses.clone()),
        statuses,
        pod_updates: PodUpdates::default(),
        identity: ordered_watch::channel(None).1,
        admission_node: ordered_watch::channel(AdmissionNode::default()).1,
        addresses: NodeAddresses::default(),
        runtime_health: RuntimeHealthCache::default(),
        sync_loop_monitor: SyncLoopMonitor::default(),
        recorder: EventRecorder::new(Arc::clone(&report_store), Arc::clone(&seams.clock)),
        volume_manager: VolumeManager::new(
            Arc::clone(&seams.volumes),
            ROOT.into(),
            Arc::clone(&metrics),
        ),
        user_namespaces: UserNamespaceManager::new(
            Arc::clone(&seams.pod_files),
            UserNamespaceSettings::new(65536, 110),
        ),
        pulls: PullQueue::new(4),
        container_lifecycle: ContainerHooks::default(),
        background: vec![Arc::new(pod_worker::Prober::default())],
        credentials: Guarded::default(),
        pulled: ordered_watch::Sender::new(0),
        resizes: PendingResizes::default(),
        metrics,
        tracer: None,
        report_store,
        notices,
        seams,
    }
}

fn config() -> AgentConfig {
    AgentConfig {
        runtime_name: "world".to_owned(),
        recursive_read_only: false,
        user_namespaces: UserNamespaceSettings::new(65536, 110),
        addresses: AddressSettings::default(),
        features: FeatureGates::default(),
        settings: NodeSettings::of_memory(1 << 30),
        requeue: Requeue::default(),
        longest_crash_backoff: Duration::from_secs(300),
        pod_logs: POD_LOGS.into(),
        log_rotation: None,
        container_gc: ContainerGcPolicy::default(),
        relist_period: Duration::from_secs(60),
        parallel_pulls: 4,
        images: ImageManagerConfig {
            verification: Some(CredentialVerificationPolicy::default()),
            ..ImageManagerConfig::default()
        },
        providers: Vec::new(),
        ownership: Ownership { mode: Mode::Kubelet, root: ROOT.to_owned() },
        admission_node: AdmissionNode::default(),
        node_status_config: None,
    }
}

/// A pod of the API server with one container that performs this script. Its UID is `uid-` and its name.
pub(crate) fn pod(name: &str, script: &[&str]) -> Pod {
    let container = Container {
        name: "main".to_owned(),
        image: Some(PRESENT.to_owned()),
        image_pull_policy: Some("IfNotPresent".to_owned()),
        args: Some(script.iter().map(|&step| step.to_owned()).collect()),
        ..Container::default()
    };
    let spec = PodSpec {
        containers: vec![container],
        restart_policy: Some("Always".to_owned()),
        termination_grace_period_seconds: Some(30),
        ..PodSpec::default()
    };
    let mut pod = Pod { spec: Some(spec), ..Pod::default() };
    pod.metadata.name = Some(name.to_owned());
    pod.metadata.namespace = Some("default".to_owned());
    pod.metadata.uid = Some(format!("uid-{name}"));
    pod
}

/// The same pod from a file.
pub(crate) fn from_file(mut pod: Pod) -> Pod {
    let uid = pod.uid();
    let annotations = [(SOURCE_ANNOTATION, "file"), (HASH_ANNOTATION, uid.as_str())];
    let annotations = annotations.map(|(key, value)| (key.to_owned(), value.to_owned()));
    pod.metadata.annotations.get_or_insert_default().extend(annotations);
    pod
}

/// The same pod, whose deletion was asked for.
pub(crate) fn deleted(pod: &Pod, grace: i64) -> Arc<Pod> {
    let mut pod = pod.clone();
    pod.metadata.deletion_timestamp = Some(Time(Timestamp::UNIX_EPOCH));
    pod.metadata.deletion_grace_period_seconds = Some(grace);
    Arc::new(pod)
}

pub(crate) async fn seconds(seconds: u64) {
    tokio::time::sleep(Duration::from_secs(seconds)).await;
}
