//! Our status over the API server's copy: what others set there stays, and what must wait is held back.

use std::collections::BTreeMap;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{PodCondition, PodStatus};

use super::conditions::{CONTAINERS_READY, DISRUPTION_TARGET, READY, is_ours};
use super::normalise;
use super::phase::Phase;

/// What to write: `ours` over the API server's copy.
///
/// `may_end` says whether a terminal phase may be seen yet: not before all that the pod held is given back.
pub fn merge(api: &PodStatus, ours: &PodStatus, may_end: bool, now: Timestamp) -> PodStatus {
    let ending = !is_terminal(api) && is_terminal(ours);
    let mut merged = PodStatus {
        conditions: Some(conditions(api, ours, ending && may_end, now)).filter(|c| !c.is_empty()),
        ..with_fields_of_others(api, ours)
    };
    if is_terminal(api) || (ending && !may_end) {
        let pending = || Phase::Pending.as_str().to_owned();
        merged.phase = Some(api.phase.clone().unwrap_or_else(pending));
    }
    if merged.phase != ours.phase {
        merged.reason.clone_from(&api.reason);
        merged.message.clone_from(&api.message);
    }
    deny_readiness(&mut merged, now);
    merged
}

/// What was published of a pod before: the API server's copy, with what others wrote there, and the phase that we published last,
/// because the copy may be older than that. An end that another component wrote stays.
pub fn published_before(published: Option<&PodStatus>, api: Option<&PodStatus>) -> PodStatus {
    let copy = api.cloned().unwrap_or_default();
    match published {
        Some(published) if !is_terminal(&copy) => PodStatus {
            phase: published.phase.clone(),
            reason: published.reason.clone(),
            message: published.message.clone(),
            ..copy
        },
        _ => copy,
    }
}

/// Whether two statuses say different things. Fractions of a second, which the API server drops, do not count.
pub fn differs(old: &PodStatus, new: &PodStatus) -> bool {
    let normal = |status: &PodStatus| {
        let mut status = status.clone();
        normalise::truncate_times(&mut status);
        status
    };
    normal(old) != normal(new)
}

/// Whether the API server's copy still has what we told: the phase, the containers, and the answers that only we give. Others may
/// have changed those all the same, such as the node lifecycle controller when the node is unreachable.
pub fn is_reconciled(sent: &PodStatus, shown: &PodStatus) -> bool {
    sent.phase == shown.phase
        && sent.container_statuses == shown.container_statuses
        && sent.init_container_statuses == shown.init_container_statuses
        && answers(sent) == answers(shown)
}

/// What our conditions answer.
fn answers(status: &PodStatus) -> BTreeMap<&str, &str> {
    let ours = status.conditions.iter().flatten().filter(|condition| is_ours(condition));
    ours.map(|condition| (&*condition.type_, &*condition.status)).collect()
}

/// Fields that schedulers and resource drivers write, and the pod's resources as a whole, which change only by
/// a resize.
fn with_fields_of_others(api: &PodStatus, ours: &PodStatus) -> PodStatus {
    let others = api.clone();
    PodStatus {
        nominated_node_name: others.nominated_node_name,
        resource_claim_statuses: others.resource_claim_statuses,
        extended_resource_claim_status: others.extended_resource_claim_status,
        node_allocatable_resource_claim_statuses: others.node_allocatable_resource_claim_statuses,
        resize: others.resize,
        resources: others.resources,
        allocated_resources: others.allocated_resources,
        ..ours.clone()
    }
}

/// Conditions of others as the API server has them, then ours. The disruption is said together with the end,
/// and its time is when it is said.
fn conditions(api: &PodStatus, ours: &PodStatus, ends: bool, now: Timestamp) -> Vec<PodCondition> {
    let disruption = ours.conditions.iter().flatten().find(|c| c.type_ == DISRUPTION_TARGET);
    let mut merged: Vec<_> =
        api.conditions.iter().flatten().filter(|c| !is_ours(c)).cloned().collect();
    if let Some(disruption) = disruption.filter(|_| ends) {
        let same =
            |old: &PodCondition| old.type_ == disruption.type_ && old.status == disruption.status;
        let since =
            merged.iter().find(|old| same(old)).and_then(|old| old.last_transition_time.clone());
        let last_transition_time = since.or_else(|| Some(normalise::seconds(now)));
        merged.retain(|old| old.type_ != DISRUPTION_TARGET);
        merged.push(PodCondition { last_transition_time, ..disruption.clone() });
    }
    merged.extend(ours.conditions.iter().flatten().filter(|c| is_ours(c)).cloned());
    merged
}

/// A pod that has ended is not ready, whatever was true a moment ago.
fn deny_readiness(status: &mut PodStatus, now: Timestamp) {
    let reason = match Phase::of(status) {
        Some(Phase::Failed) => "PodFailed",
        Some(Phase::Succeeded) => "PodCompleted",
        _ => return,
    };
    let conditions = status.conditions.iter_mut().flatten();
    let ready = conditions.filter(|c| [READY, CONTAINERS_READY].contains(&c.type_.as_str()));
    for condition in ready.filter(|condition| condition.status == "True") {
        condition.status = "False".to_owned();
        condition.reason = Some(reason.to_owned());
        condition.message = None;
        condition.last_transition_time = Some(normalise::seconds(now));
    }
}

fn is_terminal(status: &PodStatus) -> bool {
    Phase::of(status).is_some_and(Phase::is_terminal)
}

#[cfg(test)]
mod tests;
