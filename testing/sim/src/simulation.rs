//! Runs a simulation: performs the actions of the plan, and kills and restarts the agent.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use oarsman_agent::seams::Seams;
use oarsman_agent::{
    ActivePodsReader, AgentCommand, AgentConfig, ContainerHooks, Decisions, ImageManagerConfig,
    Inputs, NodeAddresses, NodeStatusConfig, ReportStore, SyncLoopMonitor,
};
use oarsman_core::admission::{AdmissionNode, Mode, NodeAdmitHandlers, Ownership};
use oarsman_core::cri_spec::NodeSettings;
use oarsman_core::features::FeatureGates;
use oarsman_core::gc::containers::ContainerGcPolicy;
use oarsman_core::gc::images::ImageGcPolicy;
use oarsman_core::ids::{FullName, PodUid};
use oarsman_core::image::verification::CredentialVerificationPolicy;
use oarsman_core::labels::POD_UID_LABEL;
use oarsman_core::lifecycle::{KillRequest, KillRequester, PodFailure};
use oarsman_core::log_rotation::LogRotationPolicy;
use oarsman_core::node::addresses::AddressSettings;
use oarsman_core::node::{MachineInfo, NodeProfile};
use oarsman_core::pod::{HASH_ANNOTATION, PodExt};
use oarsman_core::report::NodeReport;
use oarsman_core::requeue::Requeue;
use oarsman_core::user_namespace::UserNamespaceSettings;
use oarsman_cri::Runtime;
use oarsman_cri_types::v1::{AuthConfig, ContainerState, PodSandboxMetadata, PodSandboxState};
use oarsman_net::HttpGet;
use oarsman_world::cluster::{PublishedStatus, RecordedEvent};
use oarsman_world::link::RemoteService;
use oarsman_world::network::FakeServer;
use oarsman_world::rng::Probability;
use oarsman_world::runtime::{ImageAccess, ImageSource};
use oarsman_world::trace::TraceRecord;
use oarsman_world::{World, simulate};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep, sleep_until};

use crate::plan::{ACTION_PERIOD, EDITED, ExternalAction, SimulationPlan};
use crate::random_pods::{PRESENT, PRESENT_TOO, PULLABLE};
use crate::random_probes;
use crate::scenario::PRIVATE;

/// How long the machine takes to restart a dead agent.
const RESTART: Duration = Duration::from_secs(2);
/// The directory of pods' logs.
pub(crate) const POD_LOGS: &str = "/var/log/pods";

/// The result of a simulation, for the invariants.
pub struct SimulationResult {
    /// The plan.
    pub plan: SimulationPlan,
    /// The external actions: when, and on which pod (its UID).
    pub actions: Vec<(Duration, PodUid, ExternalAction)>,
    /// The world's trace.
    pub records: Vec<TraceRecord>,
    /// The hash of the trace.
    pub hash: u64,
    /// The statuses that the API server accepted from the agent.
    pub statuses: Vec<PublishedStatus>,
    /// The latest events that the API server accepted from the agent.
    pub events: Vec<RecordedEvent>,
    /// The requests that reached servers.
    pub asked: Vec<HttpGet>,
    /// The state at the end.
    pub final_state: FinalState,
}

/// Runs the plan with these decisions.
///
/// # Errors
/// When the thread's event loop cannot be made.
pub fn run(
    plan: &SimulationPlan,
    decisions: Arc<dyn Decisions>,
) -> std::io::Result<SimulationResult> {
    simulate(plan.seed, plan.faults, |world| Simulation::new(world, plan.clone(), decisions).run())
}

/// The state at the end of a simulation.
#[derive(Debug)]
pub struct FinalState {
    /// Sandboxes the runtime still has: pod UID, id and whether it is ready.
    pub sandboxes: Vec<(PodUid, String, bool)>,
    /// Containers the runtime still has: pod UID, name and state.
    pub containers: Vec<(PodUid, String, ContainerState)>,
    /// Pods with a directory or a cgroup.
    pub on_disk: Vec<PodUid>,
    /// Pods the API server still has.
    pub objects: Vec<Pod>,
    /// Mirror pods the API server still has.
    pub mirrors: Vec<Pod>,
    /// Manifests in the directory.
    pub files: Vec<Pod>,
}

struct Simulation {
    world: World,
    plan: SimulationPlan,
    decisions: Arc<dyn Decisions>,
    files: watch::Sender<Vec<Pod>>,
    actions: Vec<(Duration, PodUid, ExternalAction)>,
    incarnation: u32,
    /// The numbers of calls after which the next incarnations are killed.
    kills: Vec<u64>,
    /// Whether the running incarnation will be killed.
    will_be_killed: bool,
    agent: Option<RunningAgent>,
}

struct RunningAgent {
    task: JoinHandle<()>,
    commands: mpsc::Sender<AgentCommand>,
}

impl Simulation {
    fn new(world: World, plan: SimulationPlan, decisions: Arc<dyn Decisions>) -> Self {
        for image in [PRESENT, PRESENT_TOO] {
            world.runtime.preload(ImageSource::script(image));
            world.runtime.publish(ImageSource::script(image), ImageAccess::PUBLIC);
        }
        world
            .runtime
            .preload(ImageSource { pinned: true, ..ImageSource::script("world/pinned:1") });
        // One more image, and the disk is full.
        world.disk.set_capacity(4 << 20);
        let far = ImageAccess { time: Duration::from_secs(4), ..ImageAccess::PUBLIC };
        world.runtime.publish(ImageSource::script(PULLABLE), far);
        let owner = AuthConfig {
            username: "rower".to_owned(),
            password: "oar".to_owned(),
            ..AuthConfig::default()
        };
        let private = ImageAccess { credentials: Some(owner), ..ImageAccess::PUBLIC };
        world.runtime.publish(ImageSource::script(PRIVATE), private);
        for pod in plan.actions.iter().filter_map(|(_, action)| action.new_pod()) {
            for (host, health) in random_probes::servers(pod) {
                world.network.serve(&host, random_probes::PORT, FakeServer::probed(health));
            }
            for (port, health) in random_probes::grpc_healths(pod) {
                world.network.set_pod_health(port, health);
            }
        }
        let files = watch::Sender::new(Vec::new());
        let kills = plan.kills.clone();
        let (actions, incarnation, will_be_killed, agent) = (Vec::new(), 0, false, None);
        Self { world, plan, decisions, files, actions, incarnation, kills, will_be_killed, agent }
    }

    async fn run(mut self) -> SimulationResult {
        let began = Instant::now();
        self.start_agent();
        for (at, action) in self.plan.actions.clone() {
            self.run_until(began + at).await;
            match action {
                ExternalAction::WhileAgentDown(action) => {
                    self.end_agent().await;
                    self.apply(*action).await;
                    self.restart_agent().await;
                }
                action => self.apply(action).await,
            }
        }
        self.run_until(began + ACTION_PERIOD).await;
        // From here on there are no kills and no faults. An agent that is not to be killed goes on: a restarted one would find out anew what the
        // old one forgot.
        self.kills.clear();
        if self.will_be_killed {
            self.restart_agent().await;
        }
        self.run_until(began + self.plan.end()).await;
        let ending = self.final_state().await;
        let (records, hash) = (self.world.trace.records(), self.world.trace.hash());
        let (statuses, events) = (self.world.cluster.statuses(), self.world.cluster.events());
        let (asked, plan, actions) = (self.world.network.asked(), self.plan, self.actions);
        SimulationResult {
            plan,
            actions,
            records,
            hash,
            statuses,
            events,
            asked,
            final_state: ending,
        }
    }

    /// Lets time pass, in which the agent may be killed and restarted.
    async fn run_until(&mut self, at: Instant) {
        loop {
            let switch = self.world.kill_switch.clone();
            tokio::select! {
                biased;
                () = switch.fired() => self.restart_agent().await,
                () = sleep_until(at) => return,
            }
        }
    }

    async fn end_agent(&mut self) {
        if let Some(agent) = self.agent.take() {
            agent.task.abort();
            // The agent was cancelled: its result does not matter.
            agent.task.await.ok();
        }
    }

    async fn restart_agent(&mut self) {
        self.end_agent().await;
        sleep(RESTART).await;
        self.start_agent();
    }

    fn start_agent(&mut self) {
        self.incarnation += 1;
        let seams = seams(&self.world, self.incarnation);
        let calls = self.kills.pop();
        self.will_be_killed = calls.is_some();
        calls.into_iter().for_each(|calls| self.world.kill_switch.arm(calls));
        let (commands, receiver) = mpsc::channel(8);
        let inputs = Inputs {
            sources: vec![crate::file_source(&self.files)],
            admit_handler: Arc::new(NodeAdmitHandlers::default()),
            decisions: Arc::clone(&self.decisions),
            metrics: Arc::default(),
            report_store: ReportStore::new(Arc::clone(&seams.clock), NodeReport::default()),
            pods: ActivePodsReader::default(),
            node_addresses: NodeAddresses::default(),
            sync_loop_monitor: SyncLoopMonitor::default(),
            container_lifecycle: ContainerHooks::default(),
            tracer: None,
            commands: receiver,
        };
        let task = tokio::spawn(oarsman_agent::run(seams, config(), inputs));
        self.agent = Some(RunningAgent { task, commands });
    }

    async fn apply(&mut self, action: ExternalAction) {
        let uid = self.uid(&action);
        let cluster = &self.world.cluster;
        match &action {
            ExternalAction::Create(pod) => drop(cluster.create(pod.clone())),
            ExternalAction::Edit { pod, container } => {
                let edit = |pod: &mut Pod| {
                    let spec = pod.spec.get_or_insert_default();
                    if let Some(container) = spec.containers.get_mut(*container) {
                        container.image = Some(EDITED.to_owned());
                    }
                };
                cluster.update(&full_name(pod), edit);
            }
            ExternalAction::Delete { pod, grace } => drop(cluster.delete(&full_name(pod), *grace)),
            ExternalAction::WriteManifest(pod) => self.files.send_modify(|files| {
                files.retain(|other| other.metadata.name != pod.metadata.name);
                files.push(hashed(pod));
            }),
            ExternalAction::DeleteMirror { pod } => drop(cluster.delete(&full_name(pod), None)),
            ExternalAction::RemoveManifest { pod } => self.files.send_modify(|files| {
                files.retain(|other| other.metadata.name.as_ref() != Some(pod));
            }),
            ExternalAction::PutConfigMap(map) => cluster.put_config_map(map.clone()),
            ExternalAction::PutSecret(secret) => cluster.put_secret(secret.clone()),
            ExternalAction::PutClaim(claim) => cluster.put_claim(claim.clone()),
            ExternalAction::DeleteClaim { claim } => cluster.delete_claim(&full_name(claim)),
            ExternalAction::PutPersistentVolume(volume) => {
                cluster.put_persistent_volume(volume.as_ref().clone());
            }
            ExternalAction::CreateRuntimeClass { class, handler } => {
                cluster.put_runtime_class(class, handler);
            }
            ExternalAction::ApiServerOutage(away) => cluster.restart(*away, Probability::NEVER),
            ExternalAction::Evict { grace, .. } => self.evict(&uid, *grace).await,
            ExternalAction::RemoveCgroup { .. } => self.world.disk.remove_cgroup(&uid),
            ExternalAction::BreakSandbox { .. } => self.break_sandbox(&uid).await,
            ExternalAction::StartServer { host, port, server } => {
                self.world.network.serve(host, *port, server.clone());
            }
            ExternalAction::NetworkOutage(down) => self.world.runtime.lose_network(*down),
            ExternalAction::ChangeAddresses(ips) => self.world.disk.set_addresses(ips),
            ExternalAction::WriteFile { path, text } => {
                drop(self.world.files.write(path.as_ref(), text.as_bytes()));
            }
            ExternalAction::ClockJump(distance) => self.world.clock.jump(*distance),
            // Kills do not nest: an action within one is performed by itself.
            ExternalAction::WhileAgentDown(_) => {}
        }
        self.actions.push((self.world.clock.elapsed(), uid, action));
    }

    /// The UID of the action's pod at this moment; empty without one.
    fn uid(&self, action: &ExternalAction) -> PodUid {
        let name = match action {
            ExternalAction::Create(pod) | ExternalAction::WriteManifest(pod) => return pod.uid(),
            ExternalAction::Edit { pod, .. }
            | ExternalAction::Delete { pod, .. }
            | ExternalAction::RemoveManifest { pod }
            | ExternalAction::Evict { pod, .. }
            | ExternalAction::RemoveCgroup { pod }
            | ExternalAction::BreakSandbox { pod } => pod,
            ExternalAction::PutConfigMap(_)
            | ExternalAction::DeleteMirror { .. }
            | ExternalAction::PutSecret(_)
            | ExternalAction::PutClaim(_)
            | ExternalAction::DeleteClaim { .. }
            | ExternalAction::PutPersistentVolume(_)
            | ExternalAction::CreateRuntimeClass { .. }
            | ExternalAction::ApiServerOutage(_)
            | ExternalAction::NetworkOutage(_)
            | ExternalAction::ChangeAddresses(_)
            | ExternalAction::WriteFile { .. }
            | ExternalAction::StartServer { .. }
            | ExternalAction::ClockJump(_)
            | ExternalAction::WhileAgentDown(_) => return PodUid::default(),
        };
        let files = self.files.borrow();
        let file = files.iter().find(|pod| pod.metadata.name.as_ref() == Some(name)).map(Pod::uid);
        file.or_else(|| self.world.cluster.get(&full_name(name)).map(|pod| pod.uid()))
            .unwrap_or_default()
    }

    async fn evict(&self, uid: &PodUid, grace: i64) {
        let failure = Some(PodFailure::disrupted("Evicted", "the node was low on patience"));
        let request = KillRequest { by: KillRequester::Eviction, grace: Some(grace), failure };
        if let Some(agent) = &self.agent {
            // An agent that is being killed does not get the command.
            agent.commands.send(AgentCommand::Kill(uid.clone(), request)).await.ok();
        }
    }

    async fn break_sandbox(&self, uid: &PodUid) {
        let sandboxes = self.world.runtime.list_pod_sandboxes(None).await.unwrap_or_default();
        let of_pod = |metadata: &PodSandboxMetadata| metadata.uid == uid.as_str();
        for sandbox in sandboxes.iter().filter(|s| s.metadata.as_ref().is_some_and(of_pod)) {
            self.world.runtime.break_sandbox(&sandbox.id);
        }
    }

    async fn final_state(&self) -> FinalState {
        let runtime = &self.world.runtime;
        let sandboxes = runtime.list_pod_sandboxes(None).await.unwrap_or_default();
        let containers = runtime.list_containers(None).await.unwrap_or_default();
        let (mirrors, objects) = self.world.cluster.list().into_iter().partition(Pod::is_mirror);
        FinalState {
            sandboxes: sandboxes
                .into_iter()
                .map(|sandbox| {
                    let ready = sandbox.state() == PodSandboxState::SandboxReady;
                    (sandbox.metadata.unwrap_or_default().uid.into(), sandbox.id, ready)
                })
                .collect(),
            containers: containers
                .into_iter()
                .map(|container| {
                    let uid = container.labels.get(POD_UID_LABEL).cloned().unwrap_or_default();
                    let state = container.state();
                    (uid.into(), container.metadata.unwrap_or_default().name, state)
                })
                .collect(),
            on_disk: self.world.disk.pods().into_iter().collect(),
            objects,
            mirrors,
            files: self.files.borrow().clone(),
        }
    }
}

/// The world's seams for that incarnation of the agent.
pub fn seams(world: &World, incarnation: u32) -> Seams {
    let world = world.seams(incarnation);
    Seams {
        runtime: world.runtime,
        cluster: world.cluster,
        volumes: world.volumes,
        cgroups: world.cgroups,
        host_info: world.host_info,
        pod_files: world.pod_files,
        records: world.records,
        pull_records: world.pull_records,
        credential_plugins: world.credential_plugins,
        clock: world.clock,
        network: world.network,
        checkpoints: Some(world.checkpoints),
    }
}

/// The configuration of the agent in simulations: a member of its cluster.
pub fn config() -> AgentConfig {
    let NodeStatusConfig { profile, machine, .. } = node_status_config("boot");
    AgentConfig {
        admission_node: AdmissionNode::of_machine(&profile, &machine),
        runtime_name: "world".to_owned(),
        recursive_read_only: false,
        user_namespaces: UserNamespaceSettings::new(65536, 110),
        addresses: AddressSettings {
            name: "n1".to_owned(),
            in_cluster: true,
            ..AddressSettings::default()
        },
        features: FeatureGates::default(),
        settings: settings(),
        requeue: Requeue::default(),
        longest_crash_backoff: Duration::from_secs(300),
        pod_logs: PathBuf::from(POD_LOGS),
        log_rotation: Some(LogRotationPolicy::default()),
        container_gc: ContainerGcPolicy::default(),
        relist_period: Duration::from_secs(60),
        parallel_pulls: 4,
        images: ImageManagerConfig {
            verification: Some(CredentialVerificationPolicy::default()),
            pull_rate: None,
            // An image that was just pulled may go too, unless a pod is about to use it.
            gc: Some(ImageGcPolicy { min_age: Duration::ZERO, ..ImageGcPolicy::default() }),
        },
        providers: Vec::new(),
        ownership: Ownership { mode: Mode::Kubelet, root: "/var/lib/world".to_owned() },
        node_status_config: Some(node_status_config("boot")),
    }
}

/// The registration and status of a node with a gibibyte of memory.
pub fn node_status_config(boot: &str) -> NodeStatusConfig {
    NodeStatusConfig {
        profile: NodeProfile {
            name: "n1".to_owned(),
            max_pods: 110,
            counts_storage: true,
            ..NodeProfile::default()
        },
        machine: MachineInfo {
            cpus: 2,
            memory: 1 << 30,
            disk: Some(1 << 40),
            boot_id: boot.to_owned(),
            architecture: "amd64".to_owned(),
            ..MachineInfo::default()
        },
        registers: true,
        look: Duration::from_secs(10),
        report: Duration::from_secs(300),
        lease: Duration::from_secs(40),
    }
}

/// A node with a gibibyte of memory in a cluster that has DNS.
fn settings() -> NodeSettings {
    let mut settings = NodeSettings::of_memory(1 << 30);
    settings.dns.servers = vec!["192.0.2.53".to_owned()];
    settings.dns.domain = "cluster.local".to_owned();
    settings
}

/// A pod as the source of files gives it: its hash changes with its manifest, and so does its UID.
fn hashed(pod: &Pod) -> Pod {
    let mut pod = pod.clone();
    let hash = (HASH_ANNOTATION.to_owned(), pod.uid().to_string());
    pod.metadata.annotations.get_or_insert_default().extend([hash]);
    pod
}

fn full_name(pod: &str) -> FullName {
    FullName { name: pod.to_owned(), namespace: "default".to_owned() }
}
