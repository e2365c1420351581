//! A life drawn from a seed: what the outside world does to the node, when the agent dies, and what goes wrong.

use std::time::Duration;

use jiff::SignedDuration;
use k8s_openapi::api::core::v1::{ConfigMap, Pod, Secret};
use oarsman_world::dice::{Chance, Dice};
use oarsman_world::faults::FaultPlan;
use oarsman_world::network::Server;

use crate::draw::{self, PRESENT_TOO, pick};

/// How long things happen.
pub(crate) const EVENTFUL: Duration = Duration::from_secs(600);
/// How long nothing happens then, in which everything must come to rest. A call that hangs holds a pod up for
/// four minutes, and the longest back-off is five.
pub(crate) const QUIET: Duration = Duration::from_secs(1500);

/// What the outside world does.
#[derive(Clone, Debug, PartialEq)]
pub enum Act {
    /// A user makes a pod.
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
        /// The seconds it has, if not its own.
        grace: Option<i64>,
    },
    /// Somebody puts a manifest into the directory, over the one of that name if there is one.
    Place(Pod),
    /// A user deletes what the API server shows of a pod from a file.
    DeleteMirror {
        /// The pod's name.
        pod: String,
    },
    /// Somebody takes a manifest out of the directory.
    TakeAway {
        /// The pod's name.
        pod: String,
    },
    /// A user puts a ConfigMap there, over the one of that name if there is one.
    Configure(ConfigMap),
    /// A user puts a Secret there, over the one of that name if there is one.
    Entrust(Secret),
    /// A runtime class comes to be.
    Classify {
        /// Its name.
        class: String,
        /// What in the runtime makes its sandboxes.
        handler: String,
    },
    /// The API server goes away for this long.
    LeaveAlone(Duration),
    /// The node runs out of something.
    Evict {
        /// The pod's name.
        pod: String,
        /// The seconds it has.
        grace: i64,
    },
    /// Somebody removes a pod's cgroup.
    RemoveCgroup {
        /// The pod's name.
        pod: String,
    },
    /// A sandbox's process dies.
    BreakSandbox {
        /// The pod's name.
        pod: String,
    },
    /// A server comes to be.
    Serve {
        /// Its name or address.
        host: String,
        /// Where it listens.
        port: u16,
        /// What it answers.
        server: Server,
    },
    /// The wall clock jumps.
    Jump(SignedDuration),
    /// The agent dies, and before it comes back this happens.
    Unseen(Box<Self>),
}

/// A life, before it is lived.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Its seed.
    pub seed: u64,
    /// What goes wrong.
    pub faults: FaultPlan,
    /// What happens, by virtual time.
    pub acts: Vec<(Duration, Act)>,
    /// After how many calls each of the agent's lives ends; the last one is not killed.
    pub kills: Vec<u64>,
}

impl Plan {
    /// The life of that seed.
    pub fn draw(seed: u64) -> Self {
        let mut dice = Dice::new(seed).fork("plan");
        let faults = faults(&mut dice);
        let mut acts = Vec::new();
        for number in 0..=dice.below(2) {
            api_pod(&mut dice, number, &mut acts);
        }
        for number in 0..dice.below(2) {
            static_pod(&mut dice, number, &mut acts);
        }
        if dice.happens(Chance::percent(20)) {
            let seconds = i64::try_from(dice.below(7200)).unwrap_or_default() - 3600;
            acts.push((dice.up_to(EVENTFUL), Act::Jump(SignedDuration::from_secs(seconds))));
        }
        acts.sort_by_key(|(at, _)| *at);
        let kills = (0..dice.below(5)).map(|_| 1 + dice.below(120)).collect();
        Self { seed, faults, acts, kills }
    }

    /// When everything must be at rest.
    pub fn end(&self) -> Duration {
        EVENTFUL + QUIET
    }

    /// Whether calls may be slow but do what they say: what is checked to the second is checked only then.
    pub fn is_calm(&self) -> bool {
        self.faults.until.is_none()
    }
}

fn faults(dice: &mut Dice) -> FaultPlan {
    let latency = Duration::from_millis(20);
    let calm = FaultPlan { latency, ..FaultPlan::quiet() };
    let silent = FaultPlan {
        until: Some(EVENTFUL),
        silent: Chance::percent(6),
        hang: Chance::percent(2),
        ..calm
    };
    match dice.below(4) {
        0 => calm,
        1 => silent,
        _ => FaultPlan::rough(EVENTFUL),
    }
}

/// A pod of the API server, and what happens to it.
fn api_pod(dice: &mut Dice, number: u64, acts: &mut Vec<(Duration, Act)>) {
    let name = format!("p{number}");
    let pod = draw::pod(dice, &name, &format!("uid-{name}"));
    let containers = pod.spec.as_ref().map_or(0, |spec| spec.containers.len());
    let made = dice.up_to(EVENTFUL / 3);
    acts.push((made, Act::Create(pod)));
    let later = |dice: &mut Dice| made + dice.up_to(EVENTFUL - made);
    if dice.happens(Chance::percent(25)) {
        let container = usize::try_from(dice.below(containers as u64)).unwrap_or_default();
        acts.push((later(dice), Act::Edit { pod: name.clone(), container }));
    }
    if dice.happens(Chance::percent(10)) {
        acts.push((later(dice), Act::Evict { pod: name.clone(), grace: 3 }));
    }
    behind_our_back(dice, &name, made, acts);
    if dice.happens(Chance::percent(50)) {
        let grace = *pick(dice, &[&None, &None, &Some(3), &Some(0)]);
        acts.push((later(dice), Act::Delete { pod: name, grace }));
    }
}

/// A pod from a file, and what happens to it.
fn static_pod(dice: &mut Dice, number: u64, acts: &mut Vec<(Duration, Act)>) {
    let name = format!("f{number}");
    let made = dice.up_to(EVENTFUL / 4);
    acts.push((made, Act::Place(draw::pod(dice, &name, &format!("uid-{name}-0")))));
    let (mut at, edits) = (made, dice.below(3));
    for edit in 1..=edits {
        at += dice.up_to(EVENTFUL / 4);
        acts.push((at, Act::Place(draw::pod(dice, &name, &format!("uid-{name}-{edit}")))));
    }
    behind_our_back(dice, &name, made, acts);
    if dice.happens(Chance::percent(30)) {
        acts.push((made + dice.up_to(EVENTFUL / 2), Act::DeleteMirror { pod: name.clone() }));
    }
    if dice.happens(Chance::percent(40)) {
        at += dice.up_to(EVENTFUL / 4);
        acts.push((at, Act::TakeAway { pod: name }));
    }
}

fn behind_our_back(dice: &mut Dice, name: &str, made: Duration, acts: &mut Vec<(Duration, Act)>) {
    let pod = name.to_owned();
    if dice.happens(Chance::percent(8)) {
        acts.push((made + dice.up_to(EVENTFUL / 2), Act::RemoveCgroup { pod: pod.clone() }));
    }
    if dice.happens(Chance::percent(8)) {
        acts.push((made + dice.up_to(EVENTFUL / 2), Act::BreakSandbox { pod }));
    }
}

/// What an edit makes of a container's image.
pub(crate) const EDITED: &str = PRESENT_TOO;
