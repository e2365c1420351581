//! The status of a pod that was not admitted to this node.

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Pod, PodStatus};

use super::normalise;
use super::phase::Phase;
use crate::lifecycle::PodFailure;
use crate::qos;

/// Failed, with the reason, and without any container. A phase that is terminal already stays as it is.
pub fn status(
    pod: &Pod,
    failure: &PodFailure,
    previous: Option<&PodStatus>,
    now: Timestamp,
) -> PodStatus {
    let published = previous.or(pod.status.as_ref());
    let ended = published.filter(|published| Phase::of(published).is_some_and(Phase::is_terminal));
    let start_time = published.and_then(|published| published.start_time.clone());
    let failed = || PodStatus {
        phase: Some(Phase::Failed.as_str().to_owned()),
        reason: Some(failure.reason.clone()),
        message: Some(failure.message.clone()),
        qos_class: Some(qos::class(pod).to_string()),
        start_time: Some(start_time.unwrap_or_else(|| normalise::seconds(now))),
        observed_generation: pod.metadata.generation,
        ..PodStatus::default()
    };
    ended.cloned().unwrap_or_else(failed)
}
