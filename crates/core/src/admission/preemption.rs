//! Which pods make room for a critical one.

use std::fmt;

use k8s_openapi::api::core::v1::Pod;

use super::predicates::{InsufficientResource, request_of};
use crate::event::PodEvent;
use crate::lifecycle::{KillRequest, KillRequester, PodFailure};
use crate::pod::PodExt;
use crate::qos::{self, QosClass};

/// The reason of victims, in their event and their status.
pub(super) const PREEMPTING: &str = "Preempting";
/// The message of victims.
pub(super) const PREEMPTED: &str = "Preempted in order to admit critical pod";

/// The event of a victim.
pub fn victim_event() -> PodEvent {
    PodEvent::warning(PREEMPTING, PREEMPTED)
}

/// The order to its worker: its own grace period, and a status that says why.
pub fn victim_kill() -> KillRequest {
    KillRequest {
        by: KillRequester::Preemption,
        grace: None,
        failure: Some(PodFailure::disrupted(PREEMPTING, PREEMPTED)),
    }
}

/// How much of a resource must be freed.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Requirement {
    resource: String,
    quantity: i64,
}

/// There are not enough pods that may be preempted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct NothingToPreempt(Vec<Requirement>);

impl fmt::Display for NothingToPreempt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(
            "preemption: error finding a set of pods to preempt: no set of running pods found to reclaim resources: [",
        )?;
        for Requirement { resource, quantity } in &self.0 {
            write!(f, "(res: {resource}, q: {quantity}), ")?;
        }
        f.write_str("]")
    }
}

/// Whether a pod may be killed for another: one that is not critical, or of lower priority.
fn is_preemptable(preemptor: &Pod, pod: &Pod) -> bool {
    let priority = |pod: &Pod| pod.spec().and_then(|spec| spec.priority);
    let is_lower = || priority(preemptor).zip(priority(pod)).is_some_and(|(of, than)| of > than);
    (preemptor.is_critical() && !pod.is_critical()) || is_lower()
}

/// The pods to kill so that what is missing becomes free: first those of lower quality of service; within a class those that come closest
/// to what is needed. None of them is dispensable.
pub(super) fn victims<'a>(
    preemptor: &Pod,
    pods: &[&'a Pod],
    missing: &[InsufficientResource],
) -> Result<Vec<&'a Pod>, NothingToPreempt> {
    let needed: Vec<Requirement> = missing
        .iter()
        .map(|it| Requirement { resource: it.resource.clone(), quantity: it.shortfall() })
        .collect();
    let of_class = |class: QosClass| -> Vec<&'a Pod> {
        let pods = pods.iter().copied().filter(|pod| is_preemptable(preemptor, pod));
        pods.filter(|pod| qos::class(pod) == class).collect()
    };
    let classes = [QosClass::BestEffort, QosClass::Burstable, QosClass::Guaranteed].map(of_class);
    let [best_effort, burstable, guaranteed] = &classes;
    let unmet = without(&needed, classes.iter().flatten());
    if !unmet.is_empty() {
        return Err(NothingToPreempt(unmet));
    }
    // Guaranteed pods go only if killing all others would not do, and so on.
    let cheaper = best_effort.iter().chain(burstable);
    let guaranteed = closest(guaranteed, without(&needed, cheaper));
    let others = best_effort.iter().chain(&guaranteed);
    let burstable = closest(burstable, without(&needed, others));
    let dearer = burstable.iter().chain(&guaranteed);
    let best_effort = closest(best_effort, without(&needed, dearer));
    let chosen = [guaranteed, burstable, best_effort].concat();
    Ok(without_dispensable(chosen, &needed))
}

/// Leaves out every pod that the others suffice without, the one of the highest class first. With several resources a pod that came
/// closest at first may be made dispensable by those after it.
fn without_dispensable<'a>(chosen: Vec<&'a Pod>, needed: &[Requirement]) -> Vec<&'a Pod> {
    let mut kept = chosen;
    let mut at = 0;
    while at < kept.len() {
        let others = kept.iter().enumerate().filter(|(i, _)| *i != at).map(|(_, pod)| pod);
        if without(needed, others).is_empty() {
            kept.remove(at);
        } else {
            at += 1;
        }
    }
    kept.reverse();
    kept
}

/// What is still needed once these pods are gone.
fn without<'a, 'p: 'a>(
    needed: &[Requirement],
    pods: impl Iterator<Item = &'a &'p Pod>,
) -> Vec<Requirement> {
    let pods: Vec<&Pod> = pods.copied().collect();
    let left = needed.iter().map(|Requirement { resource, quantity }| {
        let freed: i64 = pods.iter().map(|pod| request_of(pod, resource)).sum();
        Requirement { resource: resource.clone(), quantity: quantity.saturating_sub(freed) }
    });
    left.filter(|left| left.quantity > 0).collect()
}

/// Takes the pod that comes closest to what is still needed, until nothing is.
fn closest<'a>(pods: &[&'a Pod], mut needed: Vec<Requirement>) -> Vec<&'a Pod> {
    let (mut pods, mut chosen) = (pods.to_vec(), Vec::new());
    while !needed.is_empty() {
        let distances = pods.iter().enumerate().map(|(i, pod)| (i, distance(&needed, pod)));
        let size = |i: usize| (request_of(pods[i], "memory"), request_of(pods[i], "cpu"));
        let best = distances
            .min_by(|(i, one), (j, other)| one.total_cmp(other).then(size(*i).cmp(&size(*j))));
        let Some((i, _)) = best else { return chosen };
        let pod = pods.remove(i);
        needed = without(&needed, [pod].iter());
        chosen.push(pod);
    }
    chosen
}

/// How far the requests of a pod fall short of what is needed, every resource weighted alike.
fn distance(needed: &[Requirement], pod: &Pod) -> f64 {
    let parts = needed.iter().map(|Requirement { resource, quantity }| {
        let left = quantity.saturating_sub(request_of(pod, resource)).max(0);
        (to_float(left) / to_float(*quantity)).powi(2)
    });
    parts.sum()
}

#[expect(clippy::cast_precision_loss, reason = "amounts are smaller than 2^53")]
fn to_float(number: i64) -> f64 {
    number as f64
}
