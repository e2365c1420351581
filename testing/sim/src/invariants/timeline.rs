//! Orders the trace by container, by sandbox and by object.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use oarsman_world::cluster::ClusterChange;
use oarsman_world::disk::DiskChange;
use oarsman_world::trace::{
    CallOutcome, ContainerTransition, SandboxTransition, TraceEntry, TraceRecord,
};

/// The calls that read a pod's state from the runtime.
const READS: [&str; 4] =
    ["ListPodSandbox", "PodSandboxStatus", "ListContainers", "ContainerStatus"];

/// The trace by object.
#[derive(Debug, Default)]
pub struct Timeline {
    /// Containers, in the order in which they were made.
    pub containers: Vec<ContainerTimeline>,
    /// Sandboxes, in the order in which they were made.
    pub sandboxes: Vec<SandboxTimeline>,
    /// Changes of the API server's objects: when, UID, change.
    pub objects: Vec<(Duration, String, ClusterChange)>,
    /// Changes of pods' files and cgroups: when, UID, change.
    pub disk: Vec<(Duration, String, DiskChange)>,
    /// When each incarnation of the agent began.
    pub agent_starts: Vec<Duration>,
    /// Containers for which a start was called, by id.
    pub start_calls: BTreeSet<String>,
    /// Commands that were run in containers, in the order in which they were asked for.
    pub commands: Vec<ExecCall>,
    /// Calls that may be probes, in the order in which they were made.
    pub probe_calls: Vec<ProbeCall>,
    /// Stops by the agent with a grace period: when, by which incarnation, the container's id.
    pub stop_calls: Vec<(Duration, u32, String)>,
    /// Whether the write of a status timed out: it may have taken effect after a later one.
    pub gave_up_a_status: bool,
    /// Reserved names, and times at which the runtime was away, which some invariants excuse.
    pub faults: Vec<(Duration, &'static str)>,
    /// When a read of the runtime's state failed.
    pub failed_reads: Vec<Duration>,
}

/// The timeline of a container.
#[derive(Clone, Debug, Default)]
pub struct ContainerTimeline {
    /// UID of its pod.
    pub pod: String,
    /// Its name in the pod.
    pub name: String,
    /// The number of its start.
    pub attempt: u32,
    /// The runtime's id.
    pub id: String,
    /// When it was made.
    pub created: Duration,
    /// When it began.
    pub started: Option<Duration>,
    /// When it first got SIGTERM.
    pub asked: Option<Duration>,
    /// When it was killed.
    pub killed: Option<Duration>,
    /// When it ended, and its exit code.
    pub exited: Option<(Duration, i32)>,
    /// When the runtime lost track of it.
    pub lost: Option<Duration>,
    /// When it was removed.
    pub removed: Option<Duration>,
}

/// A command that was run in a container.
#[derive(Clone, Debug)]
pub struct ExecCall {
    /// When it was called.
    pub at: Duration,
    /// The incarnation of the agent that called it.
    pub incarnation: u32,
    /// The container's id, and the command as the trace shows it.
    pub subject: String,
    /// The number of the call.
    number: u64,
    /// Whether the call itself failed; the command's exit code is not known here.
    pub failed: bool,
}

/// A request to a server, or a command in a container.
#[derive(Clone, Debug)]
pub struct ProbeCall {
    /// When it was called.
    pub at: Duration,
    /// When it was answered.
    pub end: Option<Duration>,
    /// The URL, or the container's id and the command.
    pub subject: String,
    /// The number of the call.
    number: u64,
    /// What the server said, or what the command ends with.
    said: Option<bool>,
    /// Whether what the agent heard is good; none if it gave up the call.
    pub answer: Option<bool>,
}

/// The calls that probes make.
const PROBES: [&str; 4] = ["get", "connect", "check_health", "ExecSync"];

/// The timeline of a sandbox.
#[derive(Clone, Debug)]
pub struct SandboxTimeline {
    /// UID of its pod.
    pub pod: String,
    /// The runtime's id.
    pub id: String,
    /// When it was made.
    pub started: Duration,
    /// When it was stopped or died.
    pub ended: Option<Duration>,
    /// Whether its process died by itself.
    pub died: bool,
}

impl Timeline {
    /// The timeline of these records.
    pub fn of(records: &[TraceRecord]) -> Self {
        let mut timeline = Self::default();
        let mut containers = BTreeMap::new();
        let mut sandboxes = BTreeMap::new();
        let mut telling = BTreeSet::new();
        for TraceRecord { at, entry } in records {
            match entry {
                TraceEntry::Container { target, change } => {
                    let index = *containers.entry(target.id.clone()).or_insert_with(|| {
                        timeline.containers.push(ContainerTimeline {
                            pod: target.pod_uid.clone(),
                            name: target.name.clone(),
                            attempt: target.attempt,
                            id: target.id.clone(),
                            created: *at,
                            ..ContainerTimeline::default()
                        });
                        timeline.containers.len() - 1
                    });
                    timeline.containers[index].record(*at, *change);
                }
                TraceEntry::Sandbox { target, change } => {
                    let index = *sandboxes.entry(target.id.clone()).or_insert_with(|| {
                        timeline.sandboxes.push(SandboxTimeline {
                            pod: target.pod_uid.clone(),
                            id: target.id.clone(),
                            started: *at,
                            ended: None,
                            died: false,
                        });
                        timeline.sandboxes.len() - 1
                    });
                    timeline.sandboxes[index].record(*at, *change);
                }
                TraceEntry::Cluster { uid, change, .. } => {
                    timeline.objects.push((*at, uid.clone(), change.clone()));
                }
                TraceEntry::Disk { uid, change } => timeline.disk.push((*at, uid.clone(), *change)),
                TraceEntry::AgentStarted(_) => timeline.agent_starts.push(*at),
                TraceEntry::Probed { url, is_good } => {
                    let mut calls = timeline.probe_calls.iter_mut().rev();
                    let asked = calls.find(|call| call.end.is_none() && call.subject == *url);
                    asked.into_iter().for_each(|call| call.said = Some(*is_good));
                }
                TraceEntry::Called { caller, call, subject, fault_kind } => {
                    if PROBES.contains(call) {
                        let said = (*call == "ExecSync").then(|| subject.contains("\"exit:0\""));
                        timeline.probe_calls.push(ProbeCall {
                            at: *at,
                            end: None,
                            subject: subject.clone(),
                            number: caller.number,
                            said,
                            answer: None,
                        });
                    }
                    if *call == "StartContainer" {
                        timeline.start_calls.insert(subject.clone());
                    }
                    if *call == "ExecSync" {
                        let (incarnation, number) = (caller.incarnation, caller.number);
                        let (subject, failed) = (subject.clone(), false);
                        timeline.commands.push(ExecCall {
                            at: *at,
                            incarnation,
                            subject,
                            number,
                            failed,
                        });
                    }
                    if *call == "StopContainer"
                        && let Some((id, grace)) = subject.split_once(' ')
                        && grace != "0ns"
                    {
                        timeline.stop_calls.push((*at, caller.incarnation, id.to_owned()));
                    }
                    if *call == "the status" {
                        telling.insert(caller.number);
                    }
                    timeline.faults.extend(fault_kind.map(|fault_kind| (*at, fault_kind)));
                    timeline
                        .failed_reads
                        .extend(fault_kind.filter(|_| READS.contains(call)).map(|_| *at));
                }
                TraceEntry::Answered { caller, outcome } => {
                    let failed = *outcome != CallOutcome::Fine;
                    let mut calls = timeline.probe_calls.iter_mut().rev();
                    if let Some(call) = calls.find(|call| call.number == caller.number) {
                        call.end = Some(*at);
                        call.answer = match outcome {
                            CallOutcome::Fine => call.said,
                            CallOutcome::Failed(_) => Some(false),
                            CallOutcome::Abandoned => None,
                        };
                    }
                    let mut commands = timeline.commands.iter_mut().rev();
                    if let Some(command) = commands.find(|c| c.number == caller.number) {
                        command.failed = matches!(outcome, CallOutcome::Failed(_));
                    }
                    timeline.gave_up_a_status |= failed && telling.contains(&caller.number);
                }
                TraceEntry::RuntimeRestarted { .. } => timeline.faults.push((*at, "restart")),
                _ => {}
            }
        }
        timeline
    }

    /// The containers of one name in one pod, in the order in which they were made.
    pub fn by_name(&self) -> BTreeMap<(&str, &str), Vec<&ContainerTimeline>> {
        let mut by_name: BTreeMap<_, Vec<_>> = BTreeMap::new();
        for container in &self.containers {
            by_name
                .entry((container.pod.as_str(), container.name.as_str()))
                .or_default()
                .push(container);
        }
        by_name
    }

    /// Whether the agent was killed in that time.
    pub fn agent_died_within(&self, from: Duration, to: Duration) -> bool {
        self.agent_starts.iter().any(|began| from <= *began && *began <= to)
    }

    /// Whether there was such a fault.
    pub fn has_fault(&self, name: &str) -> bool {
        self.faults.iter().any(|(_, fault_kind)| *fault_kind == name)
    }

    /// Containers of that pod whose process runs at that moment.
    pub fn running(&self, pod: &str, at: Duration) -> impl Iterator<Item = &ContainerTimeline> {
        self.containers.iter().filter(move |container| container.pod == pod && container.runs(at))
    }
}

impl ContainerTimeline {
    fn record(&mut self, at: Duration, change: ContainerTransition) {
        match change {
            ContainerTransition::Created => self.created = at,
            ContainerTransition::Started => self.started = Some(at),
            ContainerTransition::Signalled(9) => self.killed = self.killed.or(Some(at)),
            ContainerTransition::Signalled(_) => self.asked = self.asked.or(Some(at)),
            ContainerTransition::Exited { code, .. } => self.exited = Some((at, code)),
            ContainerTransition::Lost => self.lost = Some(at),
            ContainerTransition::Removed => self.removed = Some(at),
        }
    }

    /// When its process ended, as far as the runtime knows.
    pub fn end(&self) -> Option<Duration> {
        [self.exited.map(|(at, _)| at), self.lost, self.removed].into_iter().flatten().min()
    }

    /// Whether its process runs at that moment.
    pub fn runs(&self, at: Duration) -> bool {
        self.started.is_some_and(|started| started < at) && self.end().is_none_or(|end| at < end)
    }

    /// Whether it ended without being stopped.
    pub fn ended_by_itself(&self) -> bool {
        self.exited.is_some() && self.asked.is_none() && self.killed.is_none()
    }
}

impl SandboxTimeline {
    fn record(&mut self, at: Duration, change: SandboxTransition) {
        match change {
            SandboxTransition::Started => self.started = at,
            SandboxTransition::Died => {
                self.died = true;
                self.ended = self.ended.or(Some(at));
            }
            SandboxTransition::Stopped | SandboxTransition::Removed => {
                self.ended = self.ended.or(Some(at));
            }
        }
    }
}
