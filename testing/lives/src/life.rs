//! Living a life: the acts of the plan, and an agent that dies and comes back.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use k8s_openapi::api::core::v1::Pod;
use oarsman_agent::{
    ActivePodsReader, Book, Command, Config, ContainerHooks, Decisions, Inputs, Membership,
    OpenGate,
};
use oarsman_core::config::Settings;
use oarsman_core::ids::{FullName, PodUid};
use oarsman_core::labels::POD_UID_LABEL;
use oarsman_core::ledger::{Mode, Territory};
use oarsman_core::lifecycle::{KillRequest, Killer, Verdict};
use oarsman_core::node::NodeFacts;
use oarsman_core::node::{Machine, Profile};
use oarsman_core::pod::{HASH_ANNOTATION, PodExt};
use oarsman_core::report::NodeReport;
use oarsman_core::requeue::Requeue;
use oarsman_core::sources::Source;
use oarsman_cri::Runtime;
use oarsman_cri_types::v1::{AuthConfig, ContainerState, PodSandboxMetadata, PodSandboxState};
use oarsman_net::HttpGet;
use oarsman_world::cluster::{PublishedStatus, RecordedEvent};
use oarsman_world::dice::Chance;
use oarsman_world::line::Service;
use oarsman_world::runtime::{Access, ImageSource};
use oarsman_world::trace::Record;
use oarsman_world::{World, simulate};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep, sleep_until};
use tokio_stream::wrappers::WatchStream;

use crate::draw::{PRESENT, PRESENT_TOO, PULLABLE};
use crate::plan::{Act, EDITED, EVENTFUL, Plan};
use crate::stage::PRIVATE;

/// How long the machine takes to bring a dead agent back.
const RESTART: Duration = Duration::from_secs(2);
/// Where pods' logs lie.
pub(crate) const POD_LOGS: &str = "/var/log/pods";

/// What a life left behind for those who judge it.
pub struct Testimony {
    /// What was to happen.
    pub plan: Plan,
    /// What happened from outside, when, and to which pod (its UID).
    pub acts: Vec<(Duration, PodUid, Act)>,
    /// What the world saw.
    pub records: Vec<Record>,
    /// The hash of what the world saw.
    pub hash: u64,
    /// What the agent published, as the API server took it.
    pub statuses: Vec<PublishedStatus>,
    /// The latest events that the agent told of, as the API server took them.
    pub events: Vec<RecordedEvent>,
    /// What was asked of servers and reached them.
    pub asked: Vec<HttpGet>,
    /// How it was at the end.
    pub ending: Ending,
}

/// Lives the plan with these decisions.
///
/// # Errors
/// When the thread's event loop cannot be made.
pub fn live(plan: &Plan, decisions: Arc<dyn Decisions>) -> std::io::Result<Testimony> {
    simulate(plan.seed, plan.faults, |world| Theatre::new(world, plan.clone(), decisions).play())
}

/// How it was at the end.
#[derive(Debug)]
pub struct Ending {
    /// Sandboxes the runtime still has: pod UID, id and whether it is ready.
    pub sandboxes: Vec<(PodUid, String, bool)>,
    /// Containers the runtime still has: pod UID, name and state.
    pub containers: Vec<(PodUid, String, ContainerState)>,
    /// Pods with a directory or a cgroup.
    pub on_disk: Vec<PodUid>,
    /// Pods the API server still has,
    pub objects: Vec<Pod>,
    /// and what it shows of pods from files.
    pub mirrors: Vec<Pod>,
    /// Manifests in the directory.
    pub files: Vec<Pod>,
}

struct Theatre {
    world: World,
    plan: Plan,
    decisions: Arc<dyn Decisions>,
    files: watch::Sender<Vec<Pod>>,
    acts: Vec<(Duration, PodUid, Act)>,
    life: u32,
    /// The calls after which lives end that are still to come.
    kills: Vec<u64>,
    /// Whether the agent that lives is to die.
    doomed: bool,
    agent: Option<Agent>,
}

/// An agent that lives.
struct Agent {
    task: JoinHandle<()>,
    commands: mpsc::Sender<Command>,
}

impl Theatre {
    fn new(world: World, plan: Plan, decisions: Arc<dyn Decisions>) -> Self {
        world.runtime.preload(ImageSource::actor(PRESENT));
        world.runtime.preload(ImageSource::actor(PRESENT_TOO));
        let far = Access { time: Duration::from_secs(4), ..Access::PUBLIC };
        world.runtime.publish(ImageSource::actor(PULLABLE), far);
        let owner = AuthConfig {
            username: "rower".to_owned(),
            password: "oar".to_owned(),
            ..AuthConfig::default()
        };
        let private = Access { credentials: Some(owner), ..Access::PUBLIC };
        world.runtime.publish(ImageSource::actor(PRIVATE), private);
        let files = watch::Sender::new(Vec::new());
        let kills = plan.kills.clone();
        let (acts, life, doomed, agent) = (Vec::new(), 0, false, None);
        Self { world, plan, decisions, files, acts, life, kills, doomed, agent }
    }

    async fn play(mut self) -> Testimony {
        let began = Instant::now();
        self.raise_agent();
        for (at, act) in self.plan.acts.clone() {
            self.live_until(began + at).await;
            match act {
                Act::Unseen(act) => {
                    self.end_agent().await;
                    self.perform(*act).await;
                    self.replace_agent().await;
                }
                act => self.perform(act).await,
            }
        }
        self.live_until(began + EVENTFUL).await;
        // From here on nobody dies and nothing goes wrong. An agent that was not to die goes on: one that is replaced would
        // find out anew what its predecessor forgot.
        self.kills.clear();
        if self.doomed {
            self.replace_agent().await;
        }
        self.live_until(began + self.plan.end()).await;
        let ending = self.ending().await;
        let (records, hash) = (self.world.trace.records(), self.world.trace.hash());
        let (statuses, events) = (self.world.cluster.statuses(), self.world.cluster.events());
        let (asked, plan, acts) = (self.world.network.asked(), self.plan, self.acts);
        Testimony { plan, acts, records, hash, statuses, events, asked, ending }
    }

    /// Lets time pass, and the agent die and come back meanwhile.
    async fn live_until(&mut self, at: Instant) {
        loop {
            let switch = self.world.kill_switch.clone();
            tokio::select! {
                biased;
                () = switch.fired() => self.replace_agent().await,
                () = sleep_until(at) => return,
            }
        }
    }

    async fn end_agent(&mut self) {
        if let Some(agent) = self.agent.take() {
            agent.task.abort();
            // It was told to end: that it did is all there is to know.
            agent.task.await.ok();
        }
    }

    async fn replace_agent(&mut self) {
        self.end_agent().await;
        sleep(RESTART).await;
        self.raise_agent();
    }

    fn raise_agent(&mut self) {
        self.life += 1;
        let seams = self.world.seams(self.life);
        let calls = self.kills.pop();
        self.doomed = calls.is_some();
        calls.into_iter().for_each(|calls| self.world.kill_switch.arm(calls));
        let (commands, receiver) = mpsc::channel(8);
        let shared = |pods: Vec<Pod>| pods.into_iter().map(Arc::new).collect();
        let sets = WatchStream::new(self.files.subscribe()).map(shared).boxed();
        let inputs = Inputs {
            sources: vec![(Source::File, sets)],
            gate: Box::new(OpenGate),
            decisions: Arc::clone(&self.decisions),
            measures: Arc::default(),
            book: Book::new(Arc::clone(&seams.clock), NodeReport::default()),
            pods: ActivePodsReader::default(),
            container_lifecycle: ContainerHooks::default(),
            background: Vec::new(),
            commands: receiver,
        };
        let task = tokio::spawn(oarsman_agent::run(seams, config(), inputs));
        self.agent = Some(Agent { task, commands });
    }

    async fn perform(&mut self, act: Act) {
        let uid = self.uid(&act);
        let cluster = &self.world.cluster;
        match &act {
            Act::Create(pod) => drop(cluster.create(pod.clone())),
            Act::Edit { pod, container } => {
                let edit = |pod: &mut Pod| {
                    let spec = pod.spec.get_or_insert_default();
                    if let Some(container) = spec.containers.get_mut(*container) {
                        container.image = Some(EDITED.to_owned());
                    }
                };
                cluster.update(&full_name(pod), edit);
            }
            Act::Delete { pod, grace } => drop(cluster.delete(&full_name(pod), *grace)),
            Act::Place(pod) => self.files.send_modify(|files| {
                files.retain(|other| other.metadata.name != pod.metadata.name);
                files.push(hashed(pod));
            }),
            Act::DeleteMirror { pod } => drop(cluster.delete(&full_name(pod), None)),
            Act::TakeAway { pod } => self.files.send_modify(|files| {
                files.retain(|other| other.metadata.name.as_ref() != Some(pod));
            }),
            Act::Configure(map) => cluster.put_config_map(map.clone()),
            Act::Entrust(secret) => cluster.put_secret(secret.clone()),
            Act::Classify { class, handler } => cluster.put_runtime_class(class, handler),
            Act::LeaveAlone(away) => cluster.restart(*away, Chance::NEVER),
            Act::Evict { grace, .. } => self.evict(&uid, *grace).await,
            Act::RemoveCgroup { .. } => self.world.disk.remove_cgroup(&uid),
            Act::BreakSandbox { .. } => self.break_sandbox(&uid).await,
            Act::Serve { host, port, server } => {
                self.world.network.serve(host, *port, server.clone());
            }
            Act::Jump(distance) => self.world.clock.jump(*distance),
            // One death at a time: what happens meanwhile is performed by itself.
            Act::Unseen(_) => {}
        }
        self.acts.push((self.world.clock.elapsed(), uid, act));
    }

    /// The UID that the pod of an act has at this moment; empty when it has none.
    fn uid(&self, act: &Act) -> PodUid {
        let name = match act {
            Act::Create(pod) | Act::Place(pod) => return pod.uid(),
            Act::Edit { pod, .. }
            | Act::Delete { pod, .. }
            | Act::TakeAway { pod }
            | Act::Evict { pod, .. }
            | Act::RemoveCgroup { pod }
            | Act::BreakSandbox { pod } => pod,
            Act::Configure(_)
            | Act::DeleteMirror { .. }
            | Act::Entrust(_)
            | Act::Classify { .. }
            | Act::LeaveAlone(_)
            | Act::Serve { .. }
            | Act::Jump(_)
            | Act::Unseen(_) => return PodUid::default(),
        };
        let files = self.files.borrow();
        let file = files.iter().find(|pod| pod.metadata.name.as_ref() == Some(name)).map(Pod::uid);
        file.or_else(|| self.world.cluster.get(&full_name(name)).map(|pod| pod.uid()))
            .unwrap_or_default()
    }

    async fn evict(&self, uid: &PodUid, grace: i64) {
        let verdict = Some(Verdict::disrupted("Evicted", "the node was low on patience"));
        let request = KillRequest { by: Killer::Eviction, grace: Some(grace), verdict };
        if let Some(agent) = &self.agent {
            // An agent that is just dying hears nothing.
            agent.commands.send(Command::Kill(uid.clone(), request)).await.ok();
        }
    }

    async fn break_sandbox(&self, uid: &PodUid) {
        let sandboxes = self.world.runtime.list_pod_sandboxes(None).await.unwrap_or_default();
        let of_pod = |metadata: &PodSandboxMetadata| metadata.uid == uid.as_str();
        for sandbox in sandboxes.iter().filter(|s| s.metadata.as_ref().is_some_and(of_pod)) {
            self.world.runtime.break_sandbox(&sandbox.id);
        }
    }

    async fn ending(&self) -> Ending {
        let runtime = &self.world.runtime;
        let sandboxes = runtime.list_pod_sandboxes(None).await.unwrap_or_default();
        let containers = runtime.list_containers(None).await.unwrap_or_default();
        let (mirrors, objects) = self.world.cluster.list().into_iter().partition(Pod::is_mirror);
        Ending {
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

/// How the agent behaves in lives: a member of its cluster.
pub fn config() -> Config {
    Config {
        facts: NodeFacts {
            runtime_name: "world".to_owned(),
            host_ips: vec!["192.0.2.1".to_owned()],
            ..NodeFacts::default()
        },
        settings: settings(),
        requeue: Requeue::default(),
        longest_crash_backoff: Duration::from_secs(300),
        pod_logs: PathBuf::from(POD_LOGS),
        audit: Duration::from_secs(60),
        parallel_pulls: 4,
        providers: Vec::new(),
        territory: Territory { mode: Mode::Kubelet, root: "/var/lib/world".to_owned() },
        membership: Some(membership("boot")),
    }
}

/// How a node of a gibibyte takes part in its cluster.
pub fn membership(boot: &str) -> Membership {
    Membership {
        profile: Profile {
            name: "n1".to_owned(),
            max_pods: 110,
            counts_storage: true,
            ..Profile::default()
        },
        machine: Machine {
            cpus: 2,
            memory: 1 << 30,
            disk: Some(1 << 40),
            boot_id: boot.to_owned(),
            architecture: "amd64".to_owned(),
            ..Machine::default()
        },
        registers: true,
        look: Duration::from_secs(10),
        report: Duration::from_secs(300),
        lease: Duration::from_secs(40),
    }
}

/// A node of a gibibyte in a cluster that has a resolver.
fn settings() -> Settings {
    let mut settings = Settings::of_memory(1 << 30);
    settings.dns.servers = vec!["192.0.2.53".to_owned()];
    settings.dns.domain = "cluster.local".to_owned();
    settings
}

/// A pod as whoever reads files hands it on: its hash changes with its manifest, and so with its UID.
fn hashed(pod: &Pod) -> Pod {
    let mut pod = pod.clone();
    let hash = (HASH_ANNOTATION.to_owned(), pod.uid().to_string());
    pod.metadata.annotations.get_or_insert_default().extend([hash]);
    pod
}

fn full_name(pod: &str) -> FullName {
    FullName { name: pod.to_owned(), namespace: "default".to_owned() }
}
