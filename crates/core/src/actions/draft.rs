//! Builds the actions of a pod: state and helpers that the parts of the decision share.

use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Container, Pod};

use super::Input;
use super::counts::restart_count;
use super::leftovers;
use super::step::{Over, Plan, SandboxStep, Start, Stop, StopReason, Wait};
use super::teardown::teardown;
use crate::backoff::{Crash, Verdict, container_key};
use crate::duration::spell;
use crate::event::PodEvent;
use crate::hash::container_hash;
use crate::pod::{ContainerKind, PodExt};
use crate::probe::ProbeKind;
use crate::restart::{AfterExit, after_exit, after_stop};
use crate::view::{ContainerState, ContainerView};

/// The actions as far as they are decided.
pub(super) struct Draft<'a> {
    pub(super) input: &'a Input<'a>,
    pub(super) plan: Plan,
}

/// What was decided about a container.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Tended {
    /// It runs and goes on.
    Kept,
    /// It is started, now or when its back-off is over.
    Again,
    /// It has ended, or ends now, for good.
    Rests,
}

impl<'a> Draft<'a> {
    pub(super) fn new(input: &'a Input<'a>) -> Self {
        Self { input, plan: Plan::default() }
    }

    pub(super) fn pod(&self) -> &'a Pod {
        self.input.pod
    }

    /// The newest container of that name in the newest sandbox.
    pub(super) fn here(&self, name: &str) -> Option<&'a ContainerView> {
        let sandbox = &self.input.view.newest_sandbox()?.id;
        self.input.view.containers.iter().find(|c| c.name == name && c.sandbox == *sandbox)
    }

    /// The newest container of that name, in whatever sandbox.
    pub(super) fn latest(&self, name: &str) -> Option<&'a ContainerView> {
        self.here(name).or_else(|| self.input.view.newest(name))
    }

    /// Starts, watches or restarts one container, of which `current` is the newest that counts.
    pub(super) fn tend(
        &mut self,
        kind: ContainerKind,
        spec: &Container,
        current: Option<&ContainerView>,
    ) -> Tended {
        match current.map(|container| (container, &container.state)) {
            None | Some((_, ContainerState::Created)) => {
                self.launch(kind, spec, self.last_crash(spec))
            }
            Some((_, ContainerState::Exited(exit))) => {
                match after_exit(self.pod(), kind, spec, exit) {
                    AfterExit::Leave => Tended::Rests,
                    _ => self.launch(kind, spec, self.last_crash(spec)),
                }
            }
            Some((container, ContainerState::Running { .. })) => self.watch(kind, spec, container),
            Some((container, ContainerState::Unknown)) => self.settle(kind, spec, container),
        }
    }

    /// A running container goes on, unless there is a reason to stop it.
    fn watch(
        &mut self,
        kind: ContainerKind,
        spec: &Container,
        container: &ContainerView,
    ) -> Tended {
        let Some(why) = self.reason_to_stop(kind, spec, container) else { return Tended::Kept };
        let changed = why == StopReason::DefinitionChanged;
        let restarts = changed || after_stop(self.pod(), kind, spec);
        self.stop(container, why, restarts);
        if !restarts {
            return Tended::Rests;
        }
        let crash = why.is_crash().then(|| self.crash(spec, container, self.input.now.wall));
        // One that has to wait first is told so when it has ended.
        if crash.as_ref().is_none_or(|crash| self.verdict(crash) == Verdict::Ready) {
            self.launch(kind, spec, crash);
        }
        Tended::Again
    }

    /// An init container is never stopped by itself: it is on its way to its end.
    fn reason_to_stop(
        &self,
        kind: ContainerKind,
        spec: &Container,
        container: &ContainerView,
    ) -> Option<StopReason> {
        let failed = |probe| self.input.probes.has_failed(&container.id, probe);
        let newest = self.input.view.newest_sandbox().map(|sandbox| &sandbox.id);
        match kind {
            ContainerKind::Init => None,
            _ if newest != Some(&container.sandbox) => Some(StopReason::Stray),
            _ if container.label.hash != Some(container_hash(spec)) => {
                Some(StopReason::DefinitionChanged)
            }
            _ if failed(ProbeKind::Liveness) => Some(StopReason::Liveness),
            _ if failed(ProbeKind::Startup) => Some(StopReason::Startup),
            _ => None,
        }
    }

    /// A container of which the runtime cannot tell is stopped, so that there are never two of one name.
    fn settle(
        &mut self,
        kind: ContainerKind,
        spec: &Container,
        container: &ContainerView,
    ) -> Tended {
        if kind == ContainerKind::Init && !after_stop(self.pod(), kind, spec) {
            return Tended::Rests;
        }
        self.stop(container, StopReason::Unknown, true);
        self.launch(kind, spec, None)
    }

    /// Starts a container, if what ended before it lets it.
    pub(super) fn launch(
        &mut self,
        kind: ContainerKind,
        spec: &Container,
        crash: Option<Crash>,
    ) -> Tended {
        match crash.as_ref().map_or(Verdict::Ready, |crash| self.verdict(crash)) {
            Verdict::Ready => {
                self.plan.crashes.extend(crash);
                let (name, restart_count) = (spec.name.clone(), restart_count(self.input, spec));
                self.plan.start.push(Start { name, kind, restart_count });
            }
            Verdict::Wait { remaining, delay } => self.plan.wait.extend(crash.map(|crash| Wait {
                name: spec.name.clone(),
                kind,
                until: self.input.now.mono + remaining,
                delay,
                message: waiting_message(self.input.pod, spec, delay),
                crash,
            })),
        }
        Tended::Again
    }

    /// Whether a restart may follow this end.
    pub(super) fn verdict(&self, crash: &Crash) -> Verdict {
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

    pub(super) fn stop(&mut self, container: &ContainerView, why: StopReason, restarts: bool) {
        self.plan.stop.push(Stop::of(Some(self.pod()), container, why).restarting(restarts));
    }

    /// Instead of all that was drafted: everything of the pod is stopped.
    pub(super) fn end(&mut self, over: Over) {
        self.plan = Plan { over: Some(over), ..Plan::default() };
        if !self.input.view.is_quiet() {
            let teardown = teardown(Some(self.pod()), self.input.view, None);
            self.plan.stop = teardown.stop;
            self.plan.stop_sandboxes = teardown.sandboxes;
        }
    }

    /// The actions, completed with removals and events.
    pub(super) fn finish(mut self) -> Plan {
        let replaced = leftovers::replaced(&self);
        self.plan.remove.extend(replaced);
        let dead = leftovers::older_dead(&self);
        self.plan.remove.extend(dead);
        if self.plan.sandbox == SandboxStep::None && self.plan.over.is_none() {
            let newest = self.input.view.newest_sandbox().map(|sandbox| sandbox.id.clone());
            self.plan.sandbox = newest.map_or(SandboxStep::None, SandboxStep::Keep);
        }
        self.mark_restarts();
        self.announce_waits();
        self.plan
    }

    /// A container that was to be stopped for its own sake may have a successor after all.
    fn mark_restarts(&mut self) {
        let Plan { stop, start, .. } = &mut self.plan;
        for stop in stop.iter_mut() {
            stop.restarts |= start.iter().any(|start| start.name == stop.name);
        }
    }

    /// Adds the event of every back-off that has just begun.
    fn announce_waits(&mut self) {
        let (pod, backoff) = (self.input.pod, self.input.backoff);
        let Plan { wait, events, .. } = &mut self.plan;
        let new = wait.iter().filter(|wait| !backoff.is_held(&wait.crash));
        events.extend(new.map(|wait| waiting_event(pod, wait)));
    }
}

fn waiting_event(pod: &Pod, wait: &Wait) -> PodEvent {
    let pod = pod_text(pod);
    let message = format!("Back-off restarting failed container {} in pod {pod}", wait.name);
    PodEvent::warning("BackOff", message).about(wait.kind, &wait.name)
}

fn waiting_message(pod: &Pod, spec: &Container, delay: Duration) -> String {
    let (delay, pod) = (spell(delay), pod_text(pod));
    format!("back-off {delay} restarting failed container={} pod={pod}", spec.name)
}

fn pod_text(pod: &Pod) -> String {
    format!("{}({})", pod.full_name(), pod.uid())
}
