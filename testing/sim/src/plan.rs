//! Plans a simulation from a seed: external actions, kills of the agent, and faults.

use std::net::IpAddr;
use std::time::Duration;

use jiff::SignedDuration;
use k8s_openapi::api::core::v1::{ConfigMap, PersistentVolume, PersistentVolumeClaim, Pod, Secret};
use oarsman_world::faults::FaultPlan;
use oarsman_world::network::FakeServer;
use oarsman_world::rng::{Probability, Rng};

use crate::random_pods::{self, PRESENT_TOO, pick};
use crate::tight_node;

/// How long external actions happen.
pub(crate) const ACTION_PERIOD: Duration = Duration::from_secs(600);
/// How long nothing happens then, in which everything must converge. A call that hangs delays a pod by four minutes, and the longest back-off is
/// five.
pub(crate) const QUIET: Duration = Duration::from_secs(1500);

/// An action from outside of the agent.
#[derive(Clone, Debug, PartialEq)]
pub enum ExternalAction {
    /// A user creates a pod.
    Create(Pod),
    /// A user gives a container another image.
    Edit {
        /// The pod's name.
        pod: String,
        /// Which of its regular containers.
        container: usize,
    },
    /// A user deletes a pod; with 0 by force.
    Delete {
        /// The pod's name.
        pod: String,
        /// The grace period in seconds, if not the pod's own.
        grace: Option<i64>,
    },
    /// A manifest is written to the directory, over the one of that name if there is one.
    WriteManifest(Pod),
    /// A user deletes the mirror pod of a static pod.
    DeleteMirror {
        /// The pod's name.
        pod: String,
    },
    /// A manifest is removed from the directory.
    RemoveManifest {
        /// The pod's name.
        pod: String,
    },
    /// A user creates or replaces a ConfigMap.
    PutConfigMap(ConfigMap),
    /// A user creates or replaces a Secret.
    PutSecret(Secret),
    /// A claim of a volume is created, bound or otherwise changed.
    PutClaim(PersistentVolumeClaim),
    /// A claim of a volume is deleted.
    DeleteClaim {
        /// Its name.
        claim: String,
    },
    /// A persistent volume is created or changed.
    PutPersistentVolume(Box<PersistentVolume>),
    /// A RuntimeClass is created.
    CreateRuntimeClass {
        /// Its name.
        class: String,
        /// The handler of its sandboxes.
        handler: String,
    },
    /// The API server goes away for this long.
    ApiServerOutage(Duration),
    /// A pod is evicted for lack of a resource.
    Evict {
        /// The pod's name.
        pod: String,
        /// The grace period in seconds.
        grace: i64,
    },
    /// A pod's cgroup is removed by another program.
    RemoveCgroup {
        /// The pod's name.
        pod: String,
    },
    /// A sandbox's process dies.
    BreakSandbox {
        /// The pod's name.
        pod: String,
    },
    /// An HTTP server is started.
    StartServer {
        /// Its name or address.
        host: String,
        /// The port it listens on.
        port: u16,
        /// Its response.
        server: FakeServer,
    },
    /// The runtime has no network for pods for this long.
    NetworkOutage(Duration),
    /// The machine gets other addresses.
    ChangeAddresses(Vec<IpAddr>),
    /// A file of the machine is written.
    WriteFile {
        /// Its path.
        path: String,
        /// Its new content.
        text: String,
    },
    /// The wall clock jumps.
    ClockJump(SignedDuration),
    /// The agent is killed, and before it is started again this happens.
    WhileAgentDown(Box<Self>),
}

impl ExternalAction {
    /// The pod that the action brings to the node.
    pub(crate) fn new_pod(&self) -> Option<&Pod> {
        match self {
            Self::Create(pod) | Self::WriteManifest(pod) => Some(pod),
            Self::WhileAgentDown(action) => action.new_pod(),
            _ => None,
        }
    }
}

/// The plan of a simulation.
#[derive(Clone, Debug)]
#[expect(missing_docs, reason = "the fields' names say what they are")]
pub struct SimulationPlan {
    pub seed: u64,
    pub faults: FaultPlan,
    /// The actions, by virtual time.
    pub actions: Vec<(Duration, ExternalAction)>,
    /// After how many calls each incarnation of the agent is killed; the last one is not.
    pub kills: Vec<u64>,
}

impl SimulationPlan {
    /// The plan of that seed.
    pub fn from_seed(seed: u64) -> Self {
        let mut rng = Rng::new(seed).fork("plan");
        let faults = faults(&mut rng);
        let mut actions = Vec::new();
        for number in 0..=rng.below(2) {
            api_pod(&mut rng, number, &mut actions);
        }
        for number in 0..rng.below(2) {
            static_pod(&mut rng, number, &mut actions);
        }
        if rng.happens(Probability::percent(20)) {
            let seconds = i64::try_from(rng.below(7200)).unwrap_or_default() - 3600;
            actions.push((
                rng.up_to(ACTION_PERIOD),
                ExternalAction::ClockJump(SignedDuration::from_secs(seconds)),
            ));
        }
        network_outage(&rng.fork("network"), &mut actions);
        tight_node::draw(seed, &mut actions);
        actions.sort_by_key(|(at, _)| *at);
        let kills = (0..rng.below(5)).map(|_| 1 + rng.below(120)).collect();
        Self { seed, faults, actions, kills }
    }

    /// When everything must have converged.
    pub fn end(&self) -> Duration {
        ACTION_PERIOD + QUIET
    }

    /// Whether calls may be slow but do not fail: invariants that are exact to the second are checked only then.
    pub fn is_fault_free(&self) -> bool {
        self.faults.until.is_none()
    }
}

fn faults(rng: &mut Rng) -> FaultPlan {
    let latency = Duration::from_millis(20);
    let calm = FaultPlan { latency, ..FaultPlan::quiet() };
    let silent = FaultPlan {
        until: Some(ACTION_PERIOD),
        silent: Probability::percent(6),
        hang: Probability::percent(2),
        ..calm
    };
    match rng.below(4) {
        0 => calm,
        1 => silent,
        _ => FaultPlan::rough(ACTION_PERIOD),
    }
}

/// A pod of the API server, and the actions on it.
fn api_pod(rng: &mut Rng, number: u64, actions: &mut Vec<(Duration, ExternalAction)>) {
    let name = format!("p{number}");
    let pod = random_pods::pod(rng, &name, &format!("uid-{name}"));
    let containers = pod.spec.as_ref().map_or(0, |spec| spec.containers.len());
    let made = rng.up_to(ACTION_PERIOD / 3);
    actions.push((made, ExternalAction::Create(pod)));
    let later = |rng: &mut Rng| made + rng.up_to(ACTION_PERIOD - made);
    if rng.happens(Probability::percent(25)) {
        let container = usize::try_from(rng.below(containers as u64)).unwrap_or_default();
        actions.push((later(rng), ExternalAction::Edit { pod: name.clone(), container }));
    }
    if rng.happens(Probability::percent(10)) {
        actions.push((later(rng), ExternalAction::Evict { pod: name.clone(), grace: 3 }));
    }
    add_disturbances(rng, &name, made, actions);
    if rng.happens(Probability::percent(50)) {
        let grace = *pick(rng, &[&None, &None, &Some(3), &Some(0)]);
        actions.push((later(rng), ExternalAction::Delete { pod: name, grace }));
    }
}

/// A static pod, and the actions on it.
fn static_pod(rng: &mut Rng, number: u64, actions: &mut Vec<(Duration, ExternalAction)>) {
    let name = format!("f{number}");
    let made = rng.up_to(ACTION_PERIOD / 4);
    actions.push((
        made,
        ExternalAction::WriteManifest(random_pods::pod(rng, &name, &format!("uid-{name}-0"))),
    ));
    let (mut at, edits) = (made, rng.below(3));
    for edit in 1..=edits {
        at += rng.up_to(ACTION_PERIOD / 4);
        actions.push((
            at,
            ExternalAction::WriteManifest(random_pods::pod(
                rng,
                &name,
                &format!("uid-{name}-{edit}"),
            )),
        ));
    }
    add_disturbances(rng, &name, made, actions);
    if rng.happens(Probability::percent(30)) {
        actions.push((
            made + rng.up_to(ACTION_PERIOD / 2),
            ExternalAction::DeleteMirror { pod: name.clone() },
        ));
    }
    if rng.happens(Probability::percent(40)) {
        at += rng.up_to(ACTION_PERIOD / 4);
        actions.push((at, ExternalAction::RemoveManifest { pod: name }));
    }
}

fn add_disturbances(
    rng: &mut Rng,
    name: &str,
    made: Duration,
    actions: &mut Vec<(Duration, ExternalAction)>,
) {
    let pod = name.to_owned();
    if rng.happens(Probability::percent(8)) {
        actions.push((
            made + rng.up_to(ACTION_PERIOD / 2),
            ExternalAction::RemoveCgroup { pod: pod.clone() },
        ));
    }
    if rng.happens(Probability::percent(8)) {
        actions.push((made + rng.up_to(ACTION_PERIOD / 2), ExternalAction::BreakSandbox { pod }));
    }
}

/// Now and then the runtime has no network for pods, long enough for every agent to know.
fn network_outage(rng: &Rng, actions: &mut Vec<(Duration, ExternalAction)>) {
    let mut rng = rng.fork("outage");
    if rng.happens(Probability::percent(15)) {
        let (at, down) = (rng.up_to(ACTION_PERIOD / 2), 100 + rng.below(150));
        actions.push((at, ExternalAction::NetworkOutage(Duration::from_secs(down))));
    }
}

/// The image after an edit.
pub(crate) const EDITED: &str = PRESENT_TOO;
