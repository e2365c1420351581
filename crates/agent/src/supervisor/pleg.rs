//! The generic PLEG: a relist of the pods that the runtime and the disk have, and their states.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use oarsman_core::admission::Ownership;
use oarsman_core::ids::{FullName, PodUid};
use oarsman_core::view::PodView;
use oarsman_core::view::from_cri::{self, ListedPod, ListedStates};
use oarsman_cri_types::v1::{ContainerState, PodSandboxState};

use crate::node::AgentContext;
use crate::seams::Seams;

/// The result of a relist, by pod.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct PlegRecords {
    pods: BTreeMap<PodUid, PodRecord>,
}

/// What a relist found of one pod.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct PodRecord {
    pub(super) name: FullName,
    pub(super) states: ListedStates,
    /// What is on disk, if anything.
    pub(super) on_disk: Option<HostRecord>,
    pub(super) ours: bool,
    /// Whether something of ours in it runs.
    pub(super) running: bool,
}

/// What the host has of a pod besides sandboxes and containers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct HostRecord {
    /// Whether its cgroup is there.
    pub(super) cgroup: bool,
    /// Whether there is anything that only this agent can have made. Logs lie where those of other agents may lie, too.
    pub(super) own: bool,
}

impl HostRecord {
    /// Of a pod that was set up.
    const WHOLE: Self = Self { cgroup: true, own: true };
}

#[cfg(test)]
impl FromIterator<(PodUid, PodRecord)> for PlegRecords {
    fn from_iter<I: IntoIterator<Item = (PodUid, PodRecord)>>(records: I) -> Self {
        Self { pods: records.into_iter().collect() }
    }
}

/// Every pod that has a directory, a record, a cgroup or logs.
async fn host_records(seams: &Seams) -> Result<BTreeMap<PodUid, HostRecord>, String> {
    let files = async { seams.pod_files.pods().await.map_err(|error| error.to_string()) };
    let records = async { seams.records.pods().await.map_err(|error| error.to_string()) };
    let cgroups = async { seams.cgroups.pods().await.map_err(|error| error.to_string()) };
    let (files, records, cgroups) = futures::try_join!(files, records, cgroups)?;
    let files = files
        .into_iter()
        .map(|(uid, found)| (uid, HostRecord { own: found.directory, cgroup: false }));
    let records = records.into_iter().map(|uid| (uid, HostRecord { own: true, cgroup: false }));
    let cgroups = cgroups.into_iter().map(|uid| (uid, HostRecord { own: true, cgroup: true }));
    // Of several entries for a pod the last one counts: it says most.
    Ok(files.chain(records).chain(cgroups).collect())
}

/// What a relist gives.
#[derive(Debug)]
pub(super) struct Relist {
    pub(super) records: PlegRecords,
    /// The containers of this agent's pods, if dead ones are looked for.
    pub(super) views: Vec<PodView>,
}

/// Lists runtime and disk, and measures it; none when one of them does not answer.
pub(super) async fn relist(node: Arc<AgentContext>) -> Option<Relist> {
    let (metrics, began) = (&node.metrics.relists, node.seams.clock.now());
    metrics.begin(began);
    let relisted = list(&node).await;
    metrics.end(began.mono, node.seams.clock.mono());
    relisted
}

async fn list(node: &AgentContext) -> Option<Relist> {
    let runtime = &node.seams.runtime;
    let lists = futures::try_join!(runtime.list_pod_sandboxes(None), runtime.list_containers(None));
    node.report_store.record_runtime_response(&lists);
    let (sandboxes, containers) = log_failure(lists)?;
    let on_disk = log_failure(host_records(&node.seams).await)?;
    let (listed, ownership) = (from_cri::by_pod(sandboxes, containers), &node.config.ownership);
    let ours = listed.iter().filter(|(uid, pod)| {
        node.config.container_gc.concerns_node()
            && pod.is_labelled(uid)
            && ownership.owns_any_of(pod)
    });
    let views = ours.map(|(uid, pod)| from_cri::listed_view(uid, pod)).collect();
    Some(Relist { records: PlegRecords::of(listed, on_disk, ownership), views })
}

fn log_failure<T, E: std::fmt::Display>(answer: Result<T, E>) -> Option<T> {
    answer
        .inspect_err(|error| tracing::warn!(task = "relist", %error, "relist failed, will retry"))
        .ok()
}

impl PlegRecords {
    fn of(
        listed: BTreeMap<PodUid, ListedPod>,
        on_disk: BTreeMap<PodUid, HostRecord>,
        ownership: &Ownership,
    ) -> Self {
        // What carries no label of ours is not a pod to us: its worker would not find it.
        let labelled = listed.into_iter().filter(|(uid, pod)| pod.is_labelled(uid));
        let records = labelled.map(|(uid, pod)| (uid, PodRecord::of(pod, ownership)));
        let mut pods: BTreeMap<PodUid, PodRecord> = records.collect();
        for (uid, host_record) in on_disk {
            let left = || PodRecord { name: name_from_uid(&uid), ..PodRecord::default() };
            let record = pods.entry(uid.clone()).or_insert_with(left);
            // Logs of a pod that the runtime knows as another's are not ours.
            record.ours |= host_record.own || record.states.is_empty();
            record.on_disk = Some(host_record);
        }
        Self { pods }
    }

    /// Pods that are not as they were, with their states where nothing else can be news: a worker that has read them knows them.
    pub(super) fn changed_since<'a>(
        &'a self,
        before: &'a Self,
    ) -> Vec<(&'a PodUid, Option<&'a ListedStates>)> {
        let uids: BTreeSet<&PodUid> = self.pods.keys().chain(before.pods.keys()).collect();
        let records = uids.into_iter().map(|uid| (uid, self.pods.get(uid), before.pods.get(uid)));
        let changed = records.filter(|(_, now, before)| now != before);
        let states = |now: Option<&'a PodRecord>| {
            now.filter(|now| now.on_disk == Some(HostRecord::WHOLE)).map(|now| &now.states)
        };
        changed.map(|(uid, now, _)| (uid, states(now))).collect()
    }

    /// All pods, and whether anything of each is this agent's own; those that have nothing but logs come last.
    pub(super) fn pods(&self) -> impl Iterator<Item = (&PodUid, &FullName, bool)> {
        let (more, only_logs): (Vec<_>, Vec<_>) =
            self.pods.iter().partition(|(_, record)| record.has_more_than_logs());
        let all = more.into_iter().chain(only_logs);
        all.map(|(uid, record)| (uid, &record.name, record.ours))
    }

    /// Whether there is more of a pod than its logs.
    pub(super) fn has_more_than_logs(&self, uid: &PodUid) -> bool {
        self.pods.get(uid).is_some_and(PodRecord::has_more_than_logs)
    }

    /// The pods of this agent of which something runs.
    pub(super) fn running(&self) -> BTreeSet<PodUid> {
        self.pods.iter().filter(|(_, it)| it.running).map(|(uid, _)| uid.clone()).collect()
    }
}

impl PodRecord {
    fn has_more_than_logs(&self) -> bool {
        !self.states.is_empty() || self.on_disk.is_some_and(|on_disk| on_disk.own)
    }

    fn of(pod: ListedPod, ownership: &Ownership) -> Self {
        let ours = ownership.owns_any_of(&pod);
        let ready = pod.sandboxes.iter().any(|it| it.state == PodSandboxState::SandboxReady as i32);
        let runs =
            pod.containers.iter().any(|it| it.state == ContainerState::ContainerRunning as i32);
        let running = ours && (ready || runs);
        let states = pod.states();
        Self { name: pod.full_name, states, on_disk: None, ours, running }
    }
}

/// Of a pod that has only a directory left the name is unknown: the UID stands in for it.
fn name_from_uid(uid: &PodUid) -> FullName {
    FullName { name: uid.to_string(), namespace: String::new() }
}
