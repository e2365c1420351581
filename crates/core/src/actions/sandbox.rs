//! Whether the pod needs another sandbox, and what that means for its containers.

use std::fmt;

use k8s_openapi::api::core::v1::{Container, Pod};

use super::builder::PodActionsBuilder;
use super::leftovers;
use super::pod_actions::{ContainerToKill, PodEndReason, SandboxAction};
use super::regular;
use super::teardown::teardown;
use crate::event::PodEvent;
use crate::pod::{ContainerKind, PodExt, init_kind};
use crate::restart::{AfterExit, after_exit, has_failed};
use crate::view::{PodView, SandboxView};

/// A sandbox to make.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NewSandbox {
    /// One more than the highest attempt of the pod, because the runtime reserves the name of each.
    pub attempt: u32,
    /// Why the one there is will not do.
    pub why: SandboxChange,
}

/// Why a pod needs another sandbox.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SandboxChange {
    /// The runtime has no sandbox of the pod.
    Missing,
    /// More than one is ready, and containers run in an older one.
    SeveralReady,
    /// The newest has stopped.
    NotReady,
    /// It is on the node's network and should not be, or the other way round.
    Network,
    /// It has no address.
    NoAddress,
}

impl fmt::Display for SandboxChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Missing => "there is none",
            Self::SeveralReady => "more than one is ready",
            Self::NotReady => "it is not ready",
            Self::Network => "its network is not the one the spec asks for",
            Self::NoAddress => "it has no address",
        })
    }
}

/// The sandbox that has to be made before containers can be started; none when the one there is will do.
pub fn pod_sandbox_changed(pod: &Pod, view: &PodView) -> Option<NewSandbox> {
    let Some(newest) = view.newest_sandbox() else {
        return Some(NewSandbox { attempt: 0, why: SandboxChange::Missing });
    };
    let runs_in = |sandbox: &SandboxView| {
        view.possibly_running().any(|container| container.sandbox == sandbox.id)
    };
    let why = if newest.ready && ready_beside_newest(view).any(runs_in) {
        SandboxChange::SeveralReady
    } else if !newest.ready {
        SandboxChange::NotReady
    } else if newest.host_network != pod.host_network() {
        SandboxChange::Network
    } else if !pod.host_network() && newest.network_reported && newest.ips.is_empty() {
        SandboxChange::NoAddress
    } else {
        return None;
    };
    Some(NewSandbox { attempt: newest.attempt.saturating_add(1), why })
}

/// Sandboxes that are ready beside the newest. An agent that is killed while the runtime makes a sandbox does not learn of it, and its
/// successor makes another.
fn ready_beside_newest(view: &PodView) -> impl Iterator<Item = &SandboxView> {
    view.sandboxes.iter().skip(1).filter(|sandbox| sandbox.ready)
}

/// Stops sandboxes that are ready beside the newest, in which nothing runs; the containers of the newest go on.
pub(super) fn stop_others(builder: &mut PodActionsBuilder<'_>) {
    let others = ready_beside_newest(builder.input.view).map(|sandbox| sandbox.id.clone());
    builder.actions.stop_sandboxes = others.collect();
}

/// Everything of the old sandbox is stopped, and the pod begins anew in the new one, if there is anything left to begin.
pub(super) fn replace(builder: &mut PodActionsBuilder<'_>, new: NewSandbox) {
    let again = regular::containers_to_restart(builder);
    if let Some(end_reason) = reason_to_end(builder, &again, new) {
        return builder.end_pod(end_reason);
    }
    replace_sandbox(builder, new, &again);
    builder.actions.remove = leftovers::init_containers_to_purge(builder);
    match builder.pod().init().first() {
        Some(first) => {
            builder.start_or_back_off(init_kind(first), first, None);
        }
        None => again.iter().for_each(|spec| regular::start_in_new_sandbox(builder, spec)),
    }
}

/// Everything there is is stopped, and the new sandbox made.
pub(super) fn replace_sandbox(
    builder: &mut PodActionsBuilder<'_>,
    new: NewSandbox,
    again: &[&Container],
) {
    let teardown = teardown(Some(builder.pod()), builder.input.view, None);
    let restarts = |stop: &ContainerToKill| match stop.kind {
        Some(ContainerKind::Init | ContainerKind::Sidecar) => true,
        Some(ContainerKind::Regular) => again.iter().any(|spec| spec.name == stop.name),
        Some(ContainerKind::Ephemeral) | None => false,
    };
    let stops = teardown.stop.into_iter();
    let stops = stops.map(|stop| {
        let restarts = restarts(&stop);
        stop.restarting(restarts)
    });
    builder.actions.stop = stops.collect();
    builder.actions.stop_sandboxes = teardown.sandboxes;
    builder.actions.sandbox = SandboxAction::Create(new);
    if new.why != SandboxChange::Missing {
        let message = format!("Pod sandbox changed ({}), it is stopped and made anew", new.why);
        builder.actions.events.push(PodEvent::normal("SandboxChanged", message));
    }
}

/// Why the pod does not begin anew.
fn reason_to_end(
    builder: &PodActionsBuilder<'_>,
    again: &[&Container],
    new: NewSandbox,
) -> Option<PodEndReason> {
    if let Some(name) = failed_init(builder) {
        return Some(PodEndReason::InitFailed(name));
    }
    if again.is_empty() {
        return Some(PodEndReason::NothingToRun);
    }
    let begun = new.attempt != 0 && !builder.input.view.containers.is_empty();
    // A container with a policy of its own that is not Never has to be brought back.
    let own_will =
        again.iter().any(|spec| spec.restart_policy.as_deref().is_some_and(|own| own != "Never"));
    let once = builder.pod().restart_policy() == "Never" && !own_will;
    (begun && once).then_some(PodEndReason::SandboxLost)
}

/// An init container that failed in the last sandbox and is not to be tried again.
fn failed_init(builder: &PodActionsBuilder<'_>) -> Option<String> {
    let failed = |spec: &&Container| {
        let exit = builder.newest(&spec.name).and_then(|container| container.state.exit());
        let Some(exit) = exit else { return false };
        let kind = init_kind(spec);
        has_failed(kind, exit) && after_exit(builder.pod(), kind, spec, exit) == AfterExit::Leave
    };
    builder.pod().init().iter().find(failed).map(|spec| spec.name.clone())
}
