//! Which static pods run here, which mirror pods the API server has, and what is to be done about the difference.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::{Pod, PodStatus};

use crate::backoff::Backoff;
use crate::ids::{FullName, PodUid};
use crate::pod::PodExt;
use crate::queue::{AT_ONCE, JobQueue, Outcome, Priority, WorkQueue};
use crate::time::Mono;

use super::times::TransitionTimes;
use super::{is_mirror_pod_of, mirror_pod};

/// How long the list of pods may take to show what was done. Then it is done again: the answer may have been wrong.
const OBSERVE_TIMEOUT: Duration = Duration::from_secs(10);
/// After a request that failed.
const BACKOFF: Backoff = Backoff::new(Duration::from_millis(500), Duration::from_secs(10));

/// Static pods and their mirrors by name.
#[derive(Debug)]
pub struct MirrorPods {
    entries: BTreeMap<FullName, Entry>,
    queue: WorkQueue<FullName>,
    /// The UID of the node's object; without it no mirror can be made.
    node_uid: Option<String>,
    /// Whether that object is being deleted.
    node_is_deleting: bool,
    /// Whether it is known of every mirror if it has a pod.
    sources_ready: bool,
}

/// What there is under one name.
#[derive(Debug, Default)]
struct Entry {
    /// The static pod that runs here.
    pod: Option<Arc<Pod>>,
    /// The UID of the pod of this name that has a worker; without a pod, one that is being terminated.
    holder: Option<PodUid>,
    status: Option<PodStatus>,
    /// What the API server shows.
    mirror: Option<Pod>,
    /// Since when the mirror has been as it is, by what it said when its pod was first told of.
    times: Option<TransitionTimes>,
}

/// A request to the API server.
#[derive(Clone, Debug, PartialEq)]
pub enum MirrorAction {
    /// Create this mirror pod at the API server.
    Create(Box<Pod>),
    /// Delete the mirror of this name and UID.
    Delete(FullName, PodUid),
}

impl MirrorAction {
    /// The name of the static pod and of its mirror.
    pub fn name(&self) -> FullName {
        match self {
            Self::Create(mirror) => mirror.full_name(),
            Self::Delete(name, _) => name.clone(),
        }
    }
}

/// Something for the status manager.
#[derive(Clone, Debug, PartialEq)]
pub enum MirrorStatus {
    /// The mirror of this name and UID is to have this status.
    Publish(FullName, PodUid, Box<PodStatus>),
    /// The API server shows this status of the mirror.
    Shown(PodUid, Box<PodStatus>),
    /// There is no such mirror any more.
    Gone(PodUid),
}

impl Default for MirrorPods {
    fn default() -> Self {
        Self {
            entries: BTreeMap::new(),
            queue: WorkQueue::new(BACKOFF),
            node_uid: None,
            node_is_deleting: false,
            sources_ready: false,
        }
    }
}

impl MirrorPods {
    /// The node has this UID in the API server; mirrors can be made from now on, except while the node is being deleted: the API
    /// server would delete them again.
    pub fn set_node(&mut self, uid: &str, is_deleting: bool) {
        self.node_uid = Some(uid.to_owned());
        self.node_is_deleting = is_deleting;
        let names: Vec<FullName> = self.entries.keys().cloned().collect();
        names.iter().for_each(|name| self.schedule(name));
    }

    /// A static pod runs here from now on, in the place of any other of its name.
    pub fn add_static_pod(&mut self, pod: &Arc<Pod>) {
        let name = pod.full_name();
        let entry = self.entries.entry(name.clone()).or_default();
        let uid = Some(pod.uid());
        if entry.holder != uid {
            (entry.status, entry.times) = (None, None);
            self.queue.reset(&name);
        }
        (entry.holder, entry.pod) = (uid, Some(Arc::clone(pod)));
        self.schedule(&name);
    }

    /// Something of a pod of that name is left, and being terminated.
    pub fn add_terminating(&mut self, uid: &PodUid, name: &FullName) {
        let entry = self.entries.entry(name.clone()).or_default();
        if entry.pod.is_none() {
            entry.holder = Some(uid.clone());
        }
    }

    /// Nothing is left of that pod.
    pub fn remove_pod(&mut self, uid: &PodUid) {
        let held = |entry: &Entry| entry.holder.as_ref() == Some(uid);
        let names: Vec<FullName> = self
            .entries
            .iter()
            .filter(|(_, entry)| held(entry))
            .map(|(name, _)| name.clone())
            .collect();
        for name in names {
            if let Some(entry) = self.entries.get_mut(&name) {
                (entry.pod, entry.holder, entry.status, entry.times) = (None, None, None, None);
            }
            self.queue.reset(&name);
            self.schedule(&name);
        }
        self.drop_unused();
    }

    /// A static pod has this status now.
    pub fn set_status(
        &mut self,
        uid: &PodUid,
        name: &FullName,
        status: &PodStatus,
    ) -> Option<MirrorStatus> {
        let entry =
            self.entries.get_mut(name).filter(|entry| entry.holder.as_ref() == Some(uid))?;
        entry.status = Some(status.clone());
        entry.publish(name)
    }

    /// These are all the mirrors that the API server has.
    pub fn observe(&mut self, mirrors: Vec<Pod>) -> Vec<MirrorStatus> {
        let mut seen: BTreeMap<FullName, Pod> =
            mirrors.into_iter().map(|mirror| (mirror.full_name(), mirror)).collect();
        for name in seen.keys() {
            self.entries.entry(name.clone()).or_default();
        }
        let names: Vec<FullName> = self.entries.keys().cloned().collect();
        let mut statuses = Vec::new();
        for name in &names {
            let Some(entry) = self.entries.get_mut(name) else { continue };
            let (is_other, changes) = entry.observe(name, seen.remove(name));
            statuses.extend(changes);
            if is_other {
                self.queue.reset(name);
            }
            self.schedule(name);
        }
        self.drop_unused();
        statuses
    }

    /// The status that the API server shows of that static pod.
    pub fn shown_status(&self, uid: &PodUid, name: &FullName) -> Option<PodStatus> {
        let entry = self.entries.get(name).filter(|entry| entry.holder.as_ref() == Some(uid))?;
        entry.current_mirror()?.status.clone()
    }

    /// Every source has told its pods. Before that, a mirror without a pod may well have one.
    pub fn set_sources_ready(&mut self) {
        self.sources_ready = true;
        let names: Vec<FullName> = self.entries.keys().cloned().collect();
        names.iter().for_each(|name| self.schedule(name));
    }

    /// Has a name wait for its turn if there is something to do about it.
    fn schedule(&mut self, name: &FullName) {
        if self.entries.get(name).is_some_and(|entry| entry.needs_action(self.sources_ready)) {
            self.queue.add(name, AT_ONCE, Priority::Normal);
        }
    }

    fn drop_unused(&mut self) {
        self.entries.retain(|_, entry| entry.holder.is_some() || entry.mirror.is_some());
    }

    fn action(&self, name: &FullName, node_uid: &str) -> Option<MirrorAction> {
        let entry = self.entries.get(name).filter(|it| it.needs_action(self.sources_ready))?;
        Some(match (&entry.pod, &entry.mirror) {
            (_, Some(mirror)) => MirrorAction::Delete(name.clone(), mirror.uid()),
            (_, None) if self.node_is_deleting => return None,
            (pod, None) => MirrorAction::Create(Box::new(mirror_pod(pod.as_ref()?, node_uid))),
        })
    }
}

impl JobQueue for MirrorPods {
    type Job = MirrorAction;
    /// The name, and whether the request was served.
    type Outcome = (FullName, bool);

    fn next(&mut self, now: Mono) -> Option<MirrorAction> {
        let node_uid = self.node_uid.clone()?;
        loop {
            let name = self.queue.next(now)?;
            if let Some(action) = self.action(&name, &node_uid) {
                return Some(action);
            }
            // By now all is as it should be.
            self.queue.done(&name, Outcome::Done, now);
        }
    }

    fn done(&mut self, (name, served): (FullName, bool), now: Mono) {
        let outcome = if served { Outcome::Again(OBSERVE_TIMEOUT) } else { Outcome::Failed };
        self.queue.done(&name, outcome, now);
    }

    fn next_due(&self, now: Mono) -> Option<Mono> {
        self.queue.next_due(now).filter(|_| self.node_uid.is_some())
    }

    fn recover(&mut self) {
        self.queue.recover();
    }
}

impl Entry {
    /// Whether the mirror is to be created or deleted.
    fn needs_action(&self, sources_ready: bool) -> bool {
        match (&self.pod, &self.mirror) {
            (Some(_), None) => true,
            (Some(pod), Some(mirror)) => !is_mirror_pod_of(mirror, pod),
            (None, Some(_)) => self.holder.is_none() && sources_ready,
            (None, None) => false,
        }
    }

    /// Whether it is another mirror than before, or one that is being deleted; and what the status manager is to know.
    fn observe(&mut self, name: &FullName, mirror: Option<Pod>) -> (bool, Vec<MirrorStatus>) {
        let identity =
            |mirror: &Option<Pod>| mirror.as_ref().map(|it| (it.uid(), it.is_deleting()));
        let before = identity(&self.mirror);
        self.mirror = mirror;
        let now = identity(&self.mirror);
        let is_other = before != now;
        let (before, now) = (before.map(|it| it.0), now.map(|it| it.0));
        if before == now {
            return (is_other, self.shown().into_iter().collect());
        }
        self.times = None;
        let gone = before.map(MirrorStatus::Gone);
        (is_other, gone.into_iter().chain(self.publish(name)).collect())
    }

    /// What the API server shows of a mirror that has its pod's status.
    fn shown(&self) -> Option<MirrorStatus> {
        let mirror = self.current_mirror()?;
        let status = mirror.status.clone()?;
        Some(MirrorStatus::Shown(mirror.uid(), Box::new(status)))
    }

    fn publish(&mut self, name: &FullName) -> Option<MirrorStatus> {
        let (mirror, status) = (self.current_mirror()?, self.status.clone()?);
        let (uid, first) =
            (mirror.uid(), TransitionTimes::compare(mirror.status.as_ref(), &status));
        let status = self.times.get_or_insert(first).restore(status);
        Some(MirrorStatus::Publish(name.clone(), uid, Box::new(status)))
    }

    fn current_mirror(&self) -> Option<&Pod> {
        let (pod, mirror) = (self.pod.as_ref()?, self.mirror.as_ref()?);
        is_mirror_pod_of(mirror, pod).then_some(mirror)
    }
}
