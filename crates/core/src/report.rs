//! What a node tells people about its pods: everything it knows of them, as plain data.
//!
//! The agent fills it in, the local socket carries it as JSON, and the commands read it. A
//! field that a newer agent adds is no trouble to an older command, and the other way round.

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Pod;
use serde::{Deserialize, Serialize};

use crate::ids::FullName;
use crate::probe::ProbeKind;

/// What is known of a node.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct NodeReport {
    /// The version of the agent.
    pub version: String,
    /// The name under which the node registers.
    pub node: String,
    /// The root directory of the agent.
    pub root: String,
    /// The directory of pods' logs.
    pub pod_logs: String,
    /// The process of the agent.
    pub pid: u32,
    /// Whether the agent is that of `oarsman run`, which stops pods at the request of `oarsman stop`.
    #[serde(rename = "isGuest")]
    pub is_run_mode: bool,
    /// When this was written down.
    pub now: Timestamp,
    /// When the agent began.
    pub since: Timestamp,
    /// What runs the containers.
    pub runtime: RuntimeReport,
    /// Manifests that cannot be read.
    pub broken: Vec<BrokenManifest>,
    /// Every pod, by namespace and name.
    pub pods: Vec<PodReport>,
    /// What happened to pods, oldest first; also to pods that are gone.
    pub events: Vec<EventReport>,
}

/// What is known of the runtime.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct RuntimeReport {
    /// What it calls itself.
    pub name: String,
    /// The version that the runtime reports.
    pub version: String,
    /// The address of the runtime's socket.
    pub endpoint: String,
    /// Since when it does not answer, and what it said instead; none while it answers.
    pub trouble: Option<OngoingError>,
    /// What stands in the way of the packets of pods that have a network, as the runtime says.
    pub traffic_obstacle: Option<TrafficObstacle>,
}

/// Something on the machine that stands in the way of pods' packets.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TrafficObstacle {
    /// What it is, and what follows from it.
    pub problem: String,
    /// What to do about it.
    pub fix: String,
}

/// Something that has been wrong for a while.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OngoingError {
    /// Since when.
    pub since: Timestamp,
    /// The error.
    pub why: String,
}

/// A manifest that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct BrokenManifest {
    /// Its path or URL.
    pub place: String,
    /// What is wrong with it and what to do about it.
    pub why: String,
    /// Whether the pod that it held before goes on.
    pub goes_on: bool,
}

/// What is known of one pod.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PodReport {
    /// The pod as it is wanted, with its status as it is.
    pub pod: Pod,
    /// The path or URL of its manifest; none for a pod of an API server or one that only the runtime knows.
    #[serde(default)]
    pub place: Option<String>,
    /// Where it stands in its life.
    pub stage: StageReport,
    /// Whether it is taken away: its manifest is gone, or it was deleted or killed. One that ends by itself is not.
    #[serde(default)]
    pub leaving: bool,
    /// What is being done to it right now, if anything takes its time.
    #[serde(default)]
    pub doing: Option<PodActivity>,
    /// When it will be looked at again by itself: the end of a back-off, say.
    #[serde(default)]
    pub next_try: Option<Timestamp>,
    /// Why it waits until then, in the words of its worker's state.
    #[serde(default)]
    pub waits_for: Option<String>,
    /// The error of the last try, if that is why it waits.
    #[serde(default)]
    pub last_error: Option<String>,
    /// The last answer of each of its probes.
    #[serde(default)]
    pub probes: Vec<ProbeReport>,
}

/// The last answer of a probe.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ProbeReport {
    /// The container that was asked.
    pub container: String,
    /// What it was asked.
    pub kind: ProbeKind,
    /// What came of it.
    pub answer: ProbeAnswer,
    /// What was said, cut to a few lines.
    pub output: String,
    /// How many equal answers there were in a row.
    pub in_a_row: u32,
    /// The time of the last answer.
    pub at: Timestamp,
}

/// What came of a probe.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum ProbeAnswer {
    /// The probe succeeded.
    Good,
    /// The probe failed.
    Bad,
    /// It could not be carried out.
    Error,
}

/// The stages of a pod's life, as people are told of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum StageReport {
    /// It waits until a pod of its name, or a pod before it, is gone.
    Waiting,
    /// It is made to run as its spec says.
    #[default]
    Syncing,
    /// What runs of it is being stopped.
    Terminating,
    /// Nothing of it runs; what it held is being given back.
    Terminated,
    /// The pod has ended and everything of it is released.
    Finished,
}

/// Something that takes its time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PodActivity {
    /// The activity.
    pub what: Activity,
    /// On which container; none when it is about the pod.
    #[serde(default)]
    pub container: Option<String>,
    /// Since when.
    pub since: Timestamp,
}

/// What may take its time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", tag = "kind", content = "of")]
pub enum Activity {
    /// Reading what the runtime has of the pod.
    Looking,
    /// Directories, volumes and cgroup are made.
    Preparing,
    /// The sandbox is made, with its network.
    MakingSandbox,
    /// Other pods' pulls come first.
    WaitingToPull(String),
    /// This image is pulled.
    Pulling(String),
    /// The container is made and started.
    Starting,
    /// Its postStart hook runs.
    PostStart,
    /// Its preStop hook runs.
    PreStop,
    /// It was asked to end, and has so many seconds from then.
    Stopping(i64),
    /// What the pod held is given back.
    GivingBack,
}

/// Something that happened to a pod, once or several times.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct EventReport {
    /// The namespace of the pod.
    pub namespace: String,
    /// The name of the pod.
    pub pod: String,
    /// The UID of the pod.
    pub uid: String,
    /// Whether it is of type `Warning`.
    pub is_warning: bool,
    /// The one word that tools match on.
    pub reason: String,
    /// The sentence that a person reads.
    pub message: String,
    /// The part of the pod it is about, such as `spec.containers{web}`.
    #[serde(default)]
    pub field_path: Option<String>,
    /// How often it happened.
    pub count: u32,
    /// When it happened first.
    pub first: Timestamp,
    /// When it happened last.
    pub last: Timestamp,
}

impl EventReport {
    /// Namespace and name of the pod.
    pub fn full_name(&self) -> FullName {
        FullName { namespace: self.namespace.clone(), name: self.pod.clone() }
    }
}

impl Default for NodeReport {
    fn default() -> Self {
        Self {
            version: String::new(),
            node: String::new(),
            root: String::new(),
            pod_logs: String::new(),
            pid: 0,
            is_run_mode: false,
            now: Timestamp::UNIX_EPOCH,
            since: Timestamp::UNIX_EPOCH,
            runtime: RuntimeReport::default(),
            broken: Vec::new(),
            pods: Vec::new(),
            events: Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_survives_the_socket_and_an_empty_one_is_read() {
        let report = NodeReport {
            pods: vec![PodReport {
                pod: Pod::default(),
                place: Some("/a.yaml".to_owned()),
                stage: StageReport::Syncing,
                leaving: false,
                doing: Some(PodActivity {
                    what: Activity::Pulling("busybox".to_owned()),
                    container: Some("main".to_owned()),
                    since: Timestamp::UNIX_EPOCH,
                }),
                next_try: None,
                waits_for: None,
                last_error: None,
                probes: vec![ProbeReport {
                    container: "main".to_owned(),
                    kind: ProbeKind::Readiness,
                    answer: ProbeAnswer::Bad,
                    output: "no".to_owned(),
                    in_a_row: 3,
                    at: Timestamp::UNIX_EPOCH,
                }],
            }],
            ..NodeReport::default()
        };
        let text = serde_json::to_string(&report).unwrap();
        assert_eq!(serde_json::from_str::<NodeReport>(&text).unwrap(), report);
        assert_eq!(serde_json::from_str::<NodeReport>("{}").unwrap(), NodeReport::default());
    }
}
