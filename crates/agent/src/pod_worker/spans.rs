//! The spans of a pod worker's work, with the names and attributes of the Go kubelet's.

use oarsman_core::lifecycle::{HeldResource, KillOutcome, SyncOutcome};
use oarsman_spans::wire::{KeyValue, SpanKind};
use oarsman_spans::{SpanDescription, SpanOutcome};

use super::context::PodContext;

#[cfg(test)]
mod tests;

/// The span of one sync; `update_type` is what metrics call its operation.
pub(super) fn sync(context: &PodContext, update_type: &str) -> SpanDescription {
    let mut span = of_pod(context, "syncPod");
    span.attributes.push(KeyValue::text("k8s.pod.update_type", update_type));
    span
}

/// The span of one attempt to kill the pod.
pub(super) fn kill(context: &PodContext) -> SpanDescription {
    of_pod(context, "syncTerminatingPod")
}

/// The span of one attempt to release a part of what the ended pod held; the Go kubelet has one for all parts.
pub(super) fn release(context: &PodContext, part: HeldResource) -> SpanDescription {
    let mut span = of_pod(context, "syncTerminatedPod");
    let part = match part {
        HeldResource::Volumes => "volumes",
        HeldResource::Cgroup => "cgroup",
    };
    span.attributes.push(KeyValue::text("oarsman.released", part));
    span
}

fn of_pod(context: &PodContext, name: &'static str) -> SpanDescription {
    let (uid, pod) = (context.uid.as_str(), &context.name);
    SpanDescription {
        name: name.into(),
        kind: SpanKind::Internal,
        attributes: vec![
            KeyValue::text("k8s.pod.uid", uid),
            KeyValue::text("k8s.pod", format!("{}/{}", pod.namespace, pod.name)),
            KeyValue::text("k8s.pod.name", &pod.name),
            KeyValue::text("k8s.namespace.name", &pod.namespace),
        ],
    }
}

pub(super) fn sync_outcome(outcome: &SyncOutcome) -> SpanOutcome {
    let failure = match outcome {
        SyncOutcome::Failed(error) => Some(error.as_str()),
        SyncOutcome::NetworkNotReady => Some("network is not ready"),
        SyncOutcome::CgroupGone => Some("the pod's cgroup is gone"),
        SyncOutcome::Cancelled => Some("cancelled"),
        SyncOutcome::Ok | SyncOutcome::Terminal | SyncOutcome::BackOff { .. } => None,
    };
    of_failure(failure)
}

pub(super) fn kill_outcome(outcome: &KillOutcome) -> SpanOutcome {
    of_failure(match outcome {
        KillOutcome::Ok => None,
        KillOutcome::StillRunning => Some("something of the pod still runs"),
        KillOutcome::Failed(error) => Some(error),
    })
}

pub(super) fn release_outcome(outcome: &Result<(), String>) -> SpanOutcome {
    of_failure(outcome.as_ref().err().map(String::as_str))
}

fn of_failure(failure: Option<&str>) -> SpanOutcome {
    SpanOutcome { failure: failure.map(str::to_owned), ..SpanOutcome::default() }
}
