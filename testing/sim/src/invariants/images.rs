//! The invariant on images: none that a pod needs is removed.

use oarsman_world::trace::{TraceEntry, TraceRecord};

use super::InvariantViolation;
use super::timeline::Timeline;
use crate::SimulationResult;

pub(super) fn no_image_goes_that_is_needed(
    result: &SimulationResult,
    _: &Timeline,
) -> Vec<InvariantViolation> {
    let violation = |record: &TraceRecord| match &record.entry {
        TraceEntry::ImageRemoved { is_pinned, user, .. } if *is_pinned || user.is_some() => {
            let (rule, what) = ("no image goes that is needed", record.entry.to_string());
            Some(InvariantViolation { rule, at: record.at, what })
        }
        _ => None,
    };
    result.records.iter().filter_map(violation).collect()
}
