//! The generic PLEG: a relist of the pods that the runtime and the disk have, and their states.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use oarsman_core::ids::{FullName, PodUid};
use oarsman_core::ledger::Territory;
use oarsman_core::view::from_cri::{self, Listed};

use crate::node::Node;
use crate::seams::Seams;

/// The result of a relist, by pod.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Census {
    pods: BTreeMap<PodUid, Count>,
}

/// What a relist found of one pod.
#[derive(Debug, Default, PartialEq, Eq)]
struct Count {
    name: FullName,
    /// Sandboxes and containers by id, with their state as the runtime numbers it.
    states: BTreeMap<String, i32>,
    /// What is on disk, if anything.
    on_disk: Option<Holding>,
    ours: bool,
}

/// What the host has of a pod besides sandboxes and containers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Holding {
    /// Whether its cgroup is there.
    cgroup: bool,
    /// Whether there is anything that only this agent can have made. Logs lie where those of other agents may lie, too.
    own: bool,
}

/// Every pod that has a directory, a record, a cgroup or logs.
async fn holdings(seams: &Seams) -> Result<BTreeMap<PodUid, Holding>, String> {
    let files = async { seams.pod_files.pods().await.map_err(|error| error.to_string()) };
    let records = async { seams.records.pods().await.map_err(|error| error.to_string()) };
    let cgroups = async { seams.cgroups.pods().await.map_err(|error| error.to_string()) };
    let (files, records, cgroups) = futures::try_join!(files, records, cgroups)?;
    let files = files
        .into_iter()
        .map(|(uid, found)| (uid, Holding { own: found.directory, cgroup: false }));
    let records = records.into_iter().map(|uid| (uid, Holding { own: true, cgroup: false }));
    let cgroups = cgroups.into_iter().map(|uid| (uid, Holding { own: true, cgroup: true }));
    // Of several entries for a pod the last one counts: it says most.
    Ok(files.chain(records).chain(cgroups).collect())
}

/// Lists runtime and disk; none when one of them does not answer.
pub(super) async fn take(node: Arc<Node>) -> Option<Census> {
    let runtime = &node.seams.runtime;
    let lists = futures::try_join!(runtime.list_pod_sandboxes(None), runtime.list_containers(None));
    node.book.heard_runtime(&lists);
    let (sandboxes, containers) = answered(lists)?;
    let on_disk = answered(holdings(&node.seams).await)?;
    Some(Census::of(from_cri::by_pod(sandboxes, containers), on_disk, &node.config.territory))
}

fn answered<T, E: std::fmt::Display>(answer: Result<T, E>) -> Option<T> {
    answer
        .inspect_err(|error| tracing::warn!(task = "relist", %error, "relist failed, will retry"))
        .ok()
}

impl Census {
    fn of(
        listed: BTreeMap<PodUid, Listed>,
        on_disk: BTreeMap<PodUid, Holding>,
        territory: &Territory,
    ) -> Self {
        // What carries no label of ours is not a pod to us: its worker would not find it.
        let labelled = listed.into_iter().filter(|(uid, pod)| pod.is_labelled(uid));
        let counted = labelled.map(|(uid, pod)| (uid, Count::of(pod, territory)));
        let mut pods: BTreeMap<PodUid, Count> = counted.collect();
        for (uid, holding) in on_disk {
            let left = || Count { name: nameless(&uid), ..Count::default() };
            let count = pods.entry(uid.clone()).or_insert_with(left);
            // Logs of a pod that the runtime knows as another's are not ours.
            count.ours |= holding.own || count.states.is_empty();
            count.on_disk = Some(holding);
        }
        Self { pods }
    }

    /// Pods that are not as they were.
    pub(super) fn changed_since<'a>(&'a self, before: &'a Self) -> Vec<&'a PodUid> {
        let uids: BTreeSet<&PodUid> = self.pods.keys().chain(before.pods.keys()).collect();
        let changed = |uid: &&PodUid| self.pods.get(*uid) != before.pods.get(*uid);
        uids.into_iter().filter(changed).collect()
    }

    /// All pods, and whether anything of each is this agent's own.
    pub(super) fn pods(&self) -> impl Iterator<Item = (&PodUid, &FullName, bool)> {
        self.pods.iter().map(|(uid, count)| (uid, &count.name, count.ours))
    }
}

impl Count {
    fn of(pod: Listed, territory: &Territory) -> Self {
        let ours = territory.owns_some_of(&pod);
        let sandboxes = pod.sandboxes.into_iter().map(|sandbox| (sandbox.id, sandbox.state));
        let containers =
            pod.containers.into_iter().map(|container| (container.id, container.state));
        let states = sandboxes.chain(containers).collect();
        Self { name: pod.full_name, states, on_disk: None, ours }
    }
}

/// Of a pod that has only a directory left the name is unknown: the UID stands in for it.
fn nameless(uid: &PodUid) -> FullName {
    FullName { name: uid.to_string(), namespace: String::new() }
}
