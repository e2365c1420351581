//! Tells the cluster how pods are: the latest status of each, in order for each pod, until it has been taken.
//!
//! Workers leave statuses on the desk and go on. A cluster that is away delays nothing but its own knowledge; when it is
//! back it hears the truth once, not every step that led to it. What others wait for, readiness and ends, goes first.

mod desk;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures::StreamExt;
use futures::stream::FuturesUnordered;
use k8s_openapi::api::core::v1::PodStatus;
use oarsman_cluster::ClusterError;
use oarsman_core::ids::{FullName, PodUid};
use tokio::sync::{Notify, oneshot};

use crate::seams::Seams;

use desk::{Desk, Job, Key, Outcome};

/// How many pods' statuses are on their way at once.
const HANDS: usize = 8;

/// Where statuses are left for the cluster.
#[derive(Clone, Debug, Default)]
pub(crate) struct StatusDesk {
    inner: Arc<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    desk: Mutex<Desk>,
    filled: Notify,
    /// Who waits for an empty desk.
    waiting: Mutex<Vec<oneshot::Sender<()>>>,
}

impl StatusDesk {
    /// This is how the pod is now.
    pub(crate) fn publish(&self, uid: &PodUid, name: &FullName, status: PodStatus) {
        self.change(|desk| desk.publish(uid, name, status));
    }

    /// This is what the cluster has of the pod. When it is not what it was told, it is told again: a write of ours that we
    /// had given up may have come after a later one.
    pub(crate) fn heard(&self, uid: &PodUid, status: &PodStatus) {
        self.change(|desk| desk.heard(uid, status));
    }

    /// The pod's object may be deleted once its last status has been taken.
    pub(crate) fn allow_delete(&self, uid: &PodUid, name: &FullName) {
        self.change(|desk| desk.allow_delete(uid, name));
    }

    /// Nobody needs to hear of this pod any more.
    pub(crate) fn forget(&self, uid: &PodUid) {
        self.change(|desk| desk.forget(uid));
    }

    /// Tells somebody once everything that lies here has been taken by the cluster.
    pub(crate) fn tell_when_empty(&self, who: oneshot::Sender<()>) {
        self.waiting().push(who);
        self.change(Desk::hurry);
    }

    fn waiting(&self) -> MutexGuard<'_, Vec<oneshot::Sender<()>>> {
        // A list of those who wait is one at any moment.
        self.inner.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn tell_if_empty(&self) {
        if self.desk().is_done() {
            // Who does not listen any more has left already.
            self.waiting().drain(..).filter_map(|who| who.send(()).err()).for_each(drop);
        }
    }

    fn change(&self, change: impl FnOnce(&mut Desk)) {
        change(&mut self.desk());
        self.inner.filled.notify_one();
    }

    fn desk(&self) -> MutexGuard<'_, Desk> {
        // Nothing that holds the lock can panic half-way through a change.
        self.inner.desk.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Carries statuses from the desk to the cluster, for ever.
pub(crate) async fn run(desk: StatusDesk, seams: Seams) {
    let mut under_way = FuturesUnordered::new();
    loop {
        while under_way.len() < HANDS
            && let Some(job) = desk.desk().take(seams.clock.mono())
        {
            under_way.push(perform(job, &seams));
        }
        desk.tell_if_empty();
        // With all hands full, the next that comes back is waited for, not the next that is due.
        let free = under_way.len() < HANDS;
        let due = desk.desk().next_due(seams.clock.mono()).filter(|_| free);
        tokio::select! {
            biased;
            Some((key, outcome)) = under_way.next() => {
                desk.desk().done(&key, outcome, seams.clock.mono());
            }
            () = desk.inner.filled.notified() => {}
            () = seams.clock.until(due) => {}
        }
    }
}

async fn perform(job: Job, seams: &Seams) -> (Key, Outcome) {
    let result = match &job {
        Job::Publish { key, name, status } => seams.cluster.publish(name, &key.uid, status).await,
        Job::Delete { key, name } => seams.cluster.delete(name, &key.uid).await,
    };
    let outcome = match (&job, result) {
        (Job::Publish { .. }, Ok(())) => Outcome::Published,
        (Job::Delete { .. }, Ok(())) | (_, Err(ClusterError::Gone { .. })) => Outcome::Gone,
        (_, Err(error)) => {
            tracing::warn!(%error, "it will be told again");
            let asked = match error {
                ClusterError::Busy { wait, .. } => Some(wait),
                _ => None,
            };
            job.failed(asked)
        }
    };
    (job.into_key(), outcome)
}
