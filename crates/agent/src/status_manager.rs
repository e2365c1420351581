//! The status manager: sends the latest status of each pod to the API server, and deletes pods there that have ended.
//!
//! Workers hand statuses over and go on. The rules of the queue are in `oarsman_core::status::queue`.

use std::collections::BTreeMap;
use std::sync::Arc;

use k8s_openapi::api::core::v1::PodStatus;
use oarsman_clock::Clock;
use oarsman_cluster::ClusterError;
use oarsman_core::ids::{FullName, PodUid};
use oarsman_core::queue::JobQueue;
use oarsman_core::status::queue::{JobKey, JobResult, StatusJob, StatusQueue};
use oarsman_core::time::Mono;
use oarsman_sync::Guarded;
use tokio::sync::oneshot;

use crate::metrics::SharedMetrics;
use crate::seams::Seams;
use crate::work_queue;

/// How many requests are in flight at once.
const IN_FLIGHT: usize = 8;

/// Where workers hand over statuses; clones are the same.
#[derive(Clone)]
pub(crate) struct StatusManager {
    state: Arc<Guarded<StatusManagerState>>,
    clock: Arc<dyn Clock>,
}

#[derive(Debug, Default)]
struct StatusManagerState {
    queue: StatusQueue,
    /// Since when the API server is to get another status of a pod than it has.
    changed: BTreeMap<PodUid, Mono>,
    metrics: SharedMetrics,
    /// Wait until the API server has accepted everything.
    waiting: Vec<oneshot::Sender<()>>,
}

impl StatusManager {
    pub(crate) fn new(clock: Arc<dyn Clock>, metrics: SharedMetrics) -> Self {
        let state = StatusManagerState { metrics, ..StatusManagerState::default() };
        Self { state: Arc::new(Guarded::new(state)), clock }
    }

    /// The pod has this status now.
    pub(crate) fn publish(&self, uid: &PodUid, name: &FullName, status: PodStatus) {
        self.update(|state, now| {
            state.queue.publish(uid, name, status, now);
            if state.queue.is_unsent(uid) {
                state.changed.entry(uid.clone()).or_insert(now);
            }
        });
    }

    /// The API server shows this status of the pod.
    pub(crate) fn reconcile(&self, uid: &PodUid, shown: &PodStatus) {
        self.update(|state, now| state.queue.reconcile(uid, shown, now));
    }

    /// The pod's object may be deleted once its last status was accepted.
    pub(crate) fn allow_delete(&self, uid: &PodUid, name: &FullName) {
        self.update(|state, now| state.queue.allow_delete(uid, name, now));
    }

    /// There is nothing to send about this pod any more.
    pub(crate) fn forget(&self, uid: &PodUid) {
        self.update(|state, _| {
            state.queue.forget(uid);
            state.changed.remove(uid);
        });
    }

    /// Sends everything without delay, and signals once the API server has accepted it.
    pub(crate) fn flush(&self, flushed: oneshot::Sender<()>) {
        self.state.lock().waiting.push(flushed);
        self.update(|state, now| state.queue.flush(now));
    }

    fn update(&self, change: impl FnOnce(&mut StatusManagerState, Mono)) {
        let now = self.clock.mono();
        self.state.update(|state| {
            change(state, now);
            state.signal_if_empty();
        });
    }
}

impl StatusManagerState {
    /// Measures how long it took until the API server had the latest status of a pod.
    fn measure(&mut self, (key, result): &(JobKey, JobResult), now: Mono) {
        match result {
            JobResult::Accepted if !self.queue.is_unsent(&key.uid) => {
                if let Some(since) = self.changed.remove(&key.uid) {
                    self.metrics.status_sync.observe_duration(now.since(since));
                }
            }
            JobResult::Gone => drop(self.changed.remove(&key.uid)),
            JobResult::Accepted | JobResult::Failed(_) => {}
        }
    }

    fn signal_if_empty(&mut self) {
        if self.queue.is_empty() {
            // A receiver that is gone has given up.
            self.waiting.drain(..).filter_map(|flushed| flushed.send(()).err()).for_each(drop);
        }
    }
}

impl JobQueue for StatusManagerState {
    type Job = StatusJob;
    type Outcome = (JobKey, JobResult);

    fn next(&mut self, now: Mono) -> Option<StatusJob> {
        self.queue.next(now)
    }

    fn done(&mut self, outcome: (JobKey, JobResult), now: Mono) {
        self.queue.done(outcome.clone(), now);
        self.measure(&outcome, now);
        self.signal_if_empty();
    }

    fn next_due(&self, now: Mono) -> Option<Mono> {
        self.queue.next_due(now)
    }

    fn recover(&mut self) {
        self.queue.recover();
    }
}

/// Sends statuses until it is dropped.
pub(crate) async fn sync_batch(manager: StatusManager, seams: Seams) {
    let perform = |job| sync_pod_status(job, &seams);
    work_queue::run(&manager.state, seams.clock.as_ref(), IN_FLIGHT, perform).await;
}

async fn sync_pod_status(job: StatusJob, seams: &Seams) -> (JobKey, JobResult) {
    let (name, result) = match &job {
        StatusJob::Patch(key, name, status) => {
            (name, seams.cluster.publish(name, &key.uid, status).await)
        }
        StatusJob::Delete(key, name) => (name, seams.cluster.delete(name, &key.uid).await),
    };
    let result = match (&job, result) {
        (StatusJob::Patch(..), Ok(())) => JobResult::Accepted,
        (StatusJob::Delete(..), Ok(())) | (_, Err(ClusterError::Gone { .. })) => JobResult::Gone,
        (_, Err(error)) => {
            log_failure(&job, name, &error);
            let wait = match error {
                ClusterError::Busy { wait, .. } => Some(wait),
                _ => None,
            };
            JobResult::Failed(wait)
        }
    };
    (job.key().clone(), result)
}

fn log_failure(job: &StatusJob, pod: &FullName, error: &ClusterError) {
    let JobKey { uid, attempt, .. } = job.key();
    match job {
        StatusJob::Patch(..) => {
            tracing::warn!(%pod, %uid, attempt, %error, "status patch failed, will retry");
        }
        StatusJob::Delete(..) => {
            tracing::warn!(%pod, %uid, attempt, %error, "pod deletion failed, will retry");
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use oarsman_clock::SystemClock;
    use tokio::time::advance;

    use super::*;
    use crate::metrics::AgentMetrics;

    #[tokio::test(start_paused = true)]
    async fn a_status_is_measured_from_its_first_change_until_the_api_server_has_the_latest() {
        let metrics = Arc::<AgentMetrics>::default();
        let manager = StatusManager::new(Arc::new(SystemClock::start()), Arc::clone(&metrics));
        let (uid, name) = (PodUid::from("a"), FullName::default());
        let publish = |phase: &str| {
            let phase = Some(phase.to_owned());
            manager.publish(&uid, &name, PodStatus { phase, ..PodStatus::default() });
        };
        let send = || manager.state.lock().next(manager.clock.mono()).unwrap().key().clone();
        let answered = |key: JobKey, result| {
            manager.state.lock().done((key, result), manager.clock.mono());
            let found = metrics.status_sync.snapshot();
            (found.count, found.sum)
        };
        publish("Pending");
        advance(Duration::from_secs(20)).await;
        assert_eq!(answered(send(), JobResult::Failed(None)), (0, 0.0), "nothing was stored");
        advance(Duration::from_secs(20)).await;
        let first = send();
        publish("Running");
        assert_eq!(answered(first, JobResult::Accepted), (0, 0.0), "a newer one waits");
        advance(Duration::from_secs(20)).await;
        assert_eq!(answered(send(), JobResult::Accepted), (1, 60.0));
    }
}
