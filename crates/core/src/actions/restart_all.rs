//! Restarting all containers because the exit code of one asked for it.
//!
//! The container that asked is removed last: should the agent die half-way, it is still there to ask again.

use k8s_openapi::api::core::v1::Container;

use super::builder::PodActionsBuilder;
use super::pod_actions::{ContainerKillReason, ContainerToKill, ContainerToRemove, RemoveReason};
use super::sandbox::{pod_sandbox_changed, replace_sandbox};
use crate::backoff::BackoffDecision;
use crate::grace::ContainerGracePeriod;
use crate::pod::{ContainerKind, PodExt, init_kind};
use crate::restart::{AfterExit, after_exit};
use crate::view::ContainerView;

/// Whether a container has asked for it, and its back-off lets it. Until then it waits like any other that crashed, and
/// the rest of the pod runs on.
pub(super) fn is_due(builder: &PodActionsBuilder<'_>) -> bool {
    let pod = builder.pod();
    pod.init().iter().chain(pod.regular()).any(|spec| {
        let asked = builder
            .newest(&spec.name)
            .is_some_and(|container| requests_restart_all(builder, spec, container));
        let crash = builder.last_crash(spec);
        asked
            && crash.is_none_or(|crash| builder.backoff_decision(&crash) == BackoffDecision::Ready)
    })
}

/// Stops without grace and removes every container but ephemeral ones, then starts from the beginning.
pub(super) fn restart_all(builder: &mut PodActionsBuilder<'_>) {
    let pod = builder.pod();
    match pod_sandbox_changed(pod, builder.input.view) {
        Some(new) => replace_sandbox(builder, new, &pod.regular().iter().collect::<Vec<_>>()),
        None => builder.actions.stop = stops(builder),
    }
    builder.actions.remove = removals(builder);
    let asking = pod.init().iter().chain(pod.regular()).filter(|spec| {
        builder
            .newest(&spec.name)
            .is_some_and(|container| requests_restart_all(builder, spec, container))
    });
    builder.actions.crashes = asking.filter_map(|spec| builder.last_crash(spec)).collect();
    match pod.init().first() {
        Some(first) => {
            builder.start_or_back_off(init_kind(first), first, None);
        }
        None => pod.regular().iter().for_each(|spec| {
            builder.start_or_back_off(ContainerKind::Regular, spec, None);
        }),
    }
}

fn stops(builder: &PodActionsBuilder<'_>) -> Vec<ContainerToKill> {
    let running = builder.input.view.possibly_running();
    let stops = running
        .map(|c| ContainerToKill::of(Some(builder.pod()), c, ContainerKillReason::RestartAll));
    let in_it = stops.filter(|stop| !matches!(stop.kind, Some(ContainerKind::Ephemeral) | None));
    in_it.map(|stop| stop.with_grace(ContainerGracePeriod::NONE).restarting(true)).collect()
}

/// Those that did not ask before those that did, and of each the regular ones before the init containers.
fn removals(builder: &PodActionsBuilder<'_>) -> Vec<ContainerToRemove> {
    let (pod, view) = (builder.pod(), builder.input.view);
    let of = |specs: &[Container], asking: bool| -> Vec<ContainerToRemove> {
        let of_spec = |spec: &Container| -> Vec<ContainerToRemove> {
            let of_name = view.containers.iter().filter(|c| c.name == spec.name);
            let chosen = of_name
                .filter(|container| requests_restart_all(builder, spec, container) == asking);
            chosen.map(|c| ContainerToRemove::of(c, RemoveReason::RestartAll)).collect()
        };
        specs.iter().flat_map(of_spec).collect()
    };
    [of(pod.regular(), false), of(pod.init(), false), of(pod.regular(), true), of(pod.init(), true)]
        .concat()
}

/// Whether the way this container ended asks for all to be restarted.
fn requests_restart_all(
    builder: &PodActionsBuilder<'_>,
    spec: &Container,
    container: &ContainerView,
) -> bool {
    let kind = builder.pod().container(&spec.name).map_or(ContainerKind::Regular, |c| c.kind);
    let exit = container.state.exit();
    exit.is_some_and(|exit| after_exit(builder.pod(), kind, spec, exit) == AfterExit::RestartAll)
}
