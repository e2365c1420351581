//! Deletion of pods: with a grace period, shortened, and done.

use jiff::SignedDuration;
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use oarsman_core::ids::{FullName, PodUid};
use oarsman_core::pod::PodExt;

use super::history::AgentDeletion;
use super::objects::FakeClusterState;
use super::{ApiFailure, ClusterChange};

/// The default grace period, in seconds.
const GRACE: i64 = 30;

impl FakeClusterState {
    /// Sets the deletion timestamp of the pod, or removes it when there is nothing to wait for.
    pub(super) fn delete(&mut self, name: &FullName, grace: Option<i64>) -> bool {
        let Some(pod) = self.pods.get(name).cloned() else { return false };
        match pod.metadata.deletion_grace_period_seconds {
            None => self.begin_deletion(pod, grace),
            Some(before) => self.shorten_deletion(pod, before, grace),
        }
        true
    }

    fn begin_deletion(&mut self, mut pod: Pod, asked: Option<i64>) {
        let grace = grace(&pod, asked);
        if grace == 0 {
            return self.vanish(&pod);
        }
        let metadata = &mut pod.metadata;
        metadata.deletion_timestamp = Some(later(&self.now(), grace));
        metadata.deletion_grace_period_seconds = Some(grace);
        metadata.generation = metadata.generation.map(|generation| generation + 1);
        self.trace_change(&pod, ClusterChange::DeletionAsked { grace });
        self.store(pod);
    }

    /// The grace period of a deletion can only be shortened, counted from its beginning.
    fn shorten_deletion(&mut self, mut pod: Pod, before: i64, asked: Option<i64>) {
        let Some(grace) = asked.map(seconds_of).filter(|grace| *grace < before) else { return };
        if grace == 0 {
            return self.vanish(&pod);
        }
        let metadata = &mut pod.metadata;
        let end = metadata.deletion_timestamp.as_ref();
        metadata.deletion_timestamp = end.map(|end| later(end, grace - before));
        metadata.deletion_grace_period_seconds = Some(grace);
        self.trace_change(&pod, ClusterChange::DeletionAsked { grace });
        self.store(pod);
    }

    fn vanish(&mut self, pod: &Pod) {
        self.trace_change(pod, ClusterChange::Vanished);
        self.remove(pod);
    }

    /// Removes the pod if it has that UID.
    pub(super) fn delete_by_agent(
        &mut self,
        name: &FullName,
        uid: &PodUid,
    ) -> Result<(), ApiFailure> {
        let pod = self.of_uid(name, uid)?.clone();
        let (terminal, asked) = (pod.has_terminal_phase(), pod.is_deleting());
        self.trace_change(&pod, ClusterChange::DeletedByAgent { terminal, asked });
        let (at, uid) = (self.clock.elapsed(), uid.clone());
        let deletion = AgentDeletion { at, pod: name.clone(), uid, terminal, asked };
        self.history.deletions.push(deletion);
        self.remove(&pod);
        Ok(())
    }

    fn remove(&mut self, pod: &Pod) {
        self.version += 1;
        self.pods.remove(&pod.full_name());
    }
}

/// The grace period of a deletion: zero when the pod has ended already.
fn grace(pod: &Pod, asked: Option<i64>) -> i64 {
    if pod.has_terminal_phase() {
        return 0;
    }
    let own = pod.spec().and_then(|spec| spec.termination_grace_period_seconds);
    seconds_of(asked.or(own).unwrap_or(GRACE))
}

/// A grace period in seconds as the server takes it: a negative one is one second.
fn seconds_of(grace: i64) -> i64 {
    if grace < 0 { 1 } else { grace }
}

fn later(time: &Time, seconds: i64) -> Time {
    Time(time.0.saturating_add(SignedDuration::from_secs(seconds)).unwrap_or(time.0))
}
