//! Since when a mirror has been as it is.
//!
//! A static pod has no status in the API server, so an agent that adopts one would set all its times anew. Its mirror pod has the
//! original ones.

use k8s_openapi::api::core::v1::{PodCondition, PodStatus};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

/// Which of our times stand for which of the mirror's.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Times {
    /// When its pod was first taken note of.
    start: Option<Time>,
    conditions: Vec<Since>,
}

#[derive(Clone, Debug, PartialEq)]
struct Since {
    condition: (String, String),
    ours: Option<Time>,
    theirs: Time,
}

impl Times {
    /// What a mirror says of the conditions that this status has, too.
    pub(super) fn compare(mirror: Option<&PodStatus>, status: &PodStatus) -> Self {
        let theirs = |ours: &&PodCondition| {
            let mut told = mirror?.conditions.iter().flatten();
            let same =
                |told: &&PodCondition| (&told.type_, &told.status) == (&ours.type_, &ours.status);
            told.find(same)?.last_transition_time.clone()
        };
        let known = status.conditions.iter().flatten().filter_map(|ours| {
            Some(Since {
                condition: (ours.type_.clone(), ours.status.clone()),
                ours: ours.last_transition_time.clone(),
                theirs: theirs(&ours)?,
            })
        });
        let start = mirror.and_then(|mirror| mirror.start_time.clone());
        Self { start, conditions: known.collect() }
    }

    /// The status with the mirror's times, wherever nothing has changed since.
    pub(super) fn restore(&self, mut status: PodStatus) -> PodStatus {
        for condition in status.conditions.iter_mut().flatten() {
            let same = |since: &&Since| {
                (&since.condition.0, &since.condition.1) == (&condition.type_, &condition.status)
                    && since.ours == condition.last_transition_time
            };
            if let Some(since) = self.conditions.iter().find(same) {
                condition.last_transition_time = Some(since.theirs.clone());
            }
        }
        if let Some(start) = self.start.as_ref().filter(|_| status.start_time.is_some()) {
            status.start_time = Some(start.clone());
        }
        status
    }
}
