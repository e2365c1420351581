//! Regular and ephemeral containers.

use k8s_openapi::api::core::v1::Container;

use super::draft::{Draft, Tended};
use super::step::Over;
use crate::pod::{ContainerKind, PodExt};
use crate::restart::{AfterExit, after_exit, after_stop};
use crate::view::ContainerState;

/// Starts, watches and restarts the regular containers; when none of them runs or is to run, the pod is over, however
/// many sidecars there are.
pub(super) fn tend_all(draft: &mut Draft<'_>) {
    let mut all_rest = true;
    for spec in draft.pod().regular() {
        let tended = draft.tend(ContainerKind::Regular, spec, draft.latest(&spec.name));
        all_rest &= tended == Tended::Rests;
    }
    if all_rest {
        draft.end(Over::NothingToRun);
    }
}

/// The regular containers that a new sandbox is to run, should all that run now be stopped.
pub(super) fn to_run_again<'a>(draft: &Draft<'a>) -> Vec<&'a Container> {
    let pod = draft.pod();
    let again = |spec: &&Container| match draft.latest(&spec.name).map(|container| &container.state)
    {
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
pub(super) fn start_again(draft: &mut Draft<'_>, spec: &Container) {
    let stopped = draft.latest(&spec.name).is_some_and(|container| container.state.may_run());
    let crash = if stopped { None } else { draft.last_crash(spec) };
    draft.launch(ContainerKind::Regular, spec, crash);
}

/// Starts ephemeral containers that have never been started. They do not wait for initialisation, because they are
/// there to find out why it hangs.
pub(super) fn start_ephemeral(draft: &mut Draft<'_>) {
    let wanted = draft.pod().all_containers();
    for wanted in wanted.iter().filter(|wanted| wanted.kind == ContainerKind::Ephemeral) {
        let state = draft.latest(&wanted.spec.name).map(|container| &container.state);
        if matches!(state, None | Some(ContainerState::Created)) {
            draft.launch(ContainerKind::Ephemeral, &wanted.spec, None);
        }
    }
}
