//! Whether a pod is initialised, and whether it and its containers can take traffic.

use k8s_openapi::api::core::v1::{Container, ContainerStatus, Pod, PodCondition};

use super::ConditionValue;
use crate::pod::{ContainerKind, PodExt, init_kind};
use crate::status::container_status_ext::ContainerStatusExt;
use crate::status::context::StatusContext;
use crate::status::phase::Phase;

pub(super) const POD_COMPLETED: &str = "PodCompleted";
pub(super) const POD_FAILED: &str = "PodFailed";
const INITIALIZED: &str = "Initialized";
const UNKNOWN_STATUSES: &str = "UnknownContainerStatuses";

/// Names that hold a pod back.
#[derive(Debug, Default)]
struct Missing<'a> {
    unknown: Vec<&'a str>,
    lacking: Vec<&'a str>,
}

impl<'a> Missing<'a> {
    /// Those of `specs` that have no status, and those whose status will not do.
    fn of(
        specs: impl Iterator<Item = &'a Container>,
        statuses: &[&ContainerStatus],
        will_do: impl Fn(&Container, &ContainerStatus) -> bool,
    ) -> Self {
        let mut missing = Self::default();
        for spec in specs {
            match statuses.iter().find(|status| status.name == spec.name) {
                None => missing.unknown.push(&spec.name),
                Some(status) if !will_do(spec, status) => missing.lacking.push(&spec.name),
                Some(_) => {}
            }
        }
        missing
    }

    fn sentence(&self, lack: &str) -> Option<String> {
        let part = |what: &str, names: &[&str]| {
            (!names.is_empty())
                .then(|| format!("containers with {what} status: [{}]", names.join(" ")))
        };
        let parts = [part("unknown", &self.unknown), part(lack, &self.lacking)];
        let parts: Vec<_> = parts.into_iter().flatten().collect();
        Some(parts.join(", ")).filter(|sentence| !sentence.is_empty())
    }
}

/// Whether init containers are done and sidecars up. Once they were, or a regular container has started, that stays so, even if a
/// sidecar restarts now.
pub(super) fn initialised(
    context: &StatusContext<'_>,
    statuses: &[&ContainerStatus],
    phase: Phase,
) -> ConditionValue {
    let answer = initialised_now(context.pod, statuses, phase);
    let mut published = context.previous.conditions.iter().flatten();
    let was_initialised = published.any(|it| it.type_ == INITIALIZED && it.status == "True");
    if was_initialised && !answer.yes { ConditionValue::TRUE } else { answer }
}

fn initialised_now(pod: &Pod, statuses: &[&ContainerStatus], phase: Phase) -> ConditionValue {
    if statuses.is_empty() && !pod.init().is_empty() {
        return ConditionValue::FALSE.with_reason(UNKNOWN_STATUSES);
    }
    let missing = Missing::of(pod.init().iter(), statuses, |spec, status| match init_kind(spec) {
        ContainerKind::Sidecar => status.has_started(),
        _ => status.ready,
    });
    if phase == Phase::Succeeded && missing.unknown.is_empty() {
        return ConditionValue::TRUE.with_reason(POD_COMPLETED);
    }
    let sentence = missing.sentence("incomplete").filter(|_| !any_started(pod, statuses));
    sentence.map_or(ConditionValue::TRUE, |sentence| {
        ConditionValue::FALSE.with_reason("ContainersNotInitialized").with_message(sentence)
    })
}

fn any_started(pod: &Pod, statuses: &[&ContainerStatus]) -> bool {
    let is_regular = |name: &str| pod.regular().iter().any(|spec| spec.name == name);
    let mut regular = statuses.iter().filter(|status| is_regular(&status.name));
    regular.any(|status| status.is_running() || status.ended().is_some())
}

/// Whether all regular containers and sidecars can take traffic. Nothing of a pod that has ended can.
pub(super) fn containers_ready(
    pod: &Pod,
    statuses: &[&ContainerStatus],
    phase: Phase,
) -> ConditionValue {
    if statuses.is_empty() {
        return ConditionValue::FALSE.with_reason(UNKNOWN_STATUSES);
    }
    let sidecars = pod.init().iter().filter(|spec| init_kind(spec) == ContainerKind::Sidecar);
    let missing = Missing::of(sidecars.chain(pod.regular()), statuses, |_, status| status.ready);
    match phase {
        Phase::Failed => return ConditionValue::FALSE.with_reason(POD_FAILED),
        Phase::Succeeded if missing.unknown.is_empty() => {
            return ConditionValue::FALSE.with_reason(POD_COMPLETED);
        }
        Phase::Succeeded | Phase::Pending | Phase::Running => {}
    }
    let sentence = missing.sentence("unready");
    sentence.map_or(ConditionValue::TRUE, |sentence| {
        ConditionValue::FALSE.with_reason("ContainersNotReady").with_message(sentence)
    })
}

/// Whether the pod can take traffic: its containers can, and every gate that others keep for it is open.
pub(super) fn pod_ready(
    pod: &Pod,
    containers: &ConditionValue,
    conditions: &[PodCondition],
) -> ConditionValue {
    if !containers.yes {
        return containers.clone();
    }
    let gates = pod.spec().and_then(|spec| spec.readiness_gates.as_deref()).unwrap_or_default();
    let closed_gate: Vec<_> =
        gates.iter().filter_map(|gate| closed_gate(&gate.condition_type, conditions)).collect();
    if closed_gate.is_empty() {
        return ConditionValue::TRUE;
    }
    ConditionValue::FALSE.with_reason("ReadinessGatesNotReady").with_message(closed_gate.join(", "))
}

/// What keeps a gate shut; none when it is open.
fn closed_gate(gate: &str, conditions: &[PodCondition]) -> Option<String> {
    let condition = conditions.iter().find(|condition| condition.type_ == gate);
    match condition.map(|condition| condition.status.as_str()) {
        Some("True") => None,
        Some(status) => {
            Some(format!("the status of pod readiness gate {gate:?} is not \"True\", but {status}"))
        }
        None => {
            Some(format!("corresponding condition of pod readiness gate {gate:?} does not exist."))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::pod;

    fn status(name: &str, ready: bool) -> ContainerStatus {
        ContainerStatus { name: name.to_owned(), ready, ..ContainerStatus::default() }
    }

    /// `REASON MESSAGE`, as much of it as there is.
    fn no(answer: &ConditionValue) -> String {
        assert!(!answer.yes);
        let parts = [answer.reason, answer.message.as_deref()];
        parts.into_iter().flatten().collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn containers_without_a_status_are_listed_before_unready_ones() {
        let pod = pod().init("i").init("j").regular("a").regular("b").regular("c").build();
        let known = [status("i", false), status("a", false), status("b", true)];
        let all: Vec<_> = known.iter().collect();
        let unknown = "UnknownContainerStatuses";
        let initialised = |statuses: &[_]| no(&initialised_now(&pod, statuses, Phase::Pending));
        let ready = |statuses: &[_]| no(&containers_ready(&pod, statuses, Phase::Running));
        let rows = [
            (initialised(&[]), unknown),
            (
                initialised(&all),
                "ContainersNotInitialized containers with unknown status: [j], \
                 containers with incomplete status: [i]",
            ),
            (ready(&[]), unknown),
            (
                ready(&all),
                "ContainersNotReady containers with unknown status: [c], \
                 containers with unready status: [a]",
            ),
            (ready(&all[2..]), "ContainersNotReady containers with unknown status: [a c]"),
        ];
        for (got, expected) in rows {
            assert_eq!(got, expected);
        }
    }

    #[test]
    fn a_succeeded_pod_is_not_completed_while_a_container_is_unknown() {
        let pod = pod().regular("a").regular("b").build();
        let (a, b) = (status("a", false), status("b", false));
        let answer = containers_ready(&pod, &[&a, &b], Phase::Succeeded);
        assert_eq!(no(&answer), "PodCompleted");
        let answer = containers_ready(&pod, &[&a], Phase::Succeeded);
        assert!(no(&answer).starts_with("ContainersNotReady containers with unknown status: [b]"));
    }
}
