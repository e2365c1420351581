//! The status of a pod that was not admitted to this node.

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Pod, PodStatus};

use super::phase::Phase;
use super::stamp;
use crate::lifecycle::Verdict;
use crate::qos;

/// Failed, with the reason, and without any container. A phase that is terminal already stays as it is.
pub fn status(
    pod: &Pod,
    verdict: &Verdict,
    previous: Option<&PodStatus>,
    now: Timestamp,
) -> PodStatus {
    let said = previous.or(pod.status.as_ref());
    let ended = said.filter(|said| Phase::of(said).is_some_and(Phase::is_terminal));
    let start_time = said.and_then(|said| said.start_time.clone());
    let failed = || PodStatus {
        phase: Some(Phase::Failed.as_str().to_owned()),
        reason: Some(verdict.reason.clone()),
        message: Some(verdict.message.clone()),
        qos_class: Some(qos::class(pod).to_string()),
        start_time: Some(start_time.unwrap_or_else(|| stamp::seconds(now))),
        observed_generation: pod.metadata.generation,
        ..PodStatus::default()
    };
    ended.cloned().unwrap_or_else(failed)
}
