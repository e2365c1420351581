//! Init containers and sidecars: one after the other, and no further than the last that is done.

use k8s_openapi::api::core::v1::Container;

use super::draft::{Draft, Tended};
use crate::pod::{ContainerKind, PodExt, init_kind};
use crate::restart::has_failed;

/// How far a pod's initialisation is.
pub(super) enum Progress {
    /// Regular containers may run.
    Done,
    /// Not there yet.
    Pending,
    /// This init container failed for good.
    Failed(String),
}

/// Takes initialisation one step further, and keeps the sidecars that it has passed running.
///
/// The furthest init container that exists in this sandbox says how far things are: those before it were done, or it
/// would not exist, even if the runtime has lost them since. A regular container says that all were.
pub(super) fn proceed(draft: &mut Draft<'_>) -> Progress {
    let init = draft.pod().init();
    let initialised = draft.pod().regular().iter().any(|spec| draft.here(&spec.name).is_some());
    if initialised {
        keep_sidecars(draft, init);
        return Progress::Done;
    }
    let Some(front) = init.iter().rposition(|spec| draft.here(&spec.name).is_some()) else {
        return begin(draft, init.first());
    };
    let (passed, rest) = init.split_at(front);
    keep_sidecars(draft, passed);
    match rest {
        [current, ahead @ ..] => advance(draft, current, ahead.first()),
        [] => Progress::Done,
    }
}

/// Sidecars that initialisation has passed run for as long as the pod does.
fn keep_sidecars(draft: &mut Draft<'_>, passed: &[Container]) {
    for spec in passed.iter().filter(|spec| init_kind(spec) == ContainerKind::Sidecar) {
        draft.tend(ContainerKind::Sidecar, spec, draft.here(&spec.name));
    }
}

/// Looks after the container that initialisation is at, and begins the next when it is done.
fn advance(draft: &mut Draft<'_>, current: &Container, next: Option<&Container>) -> Progress {
    let kind = init_kind(current);
    let container = draft.here(&current.name);
    let exit = container.and_then(|container| container.state.exit());
    if kind == ContainerKind::Init && exit.is_some_and(|exit| !has_failed(kind, exit)) {
        return begin(draft, next);
    }
    let started =
        container.is_some_and(|container| draft.input.probes.has_started(current, &container.id));
    match draft.tend(kind, current, container) {
        Tended::Kept if kind == ContainerKind::Sidecar && started => begin(draft, next),
        Tended::Kept | Tended::Again => Progress::Pending,
        Tended::Rests => Progress::Failed(current.name.clone()),
    }
}

/// Begins that container, or with none left has done them all.
fn begin(draft: &mut Draft<'_>, next: Option<&Container>) -> Progress {
    let Some(next) = next else { return Progress::Done };
    draft.tend(init_kind(next), next, None);
    Progress::Pending
}
