//! Whether a pod tolerates the taints that keep pods from executing.

use k8s_openapi::api::core::v1::{Pod, Taint, Toleration};

use crate::admission::node::AdmissionNode;
use crate::pod::PodExt;

/// The one effect that concerns a node agent; the scheduler looks after the others.
const NO_EXECUTE: &str = "NoExecute";

/// Whether the pod tolerates every taint of that effect.
pub(super) fn are_tolerated(pod: &Pod, node: &AdmissionNode) -> bool {
    let taints = node.taints.iter().filter(|taint| taint.effect == NO_EXECUTE);
    let tolerations = pod.spec().and_then(|spec| spec.tolerations.as_deref()).unwrap_or_default();
    taints.into_iter().all(|taint| tolerations.iter().any(|it| tolerates(it, taint)))
}

/// An empty effect, and an empty key with `Exists`, stand for all.
pub(in crate::admission) fn tolerates(toleration: &Toleration, taint: &Taint) -> bool {
    let text = |text: &Option<String>| text.clone().unwrap_or_default();
    let (effect, key) = (text(&toleration.effect), text(&toleration.key));
    if !effect.is_empty() && effect != taint.effect || !key.is_empty() && key != taint.key {
        return false;
    }
    match toleration.operator.as_deref().unwrap_or_default() {
        "Exists" => true,
        "" | "Equal" => !key.is_empty() && text(&toleration.value) == text(&taint.value),
        _ => false,
    }
}
