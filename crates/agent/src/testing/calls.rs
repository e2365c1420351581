//! A middleware that holds calls back, or fails them, by their names.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use oarsman_seam::{Call, CallFault, Middleware, SeamError};
use oarsman_sync::ordered_watch;

/// What happens to calls; clones are the same.
#[derive(Clone)]
pub(crate) struct Calls(Arc<ordered_watch::Sender<CallRules>>);

#[derive(Clone, Default)]
struct CallRules {
    held: BTreeSet<&'static str>,
    /// How often each fails from now on.
    failing: BTreeMap<&'static str, u32>,
}

impl Default for Calls {
    fn default() -> Self {
        Self(Arc::new(ordered_watch::Sender::new(CallRules::default())))
    }
}

impl Calls {
    /// Calls of that name do not begin until they are released.
    pub(crate) fn hold(&self, call: &'static str) {
        self.0.send_modify(|rules| rules.held.extend([call]));
    }

    pub(crate) fn release(&self, call: &str) {
        self.0.send_modify(|rules| rules.held.retain(|held| *held != call));
    }

    /// The next calls of that name fail without effect.
    pub(crate) fn fail(&self, call: &'static str, times: u32) {
        self.0.send_modify(|rules| rules.failing.extend([(call, times)]));
    }

    fn fails(&self, call: &str) -> bool {
        let mut fails = false;
        self.0.send_modify(|rules| {
            let left = rules.failing.get_mut(call).filter(|left| **left > 0);
            fails = left.map(|left| *left -= 1).is_some();
        });
        fails
    }
}

impl Middleware for Calls {
    async fn around<T, E>(
        &self,
        call: Call,
        answer: impl Future<Output = Result<T, E>> + Send + 'static,
    ) -> Result<T, E>
    where
        T: Send + 'static,
        E: SeamError,
    {
        self.0.subscribe().wait_for(|rules| !rules.held.contains(call.name)).await.ok();
        if self.fails(call.name) {
            return Err(E::of_fault(&call, CallFault::Unknown));
        }
        answer.await
    }
}
