//! A cached value, and waiting for its first answer.

use std::time::Duration;

use tokio::sync::watch;
use tokio::time::{Instant, timeout_at};

use crate::{ClusterError, Result};

/// How long callers wait for the first answer; a request that is refused at first may succeed a moment later, when the node authorizer
/// has seen the pod's binding.
const PATIENCE: Duration = Duration::from_secs(3);

/// The state of a value.
#[derive(Clone, Debug)]
enum Sight<T> {
    /// There was no answer yet.
    Nothing,
    /// There were only failures; the last one.
    Failed(ClusterError),
    /// The last answer.
    Known(T),
}

/// A cached value; clones share it.
#[derive(Clone, Debug)]
pub(super) struct Cell<T> {
    sight: watch::Sender<Sight<T>>,
    began: Instant,
}

impl<T: Clone + PartialEq> Cell<T> {
    pub(super) fn new() -> Self {
        Self { sight: watch::Sender::new(Sight::Nothing), began: Instant::now() }
    }

    /// Stores an answer. Tells whether it is a change for a pod that was given another answer or an error before.
    pub(super) fn learn(&self, new: T) -> bool {
        let (mut is_news, nobody_waits) = (false, self.sight.receiver_count() == 0);
        self.sight.send_if_modified(|sight| {
            is_news = match sight {
                Sight::Nothing => nobody_waits,
                Sight::Failed(_) => true,
                Sight::Known(old) => *old != new,
            };
            let is_new = is_news || matches!(sight, Sight::Nothing);
            if is_new {
                *sight = Sight::Known(new);
            }
            is_new
        });
        is_news
    }

    /// Stores a failure, unless a value is known.
    pub(super) fn fail(&self, error: ClusterError) {
        self.sight.send_if_modified(|sight| match sight {
            Sight::Known(_) => false,
            Sight::Nothing | Sight::Failed(_) => {
                *sight = Sight::Failed(error);
                true
            }
        });
    }

    /// Replaces a value that is no longer valid by an error.
    pub(super) fn lose(&self, error: ClusterError) {
        self.sight.send_replace(Sight::Failed(error));
    }

    /// The value, if it is known.
    pub(super) fn known(&self) -> Option<T> {
        match &*self.sight.borrow() {
            Sight::Known(known) => Some(known.clone()),
            Sight::Nothing | Sight::Failed(_) => None,
        }
    }

    /// The value; waits for it for what is left of `PATIENCE`. `late` makes the error when there was no answer at all by then.
    pub(super) async fn answer(&self, late: impl FnOnce(Duration) -> ClusterError) -> Result<T> {
        let mut sight = self.sight.subscribe();
        let is_known = |sight: &Sight<T>| matches!(sight, Sight::Known(_));
        // The sender is our own: only the timeout can fail.
        timeout_at(self.began + PATIENCE, sight.wait_for(is_known)).await.ok();
        match &*self.sight.borrow() {
            Sight::Known(known) => return Ok(known.clone()),
            Sight::Failed(error) => return Err(error.clone()),
            Sight::Nothing => {}
        }
        // With the error stored, a later answer counts as a change.
        let error = late(PATIENCE);
        self.fail(error.clone());
        Err(error)
    }
}
