//! Starting sandboxes and containers: image, creation, start, hook; the same way the first time and every time after.

use std::fmt;

use k8s_openapi::api::core::v1::{Container, Pod};
use oarsman_core::actions::{RestartCount, Start, Stop, count_from_logs};
use oarsman_core::event::PodEvent;
use oarsman_core::ids::{ContainerId, SandboxId};
use oarsman_core::pod::{ContainerKind, PodExt};
use oarsman_core::report::Activity;
use oarsman_core::start_error::{StartError, StartReason};
use oarsman_core::time::Mono;
use oarsman_cri_types::v1::RunPodSandboxRequest;

use super::hooks::Owner;
use super::room::Room;
use super::sync::SyncError;
use super::work::Cancel;
use super::{adopt, describe, image, stop};

/// What came of starting containers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Started {
    /// Why the first of those that failed did.
    pub(super) failed: Option<String>,
    /// When the first of those that are held back may be tried again.
    pub(super) until: Option<Mono>,
    /// Whether the pod was looked at after the last of them.
    pub(super) seen: bool,
}

/// Why a container was not started.
#[derive(Debug)]
pub(super) enum NotStarted {
    /// It failed: this goes into its status.
    Failed(StartError),
    /// It is held back until then, for this reason.
    Held(StartError, Mono),
    /// Nobody wants it any more.
    Cancelled,
}

impl From<super::work::Cancelled> for NotStarted {
    fn from(_: super::work::Cancelled) -> Self {
        Self::Cancelled
    }
}

/// Makes the pod's sandbox, or finds the one that an earlier call made without our hearing of it.
pub(super) async fn sandbox(room: &Room, pod: &Pod, attempt: u32) -> Result<SandboxId, SyncError> {
    let attempt = room.free_attempt("", attempt);
    let request = sandbox_request(room, pod, attempt)?;
    let began = room.now();
    let making = room.busy(Activity::MakingSandbox);
    let answer = room.node.seams.runtime.run_pod_sandbox(request).await;
    drop(making);
    let error = match answer {
        Ok(id) => {
            room.node.measures.sandbox.took(room.now().since(began));
            return Ok(SandboxId::from(id));
        }
        Err(error) => error,
    };
    if let Some(id) = adopt::sandbox(room, attempt).await? {
        return Ok(id);
    }
    room.skip_attempt_if_reserved("", attempt, &error);
    room.node.recorder.record(pod, [no_sandbox(&error)]);
    Err(room.blame_network(pod, error).await)
}

fn sandbox_request(
    room: &Room,
    pod: &Pod,
    attempt: u32,
) -> Result<RunPodSandboxRequest, SyncError> {
    let sandbox = match describe::sandbox(room, pod, attempt) {
        Ok(sandbox) => sandbox,
        Err(error) => {
            room.node.recorder.record(pod, [no_sandbox(&error)]);
            return Err(error.into());
        }
    };
    room.node.recorder.record(pod, sandbox.warnings.iter().map(|warning| warning.event(pod)));
    Ok(RunPodSandboxRequest { config: Some(sandbox.config), runtime_handler: sandbox.handler })
}

fn no_sandbox(error: &impl fmt::Display) -> PodEvent {
    PodEvent::warning("FailedCreatePodSandBox", format!("Failed to create pod sandbox: {error}"))
}

/// Starts containers one after the other. An init container that fails ends it; any other keeps nobody else.
pub(super) async fn containers(
    room: &Room,
    pod: &Pod,
    sandbox: &SandboxId,
    starts: &[Start],
    cancel: &Cancel,
) -> Result<Started, SyncError> {
    let mut started = Started::default();
    for start in starts {
        let Some(wanted) = pod.container(&start.name) else { continue };
        started.seen = false;
        match container(room, pod, sandbox, start, &wanted.spec, cancel).await {
            Ok(()) => {
                room.memory().start_errors.remove(&start.name);
                room.look().await?;
                room.publish(pod, None, None).await;
                started.seen = true;
                continue;
            }
            Err(NotStarted::Cancelled) => return Err(SyncError::Cancelled),
            Err(NotStarted::Failed(error)) => {
                started.failed.get_or_insert_with(|| error.message.clone());
                room.memory().start_errors.insert(start.name.clone(), error);
            }
            Err(NotStarted::Held(error, until)) => {
                started.until = Some(started.until.map_or(until, |first| first.min(until)));
                room.memory().start_errors.insert(start.name.clone(), error);
            }
        }
        if start.kind == ContainerKind::Init {
            break;
        }
    }
    Ok(started)
}

async fn container(
    room: &Room,
    pod: &Pod,
    sandbox: &SandboxId,
    start: &Start,
    spec: &Container,
    cancel: &Cancel,
) -> Result<(), NotStarted> {
    let image = image::ensure(room, pod, start.kind, spec, cancel).await?;
    cancel.check()?;
    let starting = room.busy_with(&start.name, Activity::Starting);
    let restart_count = room.restart_count(pod, start).await?;
    let id = create(room, pod, sandbox, start, spec, &image, restart_count).await?;
    let event = PodEvent::normal("Created", "Container created").about(start.kind, &start.name);
    room.node.recorder.record(pod, [event]);
    cancel.check()?;
    if let Err(error) = room.node.seams.runtime.start_container(id.as_str()).await {
        return Err(room.fail(pod, start, StartReason::RunContainerError, &error).await);
    }
    let event = PodEvent::normal("Started", "Container started").about(start.kind, &start.name);
    room.node.recorder.record(pod, [event]);
    room.link_log(pod, start, restart_count, &id).await;
    drop(starting);
    post_start(room, pod, start, spec, &id, cancel).await
}

async fn create(
    room: &Room,
    pod: &Pod,
    sandbox: &SandboxId,
    start: &Start,
    spec: &Container,
    image: &image::Present,
    restart_count: u32,
) -> Result<ContainerId, NotStarted> {
    let attempt = room.free_attempt(&start.name, restart_count);
    let request = match describe::container(room, pod, sandbox, spec, image, attempt).await {
        Ok(request) => request,
        Err(error) => {
            let reason = StartReason::CreateContainerConfigError;
            return Err(room.fail(pod, start, reason, &error).await);
        }
    };
    let error = match room.node.seams.runtime.create_container(request).await {
        Ok(id) => return Ok(ContainerId::from(id)),
        Err(error) => error,
    };
    if let Some(id) = adopt::container(room, sandbox, &start.name, attempt).await {
        return Ok(id);
    }
    room.skip_attempt_if_reserved(&start.name, attempt, &error);
    Err(room.fail(pod, start, StartReason::CreateContainerError, &error).await)
}

/// Runs the hook after the start. A container whose hook fails is stopped; so is one whose pod is no longer wanted
/// while its hook runs, but that is the kill's matter.
async fn post_start(
    room: &Room,
    pod: &Pod,
    start: &Start,
    spec: &Container,
    id: &ContainerId,
    cancel: &Cancel,
) -> Result<(), NotStarted> {
    let hook = spec.lifecycle.as_ref().and_then(|lifecycle| lifecycle.post_start.as_ref());
    let Some(hook) = hook else { return Ok(()) };
    let owner = Owner { room, pod: Some(pod), id, name: &start.name };
    let running = room.busy_with(&start.name, Activity::PostStart);
    let Err(error) = cancel.race(owner.run(hook)).await? else { return Ok(()) };
    drop(running);
    tracing::warn!(pod = %room.name, container = start.name, %error, "a postStart hook failed");
    // What a hook prints may be secret, and events are for many eyes: why it failed is in the status.
    let event = PodEvent::warning("FailedPostStartHook", "PostStartHook failed");
    room.node.recorder.record(pod, [event.about(start.kind, &start.name)]);
    cancel.race(end(room, pod, start, spec, id)).await?;
    let reason = StartReason::PostStartHookError;
    Err(NotStarted::Failed(StartError { reason, message: error.to_string() }))
}

/// Stops a container whose hook failed, unless that is why it failed: one that has ended by itself has no hook before its end.
async fn end(room: &Room, pod: &Pod, start: &Start, spec: &Container, id: &ContainerId) {
    let ended = room.look().await.is_ok_and(|view| {
        view.containers.iter().any(|container| container.id == *id && !container.state.may_run())
    });
    if ended {
        return;
    }
    let stops = [Stop::after_failed_start(pod, start.kind, spec, id.clone())];
    if let Err(stuck) = stop::all(room, Some(pod), &stops, None).await {
        tracing::warn!(pod = %room.name, %stuck, "a container whose hook failed runs on");
    }
}

impl Room {
    /// Has the log found by the container's id, too; a container whose log is not runs all the same.
    async fn link_log(&self, pod: &Pod, start: &Start, restart_count: u32, id: &ContainerId) {
        let attempt = self.free_attempt(&start.name, restart_count);
        let linked = self.node.seams.pod_files.link_log(pod, &start.name, attempt, id).await;
        if let Err(error) = linked {
            tracing::warn!(pod = %self.name, %error, "a log cannot be found by its container's id");
        }
    }

    /// The restart count of a container, when need be by the names of its log files.
    async fn restart_count(&self, pod: &Pod, start: &Start) -> Result<u32, NotStarted> {
        match start.restart_count {
            RestartCount::Known(count) => Ok(count),
            RestartCount::FromLogs => {
                match self.node.seams.pod_files.log_names(pod, &start.name).await {
                    Ok(names) => Ok(count_from_logs(names.iter().map(String::as_str))),
                    Err(error) => {
                        let reason = StartReason::CreateContainerConfigError;
                        Err(NotStarted::Failed(StartError { reason, message: error.to_string() }))
                    }
                }
            }
        }
    }

    /// Says that a container was not started and why.
    async fn fail(
        &self,
        pod: &Pod,
        start: &Start,
        reason: StartReason,
        error: &impl fmt::Display,
    ) -> NotStarted {
        let event = PodEvent::warning("Failed", format!("Error: {error}"));
        self.node.recorder.record(pod, [event.about(start.kind, &start.name)]);
        NotStarted::Failed(StartError { reason, message: error.to_string() })
    }
}
