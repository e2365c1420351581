//! Restarting all containers because the exit code of one asked for it.
//!
//! The container that asked is removed last: should the agent die half-way, it is still there to ask again.

use k8s_openapi::api::core::v1::Container;

use super::draft::Draft;
use super::sandbox::{prepare, sandbox_change};
use super::step::{Removal, RemoveReason, Stop, StopReason};
use crate::backoff::Verdict;
use crate::grace::Budget;
use crate::pod::{ContainerKind, PodExt, init_kind};
use crate::restart::{AfterExit, after_exit};
use crate::view::ContainerView;

/// Whether a container has asked for it, and its back-off lets it. Until then it waits like any other that crashed, and
/// the rest of the pod runs on.
pub(super) fn is_due(draft: &Draft<'_>) -> bool {
    let pod = draft.pod();
    pod.init().iter().chain(pod.regular()).any(|spec| {
        let asked = draft.latest(&spec.name).is_some_and(|container| asks(draft, spec, container));
        let crash = draft.last_crash(spec);
        asked && crash.is_none_or(|crash| draft.verdict(&crash) == Verdict::Ready)
    })
}

/// Stops without grace and removes every container but ephemeral ones, then starts from the beginning.
pub(super) fn reset(draft: &mut Draft<'_>) {
    let pod = draft.pod();
    match sandbox_change(pod, draft.input.view) {
        Some(new) => prepare(draft, new, &pod.regular().iter().collect::<Vec<_>>()),
        None => draft.plan.stop = stops(draft),
    }
    draft.plan.remove = removals(draft);
    let asking = pod.init().iter().chain(pod.regular()).filter(|spec| {
        draft.latest(&spec.name).is_some_and(|container| asks(draft, spec, container))
    });
    draft.plan.crashes = asking.filter_map(|spec| draft.last_crash(spec)).collect();
    match pod.init().first() {
        Some(first) => {
            draft.launch(init_kind(first), first, None);
        }
        None => pod.regular().iter().for_each(|spec| {
            draft.launch(ContainerKind::Regular, spec, None);
        }),
    }
}

fn stops(draft: &Draft<'_>) -> Vec<Stop> {
    let running = draft.input.view.possibly_running();
    let stops = running.map(|c| Stop::of(Some(draft.pod()), c, StopReason::RestartAll));
    let in_it = stops.filter(|stop| !matches!(stop.kind, Some(ContainerKind::Ephemeral) | None));
    in_it.map(|stop| stop.within(Budget::NONE).restarting(true)).collect()
}

/// Those that did not ask before those that did, and of each the regular ones before the init containers.
fn removals(draft: &Draft<'_>) -> Vec<Removal> {
    let (pod, view) = (draft.pod(), draft.input.view);
    let of = |specs: &[Container], asking: bool| -> Vec<Removal> {
        let of_spec = |spec: &Container| -> Vec<Removal> {
            let of_name = view.containers.iter().filter(|c| c.name == spec.name);
            let chosen = of_name.filter(|container| asks(draft, spec, container) == asking);
            chosen.map(|c| Removal::of(c, RemoveReason::RestartAll)).collect()
        };
        specs.iter().flat_map(of_spec).collect()
    };
    [of(pod.regular(), false), of(pod.init(), false), of(pod.regular(), true), of(pod.init(), true)]
        .concat()
}

/// Whether the way this container ended asks for all to be restarted.
fn asks(draft: &Draft<'_>, spec: &Container, container: &ContainerView) -> bool {
    let kind = draft.pod().container(&spec.name).map_or(ContainerKind::Regular, |c| c.kind);
    let exit = container.state.exit();
    exit.is_some_and(|exit| after_exit(draft.pod(), kind, spec, exit) == AfterExit::RestartAll)
}
