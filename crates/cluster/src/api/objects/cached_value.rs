//! A cached value, and waiting for its first answer.

use std::time::Duration;

use tokio::sync::watch;
use tokio::time::{Instant, timeout_at};

use crate::{ClusterError, Result};

/// How long callers wait for the first answer; a request that is refused at first may succeed a moment later, when the node authorizer
/// has seen the pod's binding.
pub(super) const PATIENCE: Duration = Duration::from_secs(3);

/// The state of a value.
#[derive(Clone, Debug)]
enum ValueState<T> {
    /// There was no answer yet.
    Unknown,
    /// There were only failures; the last one.
    Failed(ClusterError),
    /// The last answer of the API server.
    Known(T),
}

/// A cached value; clones share it.
#[derive(Clone, Debug)]
pub(super) struct CachedValue<T> {
    state: watch::Sender<ValueState<T>>,
    began: Instant,
}

impl<T: Clone + PartialEq> CachedValue<T> {
    pub(super) fn new() -> Self {
        Self { state: watch::Sender::new(ValueState::Unknown), began: Instant::now() }
    }

    /// Stores an answer. Tells whether it is a change for a pod that was given another answer or an error before.
    pub(super) fn set(&self, new: T) -> bool {
        let (mut is_news, nobody_waits) = (false, self.state.receiver_count() == 0);
        self.state.send_if_modified(|state| {
            is_news = match state {
                ValueState::Unknown => nobody_waits,
                ValueState::Failed(_) => true,
                ValueState::Known(old) => *old != new,
            };
            let is_new = is_news || matches!(state, ValueState::Unknown);
            if is_new {
                *state = ValueState::Known(new);
            }
            is_new
        });
        is_news
    }

    /// Stores a failure, unless a value is known.
    pub(super) fn set_failed(&self, error: ClusterError) {
        self.state.send_if_modified(|state| match state {
            ValueState::Known(_) => false,
            ValueState::Unknown | ValueState::Failed(_) => {
                *state = ValueState::Failed(error);
                true
            }
        });
    }

    /// Replaces a value that is no longer valid by an error.
    pub(super) fn expire(&self, error: ClusterError) {
        self.state.send_replace(ValueState::Failed(error));
    }

    /// Waits until `found` finds something in the value.
    pub(super) async fn wait_until<U>(&self, mut found: impl FnMut(&T) -> Option<U>) -> U {
        let mut state = self.state.subscribe();
        loop {
            let known = match &*state.borrow_and_update() {
                ValueState::Known(known) => found(known),
                ValueState::Unknown | ValueState::Failed(_) => None,
            };
            match known {
                Some(known) => return known,
                // The sender is our own, so there will be a change or none.
                None => drop(state.changed().await),
            }
        }
    }

    /// The value, if it is known.
    pub(super) fn get(&self) -> Option<T> {
        match &*self.state.borrow() {
            ValueState::Known(known) => Some(known.clone()),
            ValueState::Unknown | ValueState::Failed(_) => None,
        }
    }

    /// The value; waits for it for what is left of `PATIENCE`. `late` makes the error when there was no answer at all by then.
    pub(super) async fn wait(&self, late: impl FnOnce(Duration) -> ClusterError) -> Result<T> {
        let mut state = self.state.subscribe();
        let is_known = |state: &ValueState<T>| matches!(state, ValueState::Known(_));
        // The sender is our own: only the timeout can fail.
        timeout_at(self.began + PATIENCE, state.wait_for(is_known)).await.ok();
        match &*self.state.borrow() {
            ValueState::Known(known) => return Ok(known.clone()),
            ValueState::Failed(error) => return Err(error.clone()),
            ValueState::Unknown => {}
        }
        // With the error stored, a later answer counts as a change.
        let error = late(PATIENCE);
        self.set_failed(error.clone());
        Err(error)
    }
}
