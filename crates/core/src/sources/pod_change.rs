//! What counts as a change of a pod, and what of it is taken over.

use std::collections::BTreeMap;
use std::sync::Arc;

use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use crate::pod::{MIRROR_ANNOTATION, PodExt, SEEN_ANNOTATION, SOURCE_ANNOTATION};

use super::PodOperation;

/// Annotations of our own: no change of a pod, and kept when everything else of it changes.
const LOCAL: [&str; 3] = [SOURCE_ANNOTATION, MIRROR_ANNOTATION, SEEN_ANNOTATION];

/// What became of a pod between two looks at it, if anything.
pub(super) fn pod_operation(
    before: Option<&Arc<Pod>>,
    after: Option<&Arc<Pod>>,
) -> Option<PodOperation> {
    match (before, after) {
        (None, None) => None,
        (None, Some(_)) => Some(PodOperation::Add),
        (Some(_), None) => Some(PodOperation::Remove),
        (Some(before), Some(after)) if Arc::ptr_eq(before, after) => None,
        (Some(before), Some(after)) => of(before, after),
    }
}

fn of(before: &Pod, after: &Pod) -> Option<PodOperation> {
    let moved = before.annotation(SOURCE_ANNOTATION) != after.annotation(SOURCE_ANNOTATION);
    if moved || pods_differ_semantically(before, after) || gates(before).ne(gates(after)) {
        let deleting = after.is_deleting();
        return Some(if deleting { PodOperation::Delete } else { PodOperation::Update });
    }
    (before.status != after.status).then_some(PodOperation::Reconcile)
}

/// The known pod brought up to date with what its source says now.
///
/// Only what matters to the agent is taken over; owners and finalizers, for example, are not.
pub(super) fn check_and_update_pod(known: &Arc<Pod>, received: Pod) -> Arc<Pod> {
    if pods_differ_semantically(known, &received) {
        return Arc::new(taken_over(known, received));
    }
    if known.status != received.status {
        return Arc::new(Pod { status: received.status, ..known.as_ref().clone() });
    }
    known.clone()
}

fn taken_over(known: &Pod, received: Pod) -> Pod {
    let annotations = with_local_of(known, received.metadata.annotations);
    let metadata = ObjectMeta {
        labels: received.metadata.labels,
        deletion_timestamp: received.metadata.deletion_timestamp,
        deletion_grace_period_seconds: received.metadata.deletion_grace_period_seconds,
        generation: received.metadata.generation,
        annotations,
        ..known.metadata.clone()
    };
    Pod { metadata, spec: received.spec, status: received.status }
}

/// Whether the pod is wanted differently.
fn pods_differ_semantically(one: &Pod, other: &Pod) -> bool {
    let (a, b) = (&one.metadata, &other.metadata);
    one.spec != other.spec
        || pairs(a.labels.as_ref()).ne(pairs(b.labels.as_ref()))
        || a.deletion_timestamp != b.deletion_timestamp
        || a.deletion_grace_period_seconds != b.deletion_grace_period_seconds
        || foreign_annotations(one).ne(foreign_annotations(other))
}

/// How the gates stand that others keep before the pod's readiness: all that we read of a status that is not our own.
fn gates(pod: &Pod) -> impl Iterator<Item = Option<&str>> {
    let gates = pod.spec().and_then(|spec| spec.readiness_gates.as_deref()).unwrap_or_default();
    let conditions = pod.status.as_ref().and_then(|status| status.conditions.as_deref());
    gates.iter().map(move |gate| {
        let mut conditions = conditions.into_iter().flatten();
        let kept = conditions.find(|condition| condition.type_ == gate.condition_type)?;
        Some(kept.status.as_str())
    })
}

fn foreign_annotations(pod: &Pod) -> impl Iterator<Item = (&String, &String)> {
    pairs(pod.metadata.annotations.as_ref()).filter(|(key, _)| !LOCAL.contains(&key.as_str()))
}

/// A missing map is an empty one.
fn pairs(map: Option<&BTreeMap<String, String>>) -> impl Iterator<Item = (&String, &String)> {
    map.into_iter().flatten()
}

fn with_local_of(
    known: &Pod,
    received: Option<BTreeMap<String, String>>,
) -> Option<BTreeMap<String, String>> {
    let local = LOCAL.iter().filter_map(|key| {
        let value = known.annotation(key)?;
        Some(((*key).to_owned(), value.to_owned()))
    });
    Some(received.into_iter().flatten().chain(local).collect())
}
