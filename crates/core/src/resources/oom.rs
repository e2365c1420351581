//! The OOM score adjustment of containers.

use k8s_openapi::api::core::v1::{Container, Pod};

use crate::pod::{ContainerKind, PodExt, init_kind};
use crate::qos::{self, QosClass};
use crate::resources::amounts::{container_requests, read};

use super::totals::{amount, own_requests};

/// The last to go, but for the agent and the runtime.
const GUARANTEED: i64 = -997;
const BEST_EFFORT: i64 = 1000;
/// What burstable containers are kept between, so that each class stays apart from the others.
const BURSTABLE: (i64, i64) = (1000 + GUARANTEED, BEST_EFFORT - 1);

const NODE_CRITICAL_CLASS: &str = "system-node-critical";

/// The adjustment of the kernel's score for one container of the pod. The more of the machine's
/// memory a burstable container requests, the later it goes.
pub fn oom_score_adj(pod: &Pod, container: &Container, machine_memory: u64) -> i64 {
    match qos::class(pod) {
        _ if is_node_critical(pod) => GUARANTEED,
        QosClass::Guaranteed => GUARANTEED,
        QosClass::BestEffort => BEST_EFFORT,
        QosClass::Burstable => burstable(pod, container, machine_memory),
    }
}

fn is_node_critical(pod: &Pod) -> bool {
    let class = pod.spec().and_then(|spec| spec.priority_class_name.as_deref());
    pod.is_critical() && class == Some(NODE_CRITICAL_CLASS)
}

fn burstable(pod: &Pod, container: &Container, machine_memory: u64) -> i64 {
    let counted = counted_request(pod, container).saturating_add(spare_request(pod));
    let memory = i128::from(machine_memory.max(1));
    let score = 1000 - 1000 * i128::from(counted) / memory;
    let (least, most) = BURSTABLE;
    i64::try_from(score).unwrap_or(least).clamp(least, most)
}

/// What a container requests. A sidecar counts as the smallest regular container at least: it must
/// not go before those it serves.
fn counted_request(pod: &Pod, container: &Container) -> i64 {
    let own = memory_request(container);
    let is_sidecar = init_kind(container) == ContainerKind::Sidecar
        && pod.init().iter().any(|other| other.name == container.name);
    let smallest = pod.regular().iter().map(memory_request).min().unwrap_or_default();
    if is_sidecar { own.max(smallest) } else { own }
}

/// A container's part of what the pod as a whole requests beyond its containers.
fn spare_request(pod: &Pod) -> i64 {
    let whole = amount(&own_requests(pod), "memory").units();
    let containers = i64::try_from(pod.regular().len() + pod.init().len()).unwrap_or(i64::MAX);
    if whole == 0 || containers == 0 {
        return 0;
    }
    let requested = pod.spec().map(container_requests).unwrap_or_default();
    whole.saturating_sub(amount(&requested, "memory").units()) / containers
}

fn memory_request(container: &Container) -> i64 {
    let requests = container.resources.as_ref().and_then(|all| all.requests.as_ref());
    amount(&read(requests), "memory").units()
}
