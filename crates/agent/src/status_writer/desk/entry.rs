//! What lies on the desk of one pod, and when it is due.

use std::time::Duration;

use k8s_openapi::api::core::v1::{ContainerStatus, PodStatus};
use oarsman_core::ids::FullName;
use oarsman_core::status::phase::Phase;
use oarsman_core::time::Mono;

/// What is said of a pod that has only begun waits so long for more: mostly the pod runs by then, and is told of once.
const MORE_TO_COME: Duration = Duration::from_millis(500);
/// What a container waits for that will start when its time has come.
const USUAL: [&str; 2] = ["ContainerCreating", "PodInitializing"];
/// After a failed try; doubled each time.
const FIRST_WAIT: Duration = Duration::from_millis(500);
const LONGEST_WAIT: Duration = Duration::from_secs(10);

/// A pod with something to be told, or that had.
#[derive(Debug)]
pub(super) struct Entry {
    pub(super) name: FullName,
    /// Tells it from an earlier entry of the same pod.
    pub(super) born: u64,
    /// The latest status, and whether the cluster has taken it.
    pub(super) status: Option<PodStatus>,
    pub(super) taken: bool,
    pub(super) delete: bool,
    /// Its place in the queue: the first to have something to tell goes first.
    pub(super) place: u64,
    /// What the cluster has, and what it is being told, as far as others wait for it.
    pub(super) shown: Weight,
    pub(super) on_its_way: Weight,
    pub(super) under_way: bool,
    pub(super) failures: u32,
    not_before: Mono,
    /// Since when there has been something to tell, as far as anybody has looked.
    since: Option<Mono>,
}

/// What others wait for: traffic follows the one, and controllers the other.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Weight {
    ready: bool,
    pub(super) ended: bool,
}

impl Entry {
    pub(super) fn new(name: FullName, born: u64) -> Self {
        Self {
            name,
            born,
            status: None,
            taken: true,
            delete: false,
            place: 0,
            shown: Weight::default(),
            on_its_way: Weight::default(),
            under_way: false,
            failures: 0,
            not_before: Mono::default(),
            since: None,
        }
    }

    /// Somebody looks for work: from now on what lies here waits.
    pub(super) fn look(&mut self, now: Mono) {
        if self.has_work() {
            self.since.get_or_insert(now);
        }
    }

    /// When it is to be told; at once when somebody `hurries`.
    pub(super) fn due(&self, hurries: bool) -> Mono {
        let begins = self.status.as_ref().is_some_and(has_only_begun) && !self.is_urgent();
        let waits = if begins && !hurries { MORE_TO_COME } else { Duration::ZERO };
        self.not_before.max(self.since.unwrap_or_default() + waits)
    }

    /// It is being told.
    pub(super) fn go(&mut self) {
        self.under_way = true;
        self.since = None;
        self.on_its_way = self.weight();
    }

    pub(super) fn fail(&mut self, now: Mono) {
        self.not_before = now + wait_after(self.failures);
        self.failures = self.failures.saturating_add(1);
    }

    pub(super) fn has_work(&self) -> bool {
        !self.under_way && (!self.taken || self.delete)
    }

    fn weight(&self) -> Weight {
        self.status.as_ref().map_or(self.shown, Weight::of)
    }

    /// Whether somebody waits for it: the pod begins or ceases to be ready, has ended, or is to go.
    pub(super) fn is_urgent(&self) -> bool {
        self.taken || self.weight() != self.shown
    }
}

impl Weight {
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

fn wait_after(failures: u32) -> Duration {
    FIRST_WAIT.saturating_mul(2_u32.saturating_pow(failures)).min(LONGEST_WAIT)
}
