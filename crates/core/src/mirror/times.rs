//! Since when a mirror has been as it is.
//!
//! A static pod has no status in the API server, so an agent that adopts one would set all its times anew. Its mirror pod has the
//! original ones.

use k8s_openapi::api::core::v1::{PodCondition, PodStatus};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

/// Which of our times stand for which of the mirror's.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct TransitionTimes {
    /// When its pod was first taken note of.
    start: Option<Time>,
    conditions: Vec<TransitionTime>,
}

#[derive(Clone, Debug, PartialEq)]
struct TransitionTime {
    condition: (String, String),
    ours: Option<Time>,
    theirs: Time,
}

impl TransitionTimes {
    /// What a mirror says of the conditions that this status has, too.
    pub(super) fn compare(mirror: Option<&PodStatus>, status: &PodStatus) -> Self {
        let theirs = |ours: &&PodCondition| {
            let mut mirrored = mirror?.conditions.iter().flatten();
            let same = |mirrored: &&PodCondition| {
                (&mirrored.type_, &mirrored.status) == (&ours.type_, &ours.status)
            };
            mirrored.find(same)?.last_transition_time.clone()
        };
        let known = status.conditions.iter().flatten().filter_map(|ours| {
            Some(TransitionTime {
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
            let same = |since: &&TransitionTime| {
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
