//! Keeps the mirrors of static pods in the API server as they should be, and passes statuses on under the mirrors' UIDs.
//!
//! What is to be done is known to the board (`oarsman_core::mirror`); here it is asked for, one thing a name at a time. Nothing
//! waits for it: a static pod runs whether anybody sees it or not.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures::StreamExt;
use futures::stream::FuturesUnordered;
use k8s_openapi::api::core::v1::{Pod, PodStatus};
use oarsman_cluster::ClusterError;
use oarsman_core::ids::{FullName, PodUid};
use oarsman_core::mirror::{Board, Errand, Tidings};
use tokio::sync::Notify;

use crate::latest;
use crate::node::NodeIdentity;
use crate::seams::Seams;
use crate::status_writer::StatusDesk;

/// How many mirrors are made or deleted at once.
const HANDS: usize = 4;

/// Static pods and their mirrors; clones are the same.
#[derive(Clone, Debug)]
pub(crate) struct Mirrors {
    inner: Arc<Inner>,
    desk: StatusDesk,
}

#[derive(Debug, Default)]
struct Inner {
    board: Mutex<Board>,
    changed: Notify,
}

impl Mirrors {
    /// Nothing yet; statuses of mirrors will be left on that desk.
    pub(crate) fn new(desk: StatusDesk) -> Self {
        Self { inner: Arc::default(), desk }
    }

    /// A static pod is looked after from now on.
    pub(crate) fn lives(&self, pod: &Arc<Pod>) {
        self.change(|board| {
            board.lives(pod);
            None
        });
    }

    /// What is left of a pod that nobody wants is being brought down.
    pub(crate) fn lingers(&self, uid: &PodUid, name: &FullName) {
        self.change(|board| {
            board.lingers(uid, name);
            None
        });
    }

    /// Nothing is left of a pod.
    pub(crate) fn gone(&self, uid: &PodUid) {
        self.change(|board| {
            board.gone(uid);
            None
        });
    }

    /// A static pod is so now.
    pub(crate) fn is(&self, uid: &PodUid, name: &FullName, status: &PodStatus) {
        self.change(|board| board.is(uid, name, status));
    }

    /// These mirrors there are.
    pub(crate) fn see(&self, mirrors: Vec<Pod>) {
        self.change(|board| board.see(mirrors));
    }

    /// Every source has told its pods.
    pub(crate) fn complete(&self) {
        self.change(|board| {
            board.complete();
            None
        });
    }

    fn change<T: IntoIterator<Item = Tidings>>(&self, change: impl FnOnce(&mut Board) -> T) {
        let tidings = change(&mut self.board());
        for tidings in tidings {
            match tidings {
                Tidings::Tell(name, uid, status) => self.desk.publish(&uid, &name, *status),
                Tidings::Has(uid, status) => self.desk.heard(&uid, &status),
                Tidings::Gone(uid) => self.desk.forget(&uid),
            }
        }
        self.inner.changed.notify_one();
    }

    fn board(&self) -> MutexGuard<'_, Board> {
        // Nothing that holds the lock can panic half-way through a change.
        self.inner.board.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Makes and deletes mirrors, for ever, once the node is known to the API server.
pub(crate) async fn run(
    mirrors: Mirrors,
    seams: Seams,
    mut node: latest::Receiver<Option<NodeIdentity>>,
) {
    let Ok(Some(node)) = node.wait_for(Option::is_some).await else { return };
    let mut under_way = FuturesUnordered::new();
    loop {
        while under_way.len() < HANDS
            && let Some(errand) = mirrors.board().next(&node.uid, seams.clock.mono())
        {
            under_way.push(perform(errand, &seams));
        }
        let due = mirrors.board().next_due().filter(|_| under_way.len() < HANDS);
        tokio::select! {
            biased;
            Some((name, served)) = under_way.next() => {
                mirrors.board().done(&name, served, seams.clock.mono());
            }
            () = mirrors.inner.changed.notified() => {}
            () = seams.clock.until(due) => {}
        }
    }
}

/// Who it was for, and whether it was served. A mirror that is gone already need not be deleted.
async fn perform(errand: Errand, seams: &Seams) -> (FullName, bool) {
    let name = errand.name();
    let result = match &errand {
        Errand::Create(mirror) => seams.cluster.reflect(mirror).await,
        Errand::Delete(name, uid) => seams.cluster.delete(name, uid).await,
    };
    let served = match result {
        Ok(()) | Err(ClusterError::Gone { .. }) => true,
        Err(error) => {
            tracing::warn!(pod = %name, %error, "its mirror in the API server is not as it should be");
            false
        }
    };
    (name, served)
}
