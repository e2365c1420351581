//! The outcome of a sync, from the actions and their results.

use super::pod_actions::PodActions;
use crate::lifecycle::SyncOutcome;
use crate::time::Mono;

/// The results of starting containers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StartResults {
    /// Why the first of those that failed did.
    pub failed: Option<String>,
    /// When the first of those that are held back may be tried again.
    pub until: Option<Mono>,
    /// Whether the pod was read after the last of them.
    pub read: bool,
}

impl StartResults {
    /// One more container failed to start.
    pub fn fail(&mut self, why: &str) {
        self.failed.get_or_insert_with(|| why.to_owned());
    }

    /// One more container is held back.
    pub fn hold(&mut self, until: Mono) {
        self.until = Some(self.until.map_or(until, |first| first.min(until)));
    }
}

impl PodActions {
    /// Whether the actions changed the pod since it was last read.
    pub fn changed_since_read(&self, results: &StartResults) -> bool {
        !self.is_idle() && !results.read
    }

    /// How the sync that performed the actions ended. A pod of which nothing is ever to be started again has ended, also when its
    /// phase (`is_terminal`) cannot tell yet.
    pub fn sync_outcome(&self, is_terminal: bool, results: StartResults) -> SyncOutcome {
        if is_terminal || self.end_reason.is_some() {
            return SyncOutcome::Terminal;
        }
        if let Some(error) = results.failed {
            return SyncOutcome::Failed(error);
        }
        match [self.next_sync_at(), results.until].into_iter().flatten().min() {
            Some(until) => SyncOutcome::BackOff { until },
            None => SyncOutcome::Ok,
        }
    }
}
