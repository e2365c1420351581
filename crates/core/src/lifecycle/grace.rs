//! How long a pod has to stop by itself.

use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;

use crate::pod::PodExt;

/// A pod's grace period: at least one second, so that every process is asked before it is killed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Grace(i64);

impl Grace {
    /// The shortest there is; what an orphan gets.
    pub const SHORTEST: Self = Self(1);

    /// So many seconds, and at least one.
    pub fn from_seconds(seconds: i64) -> Self {
        Self(seconds.max(Self::SHORTEST.0))
    }

    /// What a pod gets that begins to terminate: the shorter of what the API server set on deletion and what the
    /// one who asked allows; without either, what its spec says. An orphan gets the shortest.
    pub(super) fn initial(pod: Option<&Pod>, asked: Option<i64>) -> Self {
        let Some(pod) = pod else {
            return Self::SHORTEST;
        };
        let set = [deletion_grace(pod), asked].into_iter().flatten().min();
        Self::from_seconds(set.or_else(|| spec_grace(pod)).unwrap_or_default())
    }

    /// The shorter of this and what is asked for now: grace never grows.
    #[must_use]
    pub(super) fn shortened_to(self, asked: Option<i64>) -> Self {
        asked.map_or(self, |seconds| self.min(Self::from_seconds(seconds)))
    }

    /// In whole seconds.
    pub fn seconds(self) -> i64 {
        self.0
    }

    /// As a duration.
    pub fn as_duration(self) -> Duration {
        Duration::from_secs(self.0.unsigned_abs())
    }

    /// How long a kill may take before the event that it is overdue.
    pub(super) fn overdue_after(self) -> Duration {
        let grace = self.as_duration();
        (grace + grace / 2).max(Duration::from_secs(10))
    }
}

/// What the API server set when deletion was asked for.
pub(super) fn deletion_grace(pod: &Pod) -> Option<i64> {
    pod.metadata.deletion_grace_period_seconds
}

fn spec_grace(pod: &Pod) -> Option<i64> {
    pod.spec().and_then(|spec| spec.termination_grace_period_seconds)
}
