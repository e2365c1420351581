//! What is known of one thing, and waiting for the first word on it.

use std::time::Duration;

use tokio::sync::watch;
use tokio::time::{Instant, timeout_at};

use crate::{ClusterError, Result};

/// How long those who ask wait for the first answer; what is refused at first may be granted a moment later, when the API server
/// has heard of the pod's binding, too.
const PATIENCE: Duration = Duration::from_secs(3);

/// What is known.
#[derive(Clone, Debug)]
enum Sight<T> {
    /// Nobody has answered yet.
    Nothing,
    /// All that came are failures.
    Failed(ClusterError),
    /// The last answer.
    Known(T),
}

/// One thing and what is known of it; clones are the same one.
#[derive(Clone, Debug)]
pub(super) struct Cell<T> {
    sight: watch::Sender<Sight<T>>,
    began: Instant,
}

impl<T: Clone + PartialEq> Cell<T> {
    pub(super) fn new() -> Self {
        Self { sight: watch::Sender::new(Sight::Nothing), began: Instant::now() }
    }

    /// Writes the last answer down. Tells whether somebody should hear of it, who had to do without or with another one.
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

    /// Writes a failure down; what is known counts for more.
    pub(super) fn fail(&self, error: ClusterError) {
        self.sight.send_if_modified(|sight| match sight {
            Sight::Known(_) => false,
            Sight::Nothing | Sight::Failed(_) => {
                *sight = Sight::Failed(error);
                true
            }
        });
    }

    /// Forgets what is known, for it is good no longer.
    pub(super) fn lose(&self, error: ClusterError) {
        self.sight.send_replace(Sight::Failed(error));
    }

    /// What is known, if anything is.
    pub(super) fn known(&self) -> Option<T> {
        match &*self.sight.borrow() {
            Sight::Known(known) => Some(known.clone()),
            Sight::Nothing | Sight::Failed(_) => None,
        }
    }

    /// What is known; waits for it as long as is left of the patience. `late` is the error when nobody has even failed by then.
    pub(super) async fn answer(&self, late: impl FnOnce(Duration) -> ClusterError) -> Result<T> {
        let mut sight = self.sight.subscribe();
        let is_known = |sight: &Sight<T>| matches!(sight, Sight::Known(_));
        // The sender is our own: all that can go wrong is the time.
        timeout_at(self.began + PATIENCE, sight.wait_for(is_known)).await.ok();
        match &*self.sight.borrow() {
            Sight::Known(known) => return Ok(known.clone()),
            Sight::Failed(error) => return Err(error.clone()),
            Sight::Nothing => {}
        }
        // Whoever answers after this has somebody to tell.
        let error = late(PATIENCE);
        self.fail(error.clone());
        Err(error)
    }
}
