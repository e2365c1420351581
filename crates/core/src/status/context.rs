//! The input of one status, with the questions its parts have in common answered.

use std::borrow::Cow;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Container, ContainerStateTerminated, Pod, PodStatus};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use super::conditions::ALL_CONTAINERS_RESTARTING;
use super::{PodStatusInput, normalise};
use crate::ids::SandboxId;
use crate::pod::{ContainerKind, PodExt};
use crate::restart::{AfterExit, after_exit};
use crate::view::{ContainerView, Exit, PodView};

/// Why a container went, or is gone, that is started again together with all others.
pub(super) const RESTARTING_ALL: &str = "RestartingAllContainers";

pub(super) struct StatusContext<'a> {
    pub(super) input: &'a PodStatusInput<'a>,
    pub(super) pod: &'a Pod,
    pub(super) view: &'a PodView,
    /// What was said of the pod last.
    pub(super) previous: Cow<'a, PodStatus>,
    /// The pod as if its deletion had not been asked for: what its restart policies would have.
    without_deletion: Cow<'a, Pod>,
}

impl<'a> StatusContext<'a> {
    pub(super) fn new(input: &'a PodStatusInput<'a>) -> Self {
        let published = input.previous.or(input.pod.status.as_ref());
        Self {
            input,
            pod: input.pod,
            view: input.view,
            previous: published.map_or_else(Cow::default, Cow::Borrowed),
            without_deletion: without_deletion(input.pod),
        }
    }

    /// Now, as the API keeps time.
    pub(super) fn now(&self) -> Time {
        normalise::seconds(self.input.now)
    }

    /// Set once, when the pod is first seen.
    pub(super) fn start_time(&self) -> Time {
        self.previous.start_time.clone().unwrap_or_else(|| self.now())
    }

    /// Whether nothing of the pod is started any more.
    pub(super) fn is_ending(&self) -> bool {
        self.pod.is_deleting() || self.input.termination.is_some()
    }

    /// Whether the policies would have another container follow this end.
    pub(super) fn will_restart(
        &self,
        kind: ContainerKind,
        spec: &Container,
        end: &ContainerStateTerminated,
    ) -> bool {
        let restarting_all = end.reason.as_deref() == Some(RESTARTING_ALL);
        restarting_all || self.after(kind, spec, &exit_of(end)) != AfterExit::Leave
    }

    /// Whether the end of some container has all of them started again, and is not dealt with yet.
    pub(super) fn is_restarting_all(&self) -> bool {
        let containers =
            if self.may_restart_all() { self.pod.all_containers() } else { Vec::new() };
        containers.iter().any(|wanted| {
            let newest = self.newest(&wanted.spec.name);
            let exit = newest.and_then(|container| container.state.exit());
            exit.is_some_and(|exit| {
                self.after(wanted.kind, &wanted.spec, exit) == AfterExit::RestartAll
            })
        })
    }

    /// The same, or all were being started again when the pod was last spoken of.
    pub(super) fn was_restarting_all(&self) -> bool {
        let conditions = self.previous.conditions.iter().flatten();
        let mut published = conditions.filter(|c| c.type_ == ALL_CONTAINERS_RESTARTING);
        published.any(|condition| condition.status == "True") || self.is_restarting_all()
    }

    /// Whether some rule of the pod may have all containers started again.
    pub(super) fn may_restart_all(&self) -> bool {
        let specs = self.pod.init().iter().chain(self.pod.regular());
        let mut rules = specs.flat_map(|spec| spec.restart_policy_rules.iter().flatten());
        rules.any(|rule| rule.action == "RestartAllContainers")
    }

    /// Whether a regular container was made in the newest sandbox: all init containers were done then.
    pub(super) fn is_initialised(&self) -> bool {
        self.pod.regular().iter().any(|spec| self.here(&spec.name).is_some())
    }

    /// Whether something that comes after this init container was made in the newest sandbox.
    pub(super) fn is_past(&self, init: &str) -> bool {
        let later = self.pod.init().iter().skip_while(|spec| spec.name != init).skip(1);
        self.is_initialised() || later.into_iter().any(|spec| self.here(&spec.name).is_some())
    }

    /// The newest container of that name, one in the newest sandbox before all others.
    pub(super) fn newest(&self, name: &str) -> Option<&'a ContainerView> {
        self.here(name).or_else(|| self.view.newest(name))
    }

    fn here(&self, name: &str) -> Option<&'a ContainerView> {
        let mut containers = self.view.containers.iter();
        containers.find(|container| container.name == name && self.is_current(&container.sandbox))
    }

    /// Whether this is the newest sandbox: the only one that counts.
    pub(super) fn is_current(&self, sandbox: &SandboxId) -> bool {
        self.view.newest_sandbox().is_some_and(|newest| newest.id == *sandbox)
    }

    fn after(&self, kind: ContainerKind, spec: &Container, exit: &Exit) -> AfterExit {
        after_exit(&self.without_deletion, kind, spec, exit)
    }
}

fn without_deletion(pod: &Pod) -> Cow<'_, Pod> {
    if !pod.is_deleting() {
        return Cow::Borrowed(pod);
    }
    let mut pod = pod.clone();
    pod.metadata.deletion_timestamp = None;
    Cow::Owned(pod)
}

/// Of an end only code and reason count for what follows.
pub(crate) fn exit_of(end: &ContainerStateTerminated) -> Exit {
    Exit {
        started_at: None,
        finished_at: end.finished_at.as_ref().map_or(Timestamp::UNIX_EPOCH, |time| time.0),
        code: end.exit_code,
        reason: end.reason.clone().unwrap_or_default(),
        message: String::new(),
    }
}
