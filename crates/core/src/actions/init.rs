//! Init containers and sidecars: one after the other, and no further than the last that is done.

use k8s_openapi::api::core::v1::Container;

use super::builder::{ContainerDecision, PodActionsBuilder};
use crate::pod::{ContainerKind, PodExt, init_kind};
use crate::restart::has_failed;

/// How far a pod's initialisation is.
pub(super) enum InitProgress {
    /// Regular containers may run.
    Done,
    /// An init container has still to start or to end, so regular containers wait.
    Pending,
    /// This init container failed for good.
    Failed(String),
}

/// Takes initialisation one step further, and keeps the sidecars that it has passed running.
///
/// The furthest init container that exists in this sandbox says how far things are: those before it were done, or it
/// would not exist, even if the runtime has lost them since. A regular container says that all were.
pub(super) fn compute_init_container_actions(builder: &mut PodActionsBuilder<'_>) -> InitProgress {
    let init = builder.pod().init();
    let initialised =
        builder.pod().regular().iter().any(|spec| builder.in_newest_sandbox(&spec.name).is_some());
    if initialised {
        keep_passed_sidecars(builder, init);
        return InitProgress::Done;
    }
    let Some(front) = init.iter().rposition(|spec| builder.in_newest_sandbox(&spec.name).is_some())
    else {
        return start_next(builder, init.first());
    };
    let (passed, rest) = init.split_at(front);
    keep_passed_sidecars(builder, passed);
    match rest {
        [current, ahead @ ..] => compute_current_init(builder, current, ahead.first()),
        [] => InitProgress::Done,
    }
}

/// Sidecars that initialisation has passed run for as long as the pod does.
fn keep_passed_sidecars(builder: &mut PodActionsBuilder<'_>, passed: &[Container]) {
    for spec in passed.iter().filter(|spec| init_kind(spec) == ContainerKind::Sidecar) {
        builder.compute_container_action(
            ContainerKind::Sidecar,
            spec,
            builder.in_newest_sandbox(&spec.name),
        );
    }
}

/// Looks after the container that initialisation is at, and begins the next when it is done.
fn compute_current_init(
    builder: &mut PodActionsBuilder<'_>,
    current: &Container,
    next: Option<&Container>,
) -> InitProgress {
    let kind = init_kind(current);
    let container = builder.in_newest_sandbox(&current.name);
    let exit = container.and_then(|container| container.state.exit());
    if kind == ContainerKind::Init && exit.is_some_and(|exit| !has_failed(kind, exit)) {
        return start_next(builder, next);
    }
    let started =
        container.is_some_and(|container| builder.input.probes.has_started(current, &container.id));
    match builder.compute_container_action(kind, current, container) {
        ContainerDecision::Keeps if kind == ContainerKind::Sidecar && started => {
            start_next(builder, next)
        }
        ContainerDecision::Keeps | ContainerDecision::Starts => InitProgress::Pending,
        ContainerDecision::Ends => InitProgress::Failed(current.name.clone()),
    }
}

/// Begins that container, or with none left has done them all.
fn start_next(builder: &mut PodActionsBuilder<'_>, next: Option<&Container>) -> InitProgress {
    let Some(next) = next else { return InitProgress::Done };
    builder.compute_container_action(init_kind(next), next, None);
    InitProgress::Pending
}
