//! Whether a container that has ended is started again.

use k8s_openapi::api::core::v1::{Container, ContainerRestartRule, Pod};

use crate::pod::{ContainerKind, PodExt};
use crate::view::Exit;

/// What follows the end of a container.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AfterExit {
    /// It is started again.
    Restart,
    /// Every container of the pod is stopped, removed and started again, from the first init container on.
    RestartAll,
    /// It stays as it is.
    Leave,
}

/// What follows this end of a container. Its own rules decide first, then its own policy, then the pod's.
pub fn after_exit(pod: &Pod, kind: ContainerKind, spec: &Container, exit: &Exit) -> AfterExit {
    if pod.is_deleting() || kind == ContainerKind::Ephemeral {
        return AfterExit::Leave;
    }
    match matching_action(spec, exit.code) {
        Some("RestartAllContainers") => return AfterExit::RestartAll,
        // An init container that succeeded has done its work, whatever the rule.
        Some("Restart") if kind != ContainerKind::Init || has_failed(kind, exit) => {
            return AfterExit::Restart;
        }
        _ => {}
    }
    let again = match policy(pod, kind, spec) {
        Policy::Always => kind != ContainerKind::Init || has_failed(kind, exit),
        Policy::OnFailure => has_failed(kind, exit),
        Policy::Never => false,
    };
    if again { AfterExit::Restart } else { AfterExit::Leave }
}

/// Whether a container that we stop ourselves (its probe failed, its sandbox is gone) is started again. It has no exit
/// code yet, so rules say nothing: only the policies count.
pub fn after_stop(pod: &Pod, kind: ContainerKind, spec: &Container) -> bool {
    let may = !pod.is_deleting() && kind != ContainerKind::Ephemeral;
    may && policy(pod, kind, spec) != Policy::Never
}

/// Whether this end is a failure. An init container that ran out of memory has failed even if it exited with 0, because
/// what was killed may have been one of its children.
pub fn has_failed(kind: ContainerKind, exit: &Exit) -> bool {
    exit.code != 0 || (kind == ContainerKind::Init && exit.reason == "OOMKilled")
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Policy {
    Always,
    OnFailure,
    Never,
}

/// The container's own policy, else the pod's. A sidecar's own is Always by definition.
fn policy(pod: &Pod, kind: ContainerKind, spec: &Container) -> Policy {
    if kind == ContainerKind::Sidecar {
        return Policy::Always;
    }
    match spec.restart_policy.as_deref().unwrap_or_else(|| pod.restart_policy()) {
        "Never" => Policy::Never,
        "OnFailure" => Policy::OnFailure,
        _ => Policy::Always,
    }
}

/// The action of the first rule that the exit code fits.
fn matching_action(spec: &Container, code: i32) -> Option<&str> {
    let rules = spec.restart_policy_rules.as_deref().unwrap_or_default();
    rules.iter().find(|rule| fits(rule, code)).map(|rule| rule.action.as_str())
}

fn fits(rule: &ContainerRestartRule, code: i32) -> bool {
    let Some(codes) = &rule.exit_codes else { return false };
    let listed = codes.values.iter().flatten().any(|value| *value == code);
    match codes.operator.as_str() {
        "In" => listed,
        "NotIn" => !listed,
        _ => false,
    }
}

#[cfg(test)]
mod tests;
