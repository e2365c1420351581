//! Keeps the last set of every source and finds what changed. In the Go kubelet this is `PodConfig` with its `podStorage`.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Pod;

use crate::event::PodEvent;
use crate::ids::PodUid;
use crate::pod::{PodExt, SEEN_ANNOTATION, SOURCE_ANNOTATION};

use super::{MergeResult, PodDelta, PodOperation, Source, pod_change};

/// What a source holds, by pod.
type Set = BTreeMap<PodUid, SourcePod>;

/// A pod as its source told it, and as we keep it.
#[derive(Clone, Debug)]
struct SourcePod {
    received: Arc<Pod>,
    pod: Arc<Pod>,
}

/// The pods that are wanted on this node, by source.
#[derive(Clone, Debug)]
pub struct PodConfig {
    /// None until the source has sent its first set.
    sets: BTreeMap<Source, Option<Set>>,
    /// What a source is remembered to have held, until it speaks.
    recalled: BTreeMap<Source, Set>,
    /// What came of it: what those know who listened to every change. A pod that its source has dropped stays in
    /// here until all sources have been heard.
    wanted: BTreeMap<PodUid, Arc<Pod>>,
}

impl PodConfig {
    /// Expects a set from each of these sources.
    pub fn new(sources: impl IntoIterator<Item = Source>) -> Self {
        let sets = sources.into_iter().map(|source| (source, None)).collect();
        Self { sets, recalled: BTreeMap::new(), wanted: BTreeMap::new() }
    }

    /// Whether every source has been heard, be it with an empty set. Before that, a pod that no source holds may
    /// still be wanted, so nothing may be killed or cleaned up for being unknown.
    pub fn all_ready(&self) -> bool {
        self.sets.values().all(Option::is_some)
    }

    /// Every pod that is wanted now, once.
    pub fn pods(&self) -> impl Iterator<Item = &Arc<Pod>> {
        self.wanted.values()
    }

    /// The pod of that UID, if it is wanted.
    pub fn pod(&self, uid: &PodUid) -> Option<&Arc<Pod>> {
        self.wanted.get(uid)
    }

    /// Takes over the full set of a source. The source counts as ready from now on, so act on the changes before
    /// asking whether all are. A pod that is the very same as last time costs next to nothing: most are, however often a source
    /// speaks.
    pub fn merge(&mut self, source: Source, pods: Vec<Arc<Pod>>, now: Timestamp) -> MergeResult {
        let (kept, refused) = filter_invalid_pods(source, pods);
        let recalled = self.recalled.remove(&source);
        let last = self.sets.get_mut(&source).and_then(Option::take);
        let known = last.or(recalled).unwrap_or_default();
        let order: Vec<PodUid> = kept.iter().map(|pod| pod.uid()).collect();
        let received =
            kept.into_iter().map(|pod| (pod.uid(), from_source(source, pod, &known, now)));
        let received: Set = received.collect();
        let others = self.wanted.keys().filter(|uid| !received.contains_key(*uid)).cloned();
        let uids: Vec<PodUid> = others.chain(order).collect();
        self.sets.insert(source, Some(received));
        MergeResult { deltas: self.apply_changes(&uids), refused }
    }

    /// Wants what a source that has not spoken yet is remembered to have held. The source is no more ready than before, so
    /// nothing is taken for unwanted that is not in there.
    pub fn recall(&mut self, source: Source, pods: Vec<Arc<Pod>>, now: Timestamp) -> MergeResult {
        if self.sets.get(&source).is_none_or(Option::is_some) {
            return MergeResult::default();
        }
        let (kept, refused) = filter_invalid_pods(source, pods);
        let uids: Vec<PodUid> = kept.iter().map(|pod| pod.uid()).collect();
        let none = Set::new();
        let held = kept.into_iter().map(|pod| (pod.uid(), from_source(source, pod, &none, now)));
        self.recalled.insert(source, held.collect());
        MergeResult { deltas: self.apply_changes(&uids), refused }
    }

    /// The pod as the first source that holds it has it.
    fn held(&self, uid: &PodUid) -> Option<&Arc<Pod>> {
        let received = self.sets.values().flatten();
        received.chain(self.recalled.values()).find_map(|set| set.get(uid)).map(|held| &held.pod)
    }

    /// Makes what is wanted of these pods what the sources hold, and tells the difference.
    fn apply_changes(&mut self, uids: &[PodUid]) -> Vec<PodDelta> {
        let mut deltas: Vec<PodDelta> = uids.iter().filter_map(|uid| self.delta(uid)).collect();
        for PodDelta { change, pod } in &deltas {
            match change {
                PodOperation::Remove => self.wanted.remove(&pod.uid()),
                _ => self.wanted.insert(pod.uid(), pod.clone()),
            };
        }
        deltas.sort_by_key(|delta| delta.change);
        deltas
    }

    fn delta(&self, uid: &PodUid) -> Option<PodDelta> {
        let (was, is) = (self.wanted.get(uid), self.held(uid));
        let change = pod_change::pod_operation(was, is)?;
        let too_early = change == PodOperation::Remove && !self.all_ready();
        let pod = is.or(was).filter(|_| !too_early)?;
        Some(PodDelta { change, pod: pod.clone() })
    }
}

/// A pod as we keep it: brought up to date if we know it, stamped if it is new.
fn from_source(source: Source, received: Arc<Pod>, known: &Set, now: Timestamp) -> SourcePod {
    let known = known.get(&received.uid());
    if let Some(same) = known.filter(|known| Arc::ptr_eq(&known.received, &received)) {
        return same.clone();
    }
    let mut pod = received.as_ref().clone();
    annotate(&mut pod, SOURCE_ANNOTATION, source.to_string());
    if let Some(known) = known {
        return SourcePod { pod: pod_change::check_and_update_pod(&known.pod, pod), received };
    }
    annotate(&mut pod, SEEN_ANNOTATION, now.to_string());
    SourcePod { pod: Arc::new(pod), received }
}

fn annotate(pod: &mut Pod, key: &str, value: String) {
    pod.metadata.annotations.get_or_insert_default().insert(key.to_owned(), value);
}

/// A pod that is ignored, and what is said of it.
type Refused = (Arc<Pod>, PodEvent);

/// Of several pods with one name or one UID, the first is kept.
fn filter_invalid_pods(source: Source, pods: Vec<Arc<Pod>>) -> (Vec<Arc<Pod>>, Vec<Refused>) {
    let (mut names, mut uids) = (BTreeSet::new(), BTreeSet::new());
    let (mut kept, mut refused) = (Vec::new(), Vec::new());
    for pod in pods {
        if names.contains(&pod.full_name()) || uids.contains(&pod.uid()) {
            refused.push(refuse(source, pod));
            continue;
        }
        names.insert(pod.full_name());
        uids.insert(pod.uid());
        kept.push(pod);
    }
    (kept, refused)
}

fn refuse(source: Source, pod: Arc<Pod>) -> Refused {
    let message = format!(
        "pod {} (uid {}) from {source} is ignored: another pod there has its name or uid, rename one of them",
        pod.full_name(),
        pod.uid(),
    );
    (pod, PodEvent::warning("FailedValidation", message))
}
