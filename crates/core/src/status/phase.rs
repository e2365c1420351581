//! The phase of a pod. `get_phase` is `getPhase` of the Go kubelet.

use std::fmt;

use k8s_openapi::api::core::v1::{Container, ContainerStatus, PodStatus};

use super::container_status_ext::ContainerStatusExt;
use super::context::{StatusContext, exit_of};
use super::deadline;
use crate::lifecycle::TerminationStage;
use crate::pod::{ContainerKind, PodExt, init_kind};
use crate::restart::has_failed;

/// Where a pod stands in its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Phase {
    /// Something has not been started yet.
    Pending,
    /// All was started, and something runs or will run again.
    Running,
    /// All ended well and stays so.
    Succeeded,
    /// All ended, not all of it well, or the node put an end to it.
    Failed,
}

impl Phase {
    /// The phase as the API spells it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "Pending",
            Self::Running => "Running",
            Self::Succeeded => "Succeeded",
            Self::Failed => "Failed",
        }
    }

    /// The phase in a status, if there is one.
    pub fn of(status: &PodStatus) -> Option<Self> {
        let all = [Self::Pending, Self::Running, Self::Succeeded, Self::Failed];
        let published = status.phase.as_deref()?;
        all.into_iter().find(|phase| phase.as_str() == published)
    }

    /// Whether it is the last one.
    pub fn is_terminal(self) -> bool {
        matches!(self, Self::Succeeded | Self::Failed)
    }
}

impl fmt::Display for Phase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Sets phase, reason and message. What ended stays ended; a failure set by the node comes before the deadline, and
/// that before what the containers say.
pub(super) fn set_phase(context: &StatusContext<'_>, status: &mut PodStatus) {
    let ended = last_phase(context);
    let computed = get_phase(context, status);
    if let Some(failure) = context.input.failure.filter(|_| ended.is_none()) {
        set(status, Phase::Failed, Some(&failure.reason), Some(&failure.message));
    } else if ended.is_none() && !computed.is_terminal() && is_overdue(context, status) {
        set(status, Phase::Failed, Some(deadline::REASON), Some(deadline::MESSAGE));
    } else {
        keep_reason_and_message(context, status, ended.unwrap_or(computed));
    }
}

/// The terminal phase that was said, if one was; the API server's copy is what others have seen.
fn last_phase(context: &StatusContext<'_>) -> Option<Phase> {
    let published = [context.pod.status.as_ref(), Some(&*context.previous)];
    published.into_iter().flatten().filter_map(Phase::of).find(|phase| phase.is_terminal())
}

/// A pod on its way out is not active any more.
fn is_overdue(context: &StatusContext<'_>, status: &PodStatus) -> bool {
    let active = context.input.termination.is_none();
    active
        && deadline::check(context.pod, status, context.input.now) == deadline::Deadline::Exceeded
}

/// Reason and message belong to the phase they were said with.
fn keep_reason_and_message(context: &StatusContext<'_>, status: &mut PodStatus, phase: Phase) {
    let published = [Some(&*context.previous), context.pod.status.as_ref()];
    let same =
        || published.into_iter().flatten().filter(|published| Phase::of(published) == Some(phase));
    let text_of = |of: fn(&PodStatus) -> &Option<String>| {
        same().find_map(|published| of(published).as_deref().filter(|text_of| !text_of.is_empty()))
    };
    set(
        status,
        phase,
        text_of(|published| &published.reason),
        text_of(|published| &published.message),
    );
}

fn set(status: &mut PodStatus, phase: Phase, reason: Option<&str>, message: Option<&str>) {
    status.phase = Some(phase.as_str().to_owned());
    status.reason = reason.map(ToOwned::to_owned);
    status.message = message.map(ToOwned::to_owned);
}

/// The phase by the containers alone. A pod of which nothing runs, and nothing will, has ended.
fn get_phase(context: &StatusContext<'_>, status: &PodStatus) -> Phase {
    let over =
        context.input.termination >= Some(TerminationStage::Stopped) && !context.pod.is_static();
    match phase_by_containers(context, &ContainerCounts::of(context, status), over) {
        Phase::Pending | Phase::Running if over => Phase::Failed,
        phase => phase,
    }
}

fn phase_by_containers(context: &StatusContext<'_>, counts: &ContainerCounts, over: bool) -> Phase {
    let initialising = counts.init_pending && !context.is_initialised();
    let goes_on = counts.running > 0 || (counts.to_restart > 0 && !over);
    if counts.init_failed {
        Phase::Failed
    } else if initialising || counts.waiting > 0 {
        Phase::Pending
    } else if goes_on {
        Phase::Running
    } else if counts.succeeded == counts.stopped {
        Phase::Succeeded
    } else {
        Phase::Failed
    }
}

/// How a pod's containers stand.
#[derive(Debug, Default)]
struct ContainerCounts {
    /// An init container has failed for good.
    init_failed: bool,
    /// An init container has not done its work, or a sidecar has not come up.
    init_pending: bool,
    running: usize,
    /// Containers that wait and never ran.
    waiting: usize,
    stopped: usize,
    /// Stopped, and to be started again.
    to_restart: usize,
    succeeded: usize,
}

impl ContainerCounts {
    fn of(context: &StatusContext<'_>, status: &PodStatus) -> Self {
        let mut counts = Self::default();
        for (spec, status) in pairs(context.pod.init(), status.init_container_statuses.as_deref()) {
            match init_kind(spec) {
                ContainerKind::Sidecar => counts.add_sidecar(status),
                _ => counts.add_init(context, spec, status),
            }
        }
        for (spec, status) in pairs(context.pod.regular(), status.container_statuses.as_deref()) {
            counts.add_regular(context, spec, status);
        }
        counts
    }

    fn add_init(
        &mut self,
        context: &StatusContext<'_>,
        spec: &Container,
        status: &ContainerStatus,
    ) {
        match status.ended().or_else(|| status.ended_before().filter(|_| status.is_waiting())) {
            Some(end) if has_failed(ContainerKind::Init, &exit_of(end)) => {
                let again = context.will_restart(ContainerKind::Init, spec, end);
                self.init_failed |= !again;
            }
            Some(_) => {}
            None => self.init_pending = true,
        }
    }

    /// A sidecar that stopped does not count: it restarts whatever happens, and must not keep a pod alive.
    fn add_sidecar(&mut self, status: &ContainerStatus) {
        if status.is_running() {
            self.running += 1;
            self.init_pending |= !status.has_started();
        } else if status.ended().or_else(|| status.ended_before()).is_none() {
            self.waiting += 1;
            self.init_pending = true;
        }
    }

    fn add_regular(
        &mut self,
        context: &StatusContext<'_>,
        spec: &Container,
        status: &ContainerStatus,
    ) {
        let followed = |end| context.will_restart(ContainerKind::Regular, spec, end);
        if status.is_running() {
            self.running += 1;
        } else if let Some(end) = status.ended() {
            self.stopped += 1;
            self.to_restart += usize::from(followed(end));
            self.succeeded += usize::from(end.exit_code == 0);
        } else if let Some(end) = status.ended_before() {
            self.stopped += 1;
            self.to_restart += usize::from(followed(end));
        } else {
            self.waiting += 1;
        }
    }
}

fn pairs<'a>(
    specs: &'a [Container],
    statuses: Option<&'a [ContainerStatus]>,
) -> impl Iterator<Item = (&'a Container, &'a ContainerStatus)> {
    let find = move |name: &str| statuses.unwrap_or_default().iter().find(|s| s.name == name);
    specs.iter().filter_map(move |spec| Some((spec, find(&spec.name)?)))
}
