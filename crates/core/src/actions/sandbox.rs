//! Whether the pod needs another sandbox, and what that means for its containers.

use std::fmt;

use k8s_openapi::api::core::v1::{Container, Pod};

use super::draft::Draft;
use super::leftovers;
use super::regular;
use super::step::{Over, SandboxStep, Stop};
use super::teardown::teardown;
use crate::event::PodEvent;
use crate::pod::{ContainerKind, PodExt, init_kind};
use crate::restart::{AfterExit, after_exit, has_failed};
use crate::view::PodView;

/// A sandbox to make.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NewSandbox {
    /// Its attempt number.
    pub attempt: u32,
    /// Why the one there is will not do.
    pub why: SandboxChange,
}

/// Why a pod needs another sandbox.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SandboxChange {
    /// It has none.
    Missing,
    /// More than one is ready.
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
pub fn sandbox_change(pod: &Pod, view: &PodView) -> Option<NewSandbox> {
    let Some(newest) = view.newest_sandbox() else {
        return Some(NewSandbox { attempt: 0, why: SandboxChange::Missing });
    };
    let why = if view.sandboxes.iter().filter(|sandbox| sandbox.ready).count() > 1 {
        SandboxChange::SeveralReady
    } else if !newest.ready {
        SandboxChange::NotReady
    } else if newest.host_network != pod.host_network() {
        SandboxChange::Network
    } else if !pod.host_network() && newest.ips.is_empty() {
        SandboxChange::NoAddress
    } else {
        return None;
    };
    Some(NewSandbox { attempt: newest.attempt.saturating_add(1), why })
}

/// Everything of the old sandbox is stopped, and the pod begins anew in the new one, if there is anything left to begin.
pub(super) fn replace(draft: &mut Draft<'_>, new: NewSandbox) {
    let again = regular::to_run_again(draft);
    if let Some(over) = reason_to_end(draft, &again, new) {
        return draft.end(over);
    }
    prepare(draft, new, &again);
    draft.plan.remove = leftovers::purged_init(draft);
    match draft.pod().init().first() {
        Some(first) => {
            draft.launch(init_kind(first), first, None);
        }
        None => again.iter().for_each(|spec| regular::start_again(draft, spec)),
    }
}

/// Everything there is is stopped, and the new sandbox made.
pub(super) fn prepare(draft: &mut Draft<'_>, new: NewSandbox, again: &[&Container]) {
    let teardown = teardown(Some(draft.pod()), draft.input.view, None);
    let restarts = |stop: &Stop| match stop.kind {
        Some(ContainerKind::Init | ContainerKind::Sidecar) => true,
        Some(ContainerKind::Regular) => again.iter().any(|spec| spec.name == stop.name),
        Some(ContainerKind::Ephemeral) | None => false,
    };
    let stops = teardown.stop.into_iter();
    let stops = stops.map(|stop| {
        let restarts = restarts(&stop);
        stop.restarting(restarts)
    });
    draft.plan.stop = stops.collect();
    draft.plan.stop_sandboxes = teardown.sandboxes;
    draft.plan.sandbox = SandboxStep::Create(new);
    if new.why != SandboxChange::Missing {
        let message = format!("Pod sandbox changed ({}), it is stopped and made anew", new.why);
        draft.plan.events.push(PodEvent::normal("SandboxChanged", message));
    }
}

/// Why the pod does not begin anew.
fn reason_to_end(draft: &Draft<'_>, again: &[&Container], new: NewSandbox) -> Option<Over> {
    if let Some(name) = failed_init(draft) {
        return Some(Over::InitFailed(name));
    }
    if again.is_empty() {
        return Some(Over::NothingToRun);
    }
    let begun = new.attempt != 0 && !draft.input.view.containers.is_empty();
    // A container with a policy of its own that is not Never has to be brought back.
    let own_will =
        again.iter().any(|spec| spec.restart_policy.as_deref().is_some_and(|own| own != "Never"));
    let once = draft.pod().restart_policy() == "Never" && !own_will;
    (begun && once).then_some(Over::SandboxLost)
}

/// An init container that failed in the last sandbox and is not to be tried again.
fn failed_init(draft: &Draft<'_>) -> Option<String> {
    let failed = |spec: &&Container| {
        let exit = draft.latest(&spec.name).and_then(|container| container.state.exit());
        let Some(exit) = exit else { return false };
        let kind = init_kind(spec);
        has_failed(kind, exit) && after_exit(draft.pod(), kind, spec, exit) == AfterExit::Leave
    };
    draft.pod().init().iter().find(failed).map(|spec| spec.name.clone())
}
