//! What is to be sent about one pod, and when.

use std::time::Duration;

use k8s_openapi::api::core::v1::{ContainerStatus, PodStatus};

use crate::ids::FullName;
use crate::queue::Priority;
use crate::status::phase::Phase;
use crate::time::Mono;

/// The status of a pod that has only begun waits so long for more: mostly the pod runs by then, and one patch is enough.
const MORE_TO_COME: Duration = Duration::from_millis(500);
/// What a container waits for that will start when its time has come.
const USUAL: [&str; 2] = ["ContainerCreating", "PodInitializing"];

/// A pod that has something to send, or had.
#[derive(Debug)]
pub(super) struct Entry {
    pub(super) name: FullName,
    /// Tells it from an earlier entry of the same pod.
    pub(super) generation: u64,
    /// The latest status, and whether the API server was sent it.
    pub(super) status: Option<PodStatus>,
    pub(super) is_sent: bool,
    pub(super) delete: bool,
    /// What the API server shows of what others wait for.
    pub(super) shown: UrgentState,
    pub(super) in_flight: Option<InFlight>,
    /// Since when it has been waiting for its turn.
    since: Option<Mono>,
}

/// What is being sent.
#[derive(Clone, Copy, Debug)]
pub(super) enum InFlight {
    Patch(UrgentState),
    Delete,
}

/// What others wait for: traffic follows the one, and controllers the other.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct UrgentState {
    ready: bool,
    pub(super) ended: bool,
}

impl Entry {
    pub(super) fn new(name: FullName, generation: u64) -> Self {
        Self {
            name,
            generation,
            status: None,
            is_sent: true,
            delete: false,
            shown: UrgentState::default(),
            in_flight: None,
            since: None,
        }
    }

    pub(super) fn has_work(&self) -> bool {
        !self.is_sent || self.delete
    }

    /// When it is to be sent; at once if nothing waits for more to come.
    pub(super) fn due(&mut self, is_flushing: bool, now: Mono) -> Mono {
        let since = *self.since.get_or_insert(now);
        let begins = self.status.as_ref().is_some_and(has_only_begun) && !self.is_urgent();
        if begins && !is_flushing { since + MORE_TO_COME } else { since }
    }

    pub(super) fn priority(&self) -> Priority {
        if self.is_urgent() { Priority::Urgent } else { Priority::Normal }
    }

    /// Whether others wait for it: the pod begins or ceases to be ready, has ended, or is to be deleted.
    fn is_urgent(&self) -> bool {
        self.is_sent || self.urgent_state() != self.shown
    }

    fn urgent_state(&self) -> UrgentState {
        self.status.as_ref().map_or(self.shown, UrgentState::of)
    }

    pub(super) fn begin(&mut self) {
        let is_patch = self.status.is_some() && !self.is_sent;
        let in_flight =
            if is_patch { InFlight::Patch(self.urgent_state()) } else { InFlight::Delete };
        (self.in_flight, self.since) = (Some(in_flight), None);
    }

    pub(super) fn accepted(&mut self) {
        if let Some(InFlight::Patch(urgent_state)) = self.in_flight.take() {
            self.shown = urgent_state;
        }
    }

    pub(super) fn failed(&mut self) {
        if let Some(InFlight::Patch(_)) = self.in_flight.take() {
            self.is_sent = false;
        }
    }
}

impl UrgentState {
    pub(super) fn of(status: &PodStatus) -> Self {
        let conditions = status.conditions.iter().flatten();
        let ready = conditions.filter(|c| c.type_ == "Ready").any(|c| c.status == "True");
        Self { ready, ended: Phase::of(status).is_some_and(Phase::is_terminal) }
    }
}

/// Whether nothing of the pod runs or ever ran, and nothing is known to be wrong.
fn has_only_begun(status: &PodStatus) -> bool {
    let waits = |container: &ContainerStatus| {
        let state = container.state.as_ref().and_then(|state| state.waiting.as_ref());
        let reason = state.and_then(|waiting| waiting.reason.as_deref());
        container.restart_count == 0 && reason.is_some_and(|reason| USUAL.contains(&reason))
    };
    let containers = status.init_container_statuses.iter().chain(&status.container_statuses);
    let mut containers = containers.flatten().peekable();
    containers.peek().is_some() && containers.all(waits)
}
