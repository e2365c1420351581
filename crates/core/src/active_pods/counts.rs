//! How many pods and containers there are, by the labels of the kubelet's gauges.

use std::collections::BTreeMap;
use std::sync::Arc;

use k8s_openapi::api::core::v1::{ContainerStatus, PodStatus};

use super::{ActivePod, PodStage};
use crate::lifecycle::Stage;
use crate::pod::PodExt;

/// Whether a source wants a pod that has a worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum PodConfigState {
    /// A source holds it.
    Desired,
    /// Its source holds it no more.
    Orphan,
    /// Only the runtime or the disk knows of it.
    RuntimeOnly,
}

impl PodConfigState {
    /// The value of the label `config`.
    pub fn label(self) -> &'static str {
        match self {
            Self::Desired => "desired",
            Self::Orphan => "orphan",
            Self::RuntimeOnly => "runtime_only",
        }
    }
}

/// The labels of `kubelet_working_pods`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct WorkingPods {
    /// Whether a source wants them.
    pub config: PodConfigState,
    /// `sync`, `terminating` or `terminated`.
    pub lifecycle: &'static str,
    /// Whether they come from a file or a URL; never of a pod that only the runtime knows.
    pub is_static: bool,
}

/// Counts of pods and containers at one moment. Those by static pods have the API server's pods first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PodCounts {
    /// Pods that have a sandbox which runs.
    pub running: u64,
    /// Containers that run.
    pub running_containers: u64,
    /// Containers that have ended and are in the status of their pod.
    pub exited_containers: u64,
    /// Pods that sources hold.
    pub desired: [u64; 2],
    /// Those of them that count when a new pod is admitted.
    pub active: [u64; 2],
    /// Pods that have a worker.
    pub working: BTreeMap<WorkingPods, u64>,
    /// Ephemeral containers of pods that sources hold.
    pub ephemeral_containers: u64,
}

impl PodCounts {
    /// Counts these pods.
    pub fn of(pods: &[Arc<ActivePod>]) -> Self {
        let mut counts = Self { working: no_working_pods(), ..Self::default() };
        pods.iter().for_each(|pod| counts.add(pod));
        counts
    }

    fn add(&mut self, pod: &ActivePod) {
        let (config, at) = (pod.config_state(), usize::from(pod.pod.is_static()));
        if config == PodConfigState::Desired {
            self.desired[at] += 1;
            self.active[at] += u64::from(pod.is_active());
            self.ephemeral_containers += count(pod.pod.ephemeral().iter());
        }
        if let PodStage::Worker(stage) = pod.stage {
            let is_static = at == 1;
            let series = WorkingPods { config, lifecycle: lifecycle(stage), is_static };
            *self.working.entry(series).or_default() += 1;
        }
        self.running += u64::from(pod.has_running_sandbox());
        let statuses = || pod.status().into_iter().flat_map(container_statuses);
        self.running_containers += count(statuses().filter(|status| runs(status)));
        self.exited_containers += count(statuses().filter(|status| has_exited(status)));
    }
}

impl ActivePod {
    /// Whether a source wants it.
    pub fn config_state(&self) -> PodConfigState {
        match self.source() {
            None => PodConfigState::RuntimeOnly,
            Some(_) if self.is_dropped => PodConfigState::Orphan,
            Some(_) => PodConfigState::Desired,
        }
    }

    /// Whether its resources count when a new pod is admitted.
    fn is_active(&self) -> bool {
        let phase = self.status().and_then(|status| status.phase.as_deref());
        let has_ended = matches!(phase, Some("Failed" | "Succeeded"));
        let may_run = matches!(
            self.stage,
            PodStage::Worker(Stage::Loading | Stage::Syncing | Stage::Terminating)
        );
        may_run && !has_ended
    }

    /// Whether its sandbox runs, by the status that its worker made last: the condition, or without it a container that runs.
    fn has_running_sandbox(&self) -> bool {
        let is_over = matches!(self.stage, PodStage::Worker(Stage::Terminated | Stage::Finished));
        let Some(status) = self.status().filter(|_| !is_over) else { return false };
        let conditions = status.conditions.iter().flatten();
        let mut ready = conditions
            .filter(|condition| condition.type_ == "PodReadyToStartContainers")
            .map(|condition| condition.status == "True");
        ready.next().unwrap_or_default() || container_statuses(status).any(runs)
    }
}

fn container_statuses(status: &PodStatus) -> impl Iterator<Item = &ContainerStatus> {
    let PodStatus {
        init_container_statuses, container_statuses, ephemeral_container_statuses, ..
    } = status;
    [init_container_statuses, container_statuses, ephemeral_container_statuses]
        .into_iter()
        .flatten()
        .flatten()
}

fn runs(status: &ContainerStatus) -> bool {
    status.state.as_ref().is_some_and(|state| state.running.is_some())
}

/// A container that waits for its next start is one that has ended, if it was there before.
fn has_exited(status: &ContainerStatus) -> bool {
    let has_ended = status.state.as_ref().is_some_and(|state| state.terminated.is_some());
    let had_ended = status.last_state.as_ref().is_some_and(|state| state.terminated.is_some());
    has_ended || (had_ended && !runs(status))
}

fn lifecycle(stage: Stage) -> &'static str {
    match stage {
        Stage::Loading | Stage::Syncing => "sync",
        Stage::Terminating => "terminating",
        Stage::Terminated | Stage::Finished => "terminated",
    }
}

/// Every series, so that one without pods is zero and not missing.
fn no_working_pods() -> BTreeMap<WorkingPods, u64> {
    let states = [
        (PodConfigState::Desired, false),
        (PodConfigState::Desired, true),
        (PodConfigState::Orphan, false),
        (PodConfigState::Orphan, true),
        (PodConfigState::RuntimeOnly, false),
    ];
    let of = |(config, is_static)| {
        ["sync", "terminating", "terminated"]
            .map(|lifecycle| (WorkingPods { config, lifecycle, is_static }, 0))
    };
    states.into_iter().flat_map(of).collect()
}

fn count<T>(items: impl Iterator<Item = T>) -> u64 {
    u64::try_from(items.count()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::Pod;
    use serde_json::{Value, json};

    use super::super::ActivePods;
    use super::*;
    use crate::ids::PodUid;

    fn pod(uid: &str, source: Option<&str>, status: &Value) -> Arc<Pod> {
        let annotations = source.map(|source| json!({ "kubernetes.io/config.source": source }));
        let metadata = json!({ "uid": uid, "name": uid, "annotations": annotations });
        let spec = json!({ "containers": [], "ephemeralContainers": [{ "name": "e" }] });
        let pod = json!({ "metadata": metadata, "spec": spec, "status": status });
        Arc::new(serde_json::from_value(pod).unwrap())
    }

    fn status(phase: &str, has_sandbox: bool, states: &[Value]) -> Value {
        let container = |state: &Value| {
            let mut status = json!({
                "name": "c", "image": "", "imageID": "", "ready": false, "restartCount": 0,
            });
            status.as_object_mut().unwrap().extend(state.as_object().unwrap().clone());
            status
        };
        let condition = json!({
            "type": "PodReadyToStartContainers",
            "status": if has_sandbox { "True" } else { "False" },
        });
        let containers: Vec<Value> = states.iter().map(container).collect();
        json!({ "phase": phase, "conditions": [condition], "containerStatuses": containers })
    }

    #[test]
    fn pods_are_counted_by_stage_source_and_what_their_status_says() {
        let running = json!({ "state": { "running": {} } });
        let crashed = json!({
            "state": { "waiting": {} }, "lastState": { "terminated": { "exitCode": 1 } },
        });
        let restarted = json!({
            "state": { "running": {} }, "lastState": { "terminated": { "exitCode": 1 } },
        });
        let ended = json!({ "state": { "terminated": { "exitCode": 0 } } });
        let waiting = json!({ "state": { "waiting": {} } });
        let (worker, one) = (PodStage::Worker, std::slice::from_ref(&running));
        let rows = [
            ("a", Some("api"), worker(Stage::Syncing), status("Running", true, one)),
            (
                "b",
                Some("file"),
                worker(Stage::Syncing),
                status("Running", true, &[restarted, crashed]),
            ),
            ("c", Some("api"), worker(Stage::Terminated), status("Succeeded", true, &[ended])),
            ("d", Some("api"), worker(Stage::Loading), status("Pending", false, &[waiting])),
            ("e", None, worker(Stage::Terminating), status("Running", false, one)),
            ("f", Some("file"), PodStage::Waiting, Value::Null),
            ("g", Some("api"), worker(Stage::Terminating), Value::Null),
        ];
        let mut pods = ActivePods::default();
        for (uid, source, stage, status) in rows {
            pods.set_pod(&pod(uid, source, &status), stage);
        }
        pods.mark_dropped(&PodUid::from("g"));
        let counts = PodCounts::of(&pods.all().cloned().collect::<Vec<_>>());
        assert_eq!(
            (counts.running, counts.running_containers, counts.exited_containers),
            (3, 3, 2)
        );
        assert_eq!((counts.desired, counts.active), ([3, 2], [2, 1]));
        assert_eq!(counts.ephemeral_containers, 5);
        let working = counts.working.iter().filter(|(_, count)| **count > 0);
        let working: Vec<_> = working
            .map(|(it, count)| (it.config.label(), it.lifecycle, it.is_static, *count))
            .collect();
        let expected = [
            ("desired", "sync", false, 2),
            ("desired", "sync", true, 1),
            ("desired", "terminated", false, 1),
            ("orphan", "terminating", false, 1),
            ("runtime_only", "terminating", false, 1),
        ];
        assert_eq!(working, expected);
        assert_eq!(counts.working.len(), 15, "series without pods are zero");
    }

    #[test]
    fn a_pod_that_comes_back_is_wanted_again() {
        let (mut pods, uid) = (ActivePods::default(), PodUid::from("a"));
        let wanted = pod("a", Some("api"), &Value::Null);
        let state = |pods: &ActivePods| pods.by_uid(&uid).unwrap().config_state();
        pods.set_pod(&wanted, PodStage::Worker(Stage::Syncing));
        pods.mark_dropped(&uid);
        pods.apply(&uid, super::super::PodUpdate { stage: Some(Stage::Terminating), status: None });
        assert_eq!(state(&pods), PodConfigState::Orphan, "also while it is taken down");
        pods.set_pod(&wanted, PodStage::Worker(Stage::Loading));
        assert_eq!(state(&pods), PodConfigState::Desired);
    }
}
