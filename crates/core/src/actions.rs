//! What to do to a pod now: a pure function of the desired pod and the runtime's state of it. In the Go kubelet this is
//! `computePodActions`.
//!
//! [`compute_pod_actions`] answers with a [`PodActions`], plain data that a shell carries out field by field. Only containers of the newest
//! sandbox count as the pod's own; those of earlier sandboxes tell how a container ended and how often it was started.

mod attempts;
mod builder;
mod counts;
mod init;
mod leftovers;
mod outcome;
mod pod_actions;
mod regular;
mod restart_all;
mod sandbox;
mod teardown;

#[cfg(test)]
mod tests;

use k8s_openapi::api::core::v1::{Pod, PodStatus};

pub use attempts::{ReservedAttempts, adopted_container, adopted_sandbox};
pub use counts::{RestartCount, count_from_logs};
pub use leftovers::dead_containers;
pub use outcome::StartResults;
pub use pod_actions::{
    ContainerInBackOff, ContainerKillReason, ContainerToKill, ContainerToRemove, ContainerToStart,
    PodActions, PodEndReason, RemoveReason, SandboxAction,
};
pub use sandbox::{NewSandbox, SandboxChange, pod_sandbox_changed};
pub use teardown::{Teardown, teardown};

use crate::backoff::CrashBackoff;
use crate::pod::PodExt;
use crate::probe::ProbeResults;
use crate::time::Now;
use crate::view::PodView;
use builder::PodActionsBuilder;
use init::InitProgress;

/// What the decision is made from.
#[derive(Clone, Copy, Debug)]
pub struct PodActionsInput<'a> {
    /// The pod as it is wanted.
    pub pod: &'a Pod,
    /// What the runtime holds of it.
    pub view: &'a PodView,
    /// What its probes have found.
    pub probes: &'a ProbeResults,
    /// Which of its containers have been restarted recently.
    pub backoff: &'a CrashBackoff,
    /// The status published last, so that restart counts survive containers that were lost.
    pub published: Option<&'a PodStatus>,
    /// How many dead containers of each name are kept; the newest always is.
    pub dead_kept: usize,
    /// The time of the sync, from which back-offs are counted.
    pub now: Now,
}

/// What to do to the pod now.
pub fn compute_pod_actions(input: &PodActionsInput<'_>) -> PodActions {
    let mut builder = PodActionsBuilder::new(input);
    if input.pod.is_deleting() {
        builder.end_pod(PodEndReason::Deleting);
    } else if restart_all::is_due(&builder) {
        restart_all::restart_all(&mut builder);
    } else if let Some(new) = pod_sandbox_changed(input.pod, input.view) {
        sandbox::replace(&mut builder, new);
    } else {
        compute_container_actions(&mut builder);
    }
    builder.build()
}

/// The sandbox is as it should be: containers are started, watched and restarted in it.
fn compute_container_actions(builder: &mut PodActionsBuilder<'_>) {
    sandbox::stop_others(builder);
    leftovers::stop_strays(builder);
    regular::start_ephemeral(builder);
    match init::compute_init_container_actions(builder) {
        InitProgress::Done => regular::compute_regular_container_actions(builder),
        InitProgress::Pending => {}
        InitProgress::Failed(name) => builder.end_pod(PodEndReason::InitFailed(name)),
    }
}
