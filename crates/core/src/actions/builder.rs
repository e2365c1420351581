//! Builds the actions of a pod: state and helpers that the parts of the decision share.

use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Container, Pod};

use super::PodActionsInput;
use super::counts::restart_count;
use super::leftovers;
use super::pod_actions::{
    ContainerInBackOff, ContainerKillReason, ContainerToKill, ContainerToStart, PodActions,
    PodEndReason, SandboxAction,
};
use super::teardown::teardown;
use crate::backoff::{BackoffDecision, Crash, container_key};
use crate::duration::spell;
use crate::event::PodEvent;
use crate::hash::container_hash;
use crate::pod::{ContainerKind, PodExt};
use crate::probe::ProbeKind;
use crate::restart::{AfterExit, after_exit, after_stop};
use crate::view::{ContainerState, ContainerView};

/// The actions as far as they are decided.
pub(super) struct PodActionsBuilder<'a> {
    pub(super) input: &'a PodActionsInput<'a>,
    pub(super) actions: PodActions,
}

/// What was decided about a container.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum ContainerDecision {
    /// It runs and goes on.
    Keeps,
    /// It is started, now or when its back-off is over.
    Starts,
    /// It has ended, or ends now, for good.
    Ends,
}

impl<'a> PodActionsBuilder<'a> {
    pub(super) fn new(input: &'a PodActionsInput<'a>) -> Self {
        Self { input, actions: PodActions::default() }
    }

    pub(super) fn pod(&self) -> &'a Pod {
        self.input.pod
    }

    /// The newest container of that name in the newest sandbox.
    pub(super) fn in_newest_sandbox(&self, name: &str) -> Option<&'a ContainerView> {
        let sandbox = &self.input.view.newest_sandbox()?.id;
        self.input.view.containers.iter().find(|c| c.name == name && c.sandbox == *sandbox)
    }

    /// The newest container of that name, in whatever sandbox.
    pub(super) fn newest(&self, name: &str) -> Option<&'a ContainerView> {
        self.in_newest_sandbox(name).or_else(|| self.input.view.newest(name))
    }

    /// Starts, watches or restarts one container, of which `current` is the newest that counts.
    pub(super) fn compute_container_action(
        &mut self,
        kind: ContainerKind,
        spec: &Container,
        current: Option<&ContainerView>,
    ) -> ContainerDecision {
        match current.map(|container| (container, &container.state)) {
            None | Some((_, ContainerState::Created)) => {
                self.start_or_back_off(kind, spec, self.last_crash(spec))
            }
            Some((_, ContainerState::Exited(exit))) => {
                match after_exit(self.pod(), kind, spec, exit) {
                    AfterExit::Leave => ContainerDecision::Ends,
                    _ => self.start_or_back_off(kind, spec, self.last_crash(spec)),
                }
            }
            Some((container, ContainerState::Running { .. })) => {
                self.check_running(kind, spec, container)
            }
            Some((container, ContainerState::Unknown)) => self.stop_unknown(kind, spec, container),
        }
    }

    /// A running container goes on, unless there is a reason to stop it.
    fn check_running(
        &mut self,
        kind: ContainerKind,
        spec: &Container,
        container: &ContainerView,
    ) -> ContainerDecision {
        let Some(why) = self.reason_to_stop(kind, spec, container) else {
            return ContainerDecision::Keeps;
        };
        let changed = why == ContainerKillReason::DefinitionChanged;
        let restarts = changed || after_stop(self.pod(), kind, spec);
        self.stop(container, why, restarts);
        if !restarts {
            return ContainerDecision::Ends;
        }
        let crash = why.is_crash().then(|| self.crash(spec, container, self.input.now.wall));
        // One that has to wait first is told so when it has ended.
        if crash.as_ref().is_none_or(|crash| self.backoff_decision(crash) == BackoffDecision::Ready)
        {
            self.start_or_back_off(kind, spec, crash);
        }
        ContainerDecision::Starts
    }

    /// An init container is never stopped by itself: it is on its way to its end.
    fn reason_to_stop(
        &self,
        kind: ContainerKind,
        spec: &Container,
        container: &ContainerView,
    ) -> Option<ContainerKillReason> {
        let failed = |probe| self.input.probes.has_failed(&container.id, probe);
        let newest = self.input.view.newest_sandbox().map(|sandbox| &sandbox.id);
        match kind {
            ContainerKind::Init => None,
            _ if newest != Some(&container.sandbox) => Some(ContainerKillReason::Stray),
            _ if container.label.hash != Some(container_hash(spec)) => {
                Some(ContainerKillReason::DefinitionChanged)
            }
            _ if failed(ProbeKind::Liveness) => Some(ContainerKillReason::Liveness),
            _ if failed(ProbeKind::Startup) => Some(ContainerKillReason::Startup),
            _ => None,
        }
    }

    /// A container of which the runtime cannot tell is stopped, so that there are never two of one name.
    fn stop_unknown(
        &mut self,
        kind: ContainerKind,
        spec: &Container,
        container: &ContainerView,
    ) -> ContainerDecision {
        if kind == ContainerKind::Init && !after_stop(self.pod(), kind, spec) {
            return ContainerDecision::Ends;
        }
        self.stop(container, ContainerKillReason::Unknown, true);
        self.start_or_back_off(kind, spec, None)
    }

    /// Starts a container, if what ended before it lets it.
    pub(super) fn start_or_back_off(
        &mut self,
        kind: ContainerKind,
        spec: &Container,
        crash: Option<Crash>,
    ) -> ContainerDecision {
        match crash.as_ref().map_or(BackoffDecision::Ready, |crash| self.backoff_decision(crash)) {
            BackoffDecision::Ready => {
                self.actions.crashes.extend(crash);
                let (name, restart_count) = (spec.name.clone(), restart_count(self.input, spec));
                self.actions.start.push(ContainerToStart { name, kind, restart_count });
            }
            BackoffDecision::Wait { remaining, delay } => {
                self.actions.wait.extend(crash.map(|crash| ContainerInBackOff {
                    name: spec.name.clone(),
                    kind,
                    until: self.input.now.mono + remaining,
                    delay,
                    message: back_off_message(self.input.pod, spec, delay),
                    crash,
                }));
            }
        }
        ContainerDecision::Starts
    }

    /// Whether a restart may follow this end.
    pub(super) fn backoff_decision(&self, crash: &Crash) -> BackoffDecision {
        self.input.backoff.check(crash, self.input.now)
    }

    /// The end of a container, as the back-off knows it.
    fn crash(&self, spec: &Container, container: &ContainerView, at: Timestamp) -> Crash {
        Crash { key: container_key(self.pod(), spec), container: container.id.clone(), at }
    }

    /// The newest end of a container of that name.
    pub(super) fn last_crash(&self, spec: &Container) -> Option<Crash> {
        let of_name = self.input.view.containers.iter().filter(|c| c.name == spec.name);
        let mut ends = of_name.filter_map(|c| Some((c, c.state.exit()?.finished_at)));
        ends.next().map(|(container, at)| self.crash(spec, container, at))
    }

    pub(super) fn stop(
        &mut self,
        container: &ContainerView,
        why: ContainerKillReason,
        restarts: bool,
    ) {
        self.actions
            .stop
            .push(ContainerToKill::of(Some(self.pod()), container, why).restarting(restarts));
    }

    /// Instead of all that was drafted: everything of the pod is stopped.
    pub(super) fn end_pod(&mut self, end_reason: PodEndReason) {
        self.actions = PodActions { end_reason: Some(end_reason), ..PodActions::default() };
        if !self.input.view.nothing_runs() {
            let teardown = teardown(Some(self.pod()), self.input.view, None);
            self.actions.stop = teardown.stop;
            self.actions.stop_sandboxes = teardown.sandboxes;
        }
    }

    /// The actions, completed with removals and events.
    pub(super) fn build(mut self) -> PodActions {
        let replaced = leftovers::replaced(&self);
        self.actions.remove.extend(replaced);
        let dead = leftovers::older_dead(&self);
        self.actions.remove.extend(dead);
        if self.actions.sandbox == SandboxAction::None && self.actions.end_reason.is_none() {
            let newest = self.input.view.newest_sandbox().map(|sandbox| sandbox.id.clone());
            self.actions.sandbox = newest.map_or(SandboxAction::None, SandboxAction::Keep);
        }
        self.mark_restarts();
        self.record_back_off_events();
        self.actions
    }

    /// A container that was to be stopped for its own sake may have a successor after all.
    fn mark_restarts(&mut self) {
        let PodActions { stop, start, .. } = &mut self.actions;
        for stop in stop.iter_mut() {
            stop.restarts |= start.iter().any(|start| start.name == stop.name);
        }
    }

    /// Adds the event of every back-off that has just begun.
    fn record_back_off_events(&mut self) {
        let (pod, backoff) = (self.input.pod, self.input.backoff);
        let PodActions { wait, events, .. } = &mut self.actions;
        let new = wait.iter().filter(|wait| !backoff.is_held(&wait.crash));
        events.extend(new.map(|wait| back_off_event(pod, wait)));
    }
}

fn back_off_event(pod: &Pod, wait: &ContainerInBackOff) -> PodEvent {
    let pod = format_pod(pod);
    let message = format!("Back-off restarting failed container {} in pod {pod}", wait.name);
    PodEvent::warning("BackOff", message).about(wait.kind, &wait.name)
}

fn back_off_message(pod: &Pod, spec: &Container, delay: Duration) -> String {
    let (delay, pod) = (spell(delay), format_pod(pod));
    format!("back-off {delay} restarting failed container={} pod={pod}", spec.name)
}

fn format_pod(pod: &Pod) -> String {
    format!("{}({})", pod.full_name(), pod.uid())
}
