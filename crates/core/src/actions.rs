//! What to do to a pod now: a pure function of the desired pod and the runtime's state of it. In the Go kubelet this is
//! `computePodActions`.
//!
//! [`plan`] answers with a [`Plan`], plain data that a shell carries out field by field. Only containers of the newest
//! sandbox count as the pod's own; those of earlier sandboxes tell how a container ended and how often it was started.

mod attempts;
mod counts;
mod draft;
mod init;
mod leftovers;
mod outcome;
mod regular;
mod reset;
mod sandbox;
mod step;
mod teardown;

#[cfg(test)]
mod tests;

use k8s_openapi::api::core::v1::{Pod, PodStatus};

pub use attempts::{ReservedAttempts, adopted_container, adopted_sandbox};
pub use counts::{RestartCount, count_from_logs};
pub use leftovers::dead_containers;
pub use outcome::StartResults;
pub use sandbox::{NewSandbox, SandboxChange, sandbox_change};
pub use step::{Over, Plan, Removal, RemoveReason, SandboxStep, Start, Stop, StopReason, Wait};
pub use teardown::{Teardown, teardown};

use crate::backoff::CrashBackoff;
use crate::pod::PodExt;
use crate::probe::ProbeResults;
use crate::time::Now;
use crate::view::PodView;
use draft::Draft;
use init::Progress;

/// What the decision is made from.
#[derive(Clone, Copy, Debug)]
pub struct Input<'a> {
    /// The pod as it is wanted.
    pub pod: &'a Pod,
    /// What the runtime holds of it.
    pub view: &'a PodView,
    /// What its probes have found.
    pub probes: &'a ProbeResults,
    /// Which of its containers have been restarted of late.
    pub backoff: &'a CrashBackoff,
    /// The status published last, so that restart counts survive containers that were lost.
    pub published: Option<&'a PodStatus>,
    /// The time.
    pub now: Now,
}

/// What to do to the pod now.
pub fn plan(input: &Input<'_>) -> Plan {
    let mut draft = Draft::new(input);
    if input.pod.is_deleting() {
        draft.end(Over::Deleting);
    } else if reset::is_due(&draft) {
        reset::reset(&mut draft);
    } else if let Some(new) = sandbox_change(input.pod, input.view) {
        sandbox::replace(&mut draft, new);
    } else {
        tend_containers(&mut draft);
    }
    draft.finish()
}

/// The sandbox is as it should be: containers are started, watched and restarted in it.
fn tend_containers(draft: &mut Draft<'_>) {
    leftovers::stop_strays(draft);
    regular::start_ephemeral(draft);
    match init::proceed(draft) {
        Progress::Done => regular::tend_all(draft),
        Progress::Pending => {}
        Progress::Failed(name) => draft.end(Over::InitFailed(name)),
    }
}
