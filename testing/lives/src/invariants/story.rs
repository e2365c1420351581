//! The trace retold by container, by sandbox and by object.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use oarsman_world::cluster::ClusterChange;
use oarsman_world::disk::DiskChange;
use oarsman_world::trace::{ContainerChange, Entry, Outcome, Record, SandboxChange};

/// The calls that tell what the runtime holds of a pod.
const LOOKS: [&str; 4] =
    ["ListPodSandbox", "PodSandboxStatus", "ListContainers", "ContainerStatus"];

/// What became of everything.
#[derive(Debug, Default)]
pub struct Story {
    /// Containers, in the order in which they were made.
    pub containers: Vec<Life>,
    /// Sandboxes, in the order in which they were made.
    pub sandboxes: Vec<Sandbox>,
    /// What happened to objects of the API server: when, UID, what.
    pub objects: Vec<(Duration, String, ClusterChange)>,
    /// What happened to what the machine holds of pods: when, UID, what.
    pub ground: Vec<(Duration, String, DiskChange)>,
    /// When an agent's life began.
    pub lives: Vec<Duration>,
    /// Containers that somebody wanted to start, by id.
    pub start_calls: BTreeSet<String>,
    /// Commands that were run in containers, in the order in which they were asked for.
    pub commands: Vec<Command>,
    /// Stops that the agent asked for with some grace: when, in which of its lives, the container's id.
    pub stop_calls: Vec<(Duration, u32, String)>,
    /// Whether a status was given up: it may have come after a later one.
    pub gave_up_a_status: bool,
    /// Names that were left reserved, and times the runtime was away: things that excuse odd numbers.
    pub mishaps: Vec<(Duration, &'static str)>,
    /// When a look at what the runtime holds went wrong.
    pub failed_looks: Vec<Duration>,
}

/// A container's life.
#[derive(Clone, Debug, Default)]
pub struct Life {
    /// UID of its pod.
    pub pod: String,
    /// Its name in the pod.
    pub name: String,
    /// Which of this name it is.
    pub attempt: u32,
    /// The runtime's id.
    pub id: String,
    /// When it was made.
    pub created: Duration,
    /// When it began.
    pub started: Option<Duration>,
    /// When it was first asked to end.
    pub asked: Option<Duration>,
    /// When it was killed.
    pub killed: Option<Duration>,
    /// When it ended, and with what.
    pub exited: Option<(Duration, i32)>,
    /// When the runtime lost track of it.
    pub lost: Option<Duration>,
    /// When it was removed.
    pub removed: Option<Duration>,
}

/// A command that was run in a container.
#[derive(Clone, Debug)]
pub struct Command {
    /// When it was asked for.
    pub at: Duration,
    /// The life of the agent that asked.
    pub life: u32,
    /// The container's id, and the command as the trace shows it.
    pub subject: String,
    /// The number of the call.
    number: u64,
    /// Whether the call itself failed; what the command came to is between the two.
    pub failed: bool,
}

/// A sandbox's life.
#[derive(Clone, Debug)]
pub struct Sandbox {
    /// UID of its pod.
    pub pod: String,
    /// The runtime's id.
    pub id: String,
    /// When it was made.
    pub started: Duration,
    /// When it was stopped or died.
    pub ended: Option<Duration>,
    /// Whether it died by itself.
    pub died: bool,
}

impl Story {
    /// The story that these records tell.
    pub fn of(records: &[Record]) -> Self {
        let mut story = Self::default();
        let mut containers = BTreeMap::new();
        let mut sandboxes = BTreeMap::new();
        let mut telling = BTreeSet::new();
        for Record { at, entry } in records {
            match entry {
                Entry::Container { who, change } => {
                    let index = *containers.entry(who.id.clone()).or_insert_with(|| {
                        story.containers.push(Life {
                            pod: who.pod_uid.clone(),
                            name: who.name.clone(),
                            attempt: who.attempt,
                            id: who.id.clone(),
                            created: *at,
                            ..Life::default()
                        });
                        story.containers.len() - 1
                    });
                    story.containers[index].hear(*at, *change);
                }
                Entry::Sandbox { who, change } => {
                    let index = *sandboxes.entry(who.id.clone()).or_insert_with(|| {
                        story.sandboxes.push(Sandbox {
                            pod: who.pod_uid.clone(),
                            id: who.id.clone(),
                            started: *at,
                            ended: None,
                            died: false,
                        });
                        story.sandboxes.len() - 1
                    });
                    story.sandboxes[index].hear(*at, *change);
                }
                Entry::Cluster { uid, change, .. } => {
                    story.objects.push((*at, uid.clone(), change.clone()));
                }
                Entry::Disk { uid, change } => story.ground.push((*at, uid.clone(), *change)),
                Entry::LifeBegan(_) => story.lives.push(*at),
                Entry::Called { caller, call, subject, mishap } => {
                    if *call == "StartContainer" {
                        story.start_calls.insert(subject.clone());
                    }
                    if *call == "ExecSync" {
                        let (life, number) = (caller.life, caller.number);
                        let (subject, failed) = (subject.clone(), false);
                        story.commands.push(Command { at: *at, life, subject, number, failed });
                    }
                    if *call == "StopContainer"
                        && let Some((id, grace)) = subject.split_once(' ')
                        && grace != "0ns"
                    {
                        story.stop_calls.push((*at, caller.life, id.to_owned()));
                    }
                    if *call == "the status" {
                        telling.insert(caller.number);
                    }
                    story.mishaps.extend(mishap.map(|mishap| (*at, mishap)));
                    story.failed_looks.extend(mishap.filter(|_| LOOKS.contains(call)).map(|_| *at));
                }
                Entry::Answered { caller, outcome } => {
                    let failed = *outcome != Outcome::Fine;
                    let mut commands = story.commands.iter_mut().rev();
                    if let Some(command) = commands.find(|c| c.number == caller.number) {
                        command.failed = matches!(outcome, Outcome::Failed(_));
                    }
                    story.gave_up_a_status |= failed && telling.contains(&caller.number);
                }
                Entry::RuntimeRestarted { .. } => story.mishaps.push((*at, "restart")),
                _ => {}
            }
        }
        story
    }

    /// The containers of one name in one pod, in the order in which they were made.
    pub fn of_name(&self) -> BTreeMap<(&str, &str), Vec<&Life>> {
        let mut by_name: BTreeMap<_, Vec<_>> = BTreeMap::new();
        for life in &self.containers {
            by_name.entry((life.pod.as_str(), life.name.as_str())).or_default().push(life);
        }
        by_name
    }

    /// Whether the agent died in that time.
    pub fn agent_died_within(&self, from: Duration, to: Duration) -> bool {
        self.lives.iter().any(|began| from <= *began && *began <= to)
    }

    /// Whether that mishap befell anything.
    pub fn has_mishap(&self, name: &str) -> bool {
        self.mishaps.iter().any(|(_, mishap)| *mishap == name)
    }

    /// Containers of that pod whose process runs at that moment.
    pub fn running(&self, pod: &str, at: Duration) -> impl Iterator<Item = &Life> {
        self.containers.iter().filter(move |life| life.pod == pod && life.runs(at))
    }
}

impl Life {
    fn hear(&mut self, at: Duration, change: ContainerChange) {
        match change {
            ContainerChange::Created => self.created = at,
            ContainerChange::Started => self.started = Some(at),
            ContainerChange::Signalled(9) => self.killed = self.killed.or(Some(at)),
            ContainerChange::Signalled(_) => self.asked = self.asked.or(Some(at)),
            ContainerChange::Exited { code, .. } => self.exited = Some((at, code)),
            ContainerChange::Lost => self.lost = Some(at),
            ContainerChange::Removed => self.removed = Some(at),
        }
    }

    /// When its process was over, as far as the runtime knows.
    pub fn end(&self) -> Option<Duration> {
        [self.exited.map(|(at, _)| at), self.lost, self.removed].into_iter().flatten().min()
    }

    /// Whether its process runs at that moment.
    pub fn runs(&self, at: Duration) -> bool {
        self.started.is_some_and(|started| started < at) && self.end().is_none_or(|end| at < end)
    }

    /// Whether it ended without anybody asking it to.
    pub fn ended_by_itself(&self) -> bool {
        self.exited.is_some() && self.asked.is_none() && self.killed.is_none()
    }
}

impl Sandbox {
    fn hear(&mut self, at: Duration, change: SandboxChange) {
        match change {
            SandboxChange::Started => self.started = at,
            SandboxChange::Died => {
                self.died = true;
                self.ended = self.ended.or(Some(at));
            }
            SandboxChange::Stopped | SandboxChange::Removed => self.ended = self.ended.or(Some(at)),
        }
    }
}
