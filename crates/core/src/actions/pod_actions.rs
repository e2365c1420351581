//! The actions of a pod, as plain data.

use std::time::Duration;

use k8s_openapi::api::core::v1::{Container, LifecycleHandler, Pod};

use super::counts::RestartCount;
use super::sandbox::NewSandbox;
use crate::backoff::{Crash, CrashBackoff};
use crate::event::PodEvent;
use crate::grace::{ContainerGracePeriod, GraceCause};
use crate::ids::{ContainerId, SandboxId};
use crate::pod::{ContainerKind, PodExt};
use crate::time::{Mono, Now};
use crate::view::ContainerView;

/// What to do to a pod now, to be carried out field by field in this order. A failure up to the new sandbox ends the
/// sync; the next one decides anew from the runtime's state.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PodActions {
    /// Said before anything is done.
    pub events: Vec<PodEvent>,
    /// Containers to stop, all at once but for those that wait for others.
    pub stop: Vec<ContainerToKill>,
    /// Sandboxes to stop when those containers have ended.
    pub stop_sandboxes: Vec<SandboxId>,
    /// Containers to remove, one after the other.
    pub remove: Vec<ContainerToRemove>,
    /// Where containers are started.
    pub sandbox: SandboxAction,
    /// Containers to start, one after the other. When one of kind `Init` cannot be started, those after it are not
    /// either; any other failure does not affect the rest.
    pub start: Vec<ContainerToStart>,
    /// Containers that are not started yet because they ended too often.
    pub wait: Vec<ContainerInBackOff>,
    /// Crashes after which a container is started again by these actions; see [`PodActions::record`].
    pub crashes: Vec<Crash>,
    /// Set when nothing of this pod is ever to be started again: the pod has ended, or is to end.
    pub end_reason: Option<PodEndReason>,
}

/// Where containers are started.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum SandboxAction {
    /// In the sandbox there is.
    Keep(SandboxId),
    /// In one that has yet to be made.
    Create(NewSandbox),
    /// Nowhere: the pod is over.
    #[default]
    None,
}

/// Why nothing of a pod is ever to be started again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PodEndReason {
    /// Its deletion has been asked for.
    Deleting,
    /// This init container failed and is not to be tried again.
    InitFailed(String),
    /// Every regular container has ended and none is to be started again.
    NothingToRun,
    /// Its sandbox is gone, its containers had begun, and its policy is to run them once.
    SandboxLost,
}

/// A container to stop: its hook runs, then the containers it comes after are waited for, then the runtime is asked;
/// the first two are paid from the grace period.
#[derive(Clone, Debug, PartialEq)]
#[expect(missing_docs, reason = "the fields' names say what they are")]
pub struct ContainerToKill {
    /// The id that the runtime gave the container.
    pub id: ContainerId,
    pub name: String,
    /// Its role; none when the spec does not know it.
    pub kind: Option<ContainerKind>,
    pub why: ContainerKillReason,
    /// Whether one of its name is started again afterwards.
    pub restarts: bool,
    /// How long it has.
    pub grace: ContainerGracePeriod,
    /// The hook to run first.
    pub pre_stop: Option<LifecycleHandler>,
    /// Containers that end before it, as long as there is grace to wait for them.
    pub after: Vec<ContainerId>,
}

/// Why a container is stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ContainerKillReason {
    /// The pod ends, or its sandbox does.
    Pod,
    /// Its name or image in the spec is another now.
    DefinitionChanged,
    /// Its liveness probe failed.
    Liveness,
    /// Its startup probe failed.
    Startup,
    /// The runtime cannot tell whether it runs.
    Unknown,
    /// An exit code asked for all containers to be restarted.
    RestartAll,
    /// It runs where or beside what it should not: in an earlier sandbox, twice, or without being in the spec.
    Stray,
    /// Its postStart hook failed.
    PostStart,
}

/// A container to remove from the runtime.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the fields' names say what they are")]
pub struct ContainerToRemove {
    /// The id that the runtime gave the container.
    pub id: ContainerId,
    pub name: String,
    pub why: RemoveReason,
}

/// Why a container is removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum RemoveReason {
    /// It is an init container of a sandbox that is replaced.
    Purged,
    /// Only the newest dead one of a name is kept, or none when the pod was evicted.
    Dead,
    /// It was made and never started, and another takes its place.
    NeverStarted,
    /// The runtime could not tell whether it ran, and another takes its place.
    Unknown,
    /// An exit code asked for all containers to be restarted.
    RestartAll,
}

/// A container to start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ContainerToStart {
    /// Its name in the spec.
    pub name: String,
    /// Init container, sidecar, regular or ephemeral.
    pub kind: ContainerKind,
    /// How often one of its name was started before; the attempt of its CRI metadata too.
    pub restart_count: RestartCount,
}

/// A container that is not started yet: the waiting reason is `CrashLoopBackOff`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ContainerInBackOff {
    /// Its name in the spec.
    pub name: String,
    /// Init container, sidecar, regular or ephemeral.
    pub kind: ContainerKind,
    /// When to sync again.
    pub until: Mono,
    /// How long it waits in all.
    pub delay: Duration,
    /// The message of the waiting state in the status.
    pub message: String,
    /// The end it waits after.
    pub crash: Crash,
}

impl PodActions {
    /// Whether there is nothing to do.
    pub fn is_idle(&self) -> bool {
        self.stop.is_empty()
            && self.stop_sandboxes.is_empty()
            && self.remove.is_empty()
            && self.start.is_empty()
            && !matches!(self.sandbox, SandboxAction::Create(_))
    }

    /// When to sync again if nothing happens before: the end of the first back-off.
    pub fn next_sync_at(&self) -> Option<Mono> {
        self.wait.iter().map(|wait| wait.until).min()
    }

    /// Records the restarts and waits in the back-off; to be called once, before the actions are performed. Calling it again for
    /// actions that were decided anew after a failure does no harm.
    pub fn record(&self, backoff: &mut CrashBackoff, now: Now) {
        self.crashes.iter().for_each(|crash| backoff.advance(crash, now));
        self.wait.iter().for_each(|wait| backoff.hold(&wait.crash, now));
    }
}

impl ContainerToKill {
    /// The stop of a container, with what the spec says about it, or else what is written on it.
    pub(super) fn of(
        pod: Option<&Pod>,
        container: &ContainerView,
        why: ContainerKillReason,
    ) -> Self {
        Self::with_requested_grace(pod, container, why, None)
    }

    /// The same, but a grace period that was asked for goes before what spec or container say.
    pub(super) fn with_requested_grace(
        pod: Option<&Pod>,
        container: &ContainerView,
        why: ContainerKillReason,
        asked: Option<ContainerGracePeriod>,
    ) -> Self {
        let known = pod.and_then(|pod| Some((pod, pod.container(&container.name)?)));
        let (kind, grace, pre_stop) = match &known {
            Some((pod, wanted)) => {
                let hooks = wanted.spec.lifecycle.as_ref();
                let pre_stop = hooks.and_then(|hooks| hooks.pre_stop.clone());
                (
                    Some(wanted.kind),
                    ContainerGracePeriod::of(pod, &wanted.spec, why.cause()),
                    pre_stop,
                )
            }
            None => (
                None,
                ContainerGracePeriod::of_orphan(&container.label),
                container.label.pre_stop.clone(),
            ),
        };
        let (id, name) = (container.id.clone(), container.name.clone());
        let grace = asked.unwrap_or(grace);
        let stop =
            Self { id, name, kind, why, restarts: false, grace, pre_stop, after: Vec::new() };
        stop.with_grace(grace)
    }

    /// The stop of a container that was just started and whose postStart hook failed: it has its time and its preStop hook
    /// like any other.
    pub fn after_failed_post_start(
        pod: &Pod,
        kind: ContainerKind,
        spec: &Container,
        id: ContainerId,
    ) -> Self {
        let hooks = spec.lifecycle.as_ref();
        let (why, name) = (ContainerKillReason::PostStart, spec.name.clone());
        let grace = ContainerGracePeriod::of(pod, spec, why.cause());
        let stop = Self {
            id,
            name,
            kind: Some(kind),
            why,
            restarts: false,
            grace,
            pre_stop: hooks.and_then(|hooks| hooks.pre_stop.clone()),
            after: Vec::new(),
        };
        stop.with_grace(grace)
    }

    /// The same with another grace period; none leaves no time for the hook.
    #[must_use]
    pub(super) fn with_grace(self, grace: ContainerGracePeriod) -> Self {
        let pre_stop = self.pre_stop.filter(|_| grace.is_open());
        Self { grace, pre_stop, ..self }
    }

    /// The same, and whether the container is started again.
    #[must_use]
    pub(super) fn restarting(self, restarts: bool) -> Self {
        Self { restarts, ..self }
    }

    /// What is said when it is stopped.
    pub fn event(&self) -> PodEvent {
        let event = PodEvent::normal("Killing", self.message());
        match self.kind {
            Some(kind) => event.about(kind, &self.name),
            None => event,
        }
    }

    /// The sentence of that event.
    fn message(&self) -> String {
        let what = match self.kind {
            Some(ContainerKind::Init | ContainerKind::Sidecar) => "Init container",
            Some(ContainerKind::Regular | ContainerKind::Ephemeral) | None => "Container",
        };
        let cause = match self.why {
            ContainerKillReason::Pod => return format!("Stopping container {}", self.name),
            // Tools know the Go kubelet's word.
            ContainerKillReason::PostStart => return "FailedPostStartHook".to_owned(),
            ContainerKillReason::DefinitionChanged => "definition changed",
            ContainerKillReason::Liveness => "failed liveness probe",
            ContainerKillReason::Startup => "failed startup probe",
            ContainerKillReason::Unknown => "is in an unknown state",
            ContainerKillReason::RestartAll => "is stopped because all containers restart",
            ContainerKillReason::Stray => "runs where it should not",
        };
        let outlook = if self.restarts { ", will be restarted" } else { "" };
        format!("{what} {} {cause}{outlook}", self.name)
    }
}

impl ContainerKillReason {
    /// Whether the stop counts as a crash, after which a restart may have to wait.
    pub(super) fn is_crash(self) -> bool {
        matches!(self, Self::Liveness | Self::Startup)
    }

    fn cause(self) -> GraceCause {
        match self {
            Self::Liveness => GraceCause::Liveness,
            Self::Startup => GraceCause::Startup,
            _ => GraceCause::Other,
        }
    }
}

impl RemoveReason {
    /// Whether the log outlives the container.
    pub fn keeps_log(self) -> bool {
        self == Self::RestartAll
    }
}
