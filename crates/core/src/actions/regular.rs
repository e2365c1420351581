//! Regular and ephemeral containers.

use k8s_openapi::api::core::v1::Container;

use super::builder::{ContainerDecision, PodActionsBuilder};
use super::pod_actions::PodEndReason;
use crate::pod::{ContainerKind, PodExt};
use crate::restart::{AfterExit, after_exit, after_stop};
use crate::view::ContainerState;

/// Starts, watches and restarts the regular containers; when none of them runs or is to run, the pod is over, however
/// many sidecars there are.
pub(super) fn compute_regular_container_actions(builder: &mut PodActionsBuilder<'_>) {
    let mut all_rest = true;
    for spec in builder.pod().regular() {
        let tended = builder.compute_container_action(
            ContainerKind::Regular,
            spec,
            builder.newest(&spec.name),
        );
        all_rest &= tended == ContainerDecision::Ends;
    }
    if all_rest {
        builder.end_pod(PodEndReason::NothingToRun);
    }
}

/// The regular containers that a new sandbox is to run, should all that run now be stopped.
pub(super) fn containers_to_restart<'a>(builder: &PodActionsBuilder<'a>) -> Vec<&'a Container> {
    let pod = builder.pod();
    let again =
        |spec: &&Container| match builder.newest(&spec.name).map(|container| &container.state) {
            None | Some(ContainerState::Created) => true,
            Some(ContainerState::Exited(exit)) => {
                after_exit(pod, ContainerKind::Regular, spec, exit) != AfterExit::Leave
            }
            Some(ContainerState::Running { .. } | ContainerState::Unknown) => {
                after_stop(pod, ContainerKind::Regular, spec)
            }
        };
    pod.regular().iter().filter(again).collect()
}

/// Starts a regular container in a new sandbox. To be stopped with the old one is not to crash.
pub(super) fn start_in_new_sandbox(builder: &mut PodActionsBuilder<'_>, spec: &Container) {
    let stopped = builder.newest(&spec.name).is_some_and(|container| container.state.may_run());
    let crash = if stopped { None } else { builder.last_crash(spec) };
    builder.start_or_back_off(ContainerKind::Regular, spec, crash);
}

/// Starts ephemeral containers that have never been started. They do not wait for initialisation, because they are
/// there to find out why it hangs.
pub(super) fn start_ephemeral(builder: &mut PodActionsBuilder<'_>) {
    let wanted = builder.pod().all_containers();
    for wanted in wanted.iter().filter(|wanted| wanted.kind == ContainerKind::Ephemeral) {
        let state = builder.newest(&wanted.spec.name).map(|container| &container.state);
        if matches!(state, None | Some(ContainerState::Created)) {
            builder.start_or_back_off(ContainerKind::Ephemeral, &wanted.spec, None);
        }
    }
}
