//! Starts containers: image, creation, start, postStart hook; the same way the first time and every time after.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::MutexGuard;
use std::time::Duration;

use k8s_openapi::api::core::v1::{Container, Pod};
use oarsman_core::actions::{
    ContainerToKill, ContainerToStart, ReservedAttempts, RestartCount, StartResults,
    count_from_logs,
};
use oarsman_core::backoff::CrashBackoff;
use oarsman_core::event::PodEvent;
use oarsman_core::ids::{ContainerId, SandboxId};
use oarsman_core::image::policy::PullPolicy;
use oarsman_core::pod::{ContainerKind, PodExt};
use oarsman_core::report::Activity;
use oarsman_core::start_error::{StartError, StartReason};
use oarsman_core::time::Mono;
use oarsman_sync::Guarded;

use super::context::PodContext;
use super::handler::HandlerRunner;
use super::image::ImageRequest;
use super::image_volumes::ContainerImages;
use super::sync::SyncError;
use super::work::{Cancel, Cancelled};
use super::{container_config, stopper};
use crate::container_lifecycle::ContainerRef;
use crate::metrics::container_type;

/// What is known about the starts of the pod's containers.
#[derive(Debug)]
pub(super) struct Starter {
    /// Why containers were not started, until one is.
    errors: Guarded<BTreeMap<String, StartError>>,
    /// Names that the runtime holds though it has nothing under them.
    reserved: Guarded<ReservedAttempts>,
    /// Which containers ended recently.
    crashes: Guarded<CrashBackoff>,
}

impl Starter {
    pub(super) fn new(longest_crash_backoff: Duration) -> Self {
        Self {
            errors: Guarded::default(),
            reserved: Guarded::default(),
            crashes: Guarded::new(CrashBackoff::new(longest_crash_backoff)),
        }
    }

    pub(super) fn reserved(&self) -> MutexGuard<'_, ReservedAttempts> {
        self.reserved.lock()
    }

    pub(super) fn crashes(&self) -> MutexGuard<'_, CrashBackoff> {
        self.crashes.lock()
    }

    /// Why a container was not started.
    pub(super) fn set_error(&self, container: &str, error: StartError) {
        self.errors.lock().insert(container.to_owned(), error);
    }

    pub(super) fn with_errors<T>(
        &self,
        with: impl FnOnce(&BTreeMap<String, StartError>) -> T,
    ) -> T {
        with(&self.errors.lock())
    }
}

/// Why a container was not started.
#[derive(Debug)]
pub(super) enum NotStarted {
    /// It failed: this goes into its status.
    Failed(StartError),
    /// It is held back until then, for this reason.
    Held(StartError, Mono),
    /// The sync was cancelled.
    Cancelled,
}

impl From<Cancelled> for NotStarted {
    fn from(_: Cancelled) -> Self {
        Self::Cancelled
    }
}

/// Starts containers one after the other. An init container that fails ends it; any other failure holds up no other container.
pub(super) async fn start_containers(
    context: &PodContext,
    pod: &Pod,
    sandbox: &SandboxId,
    starts: &[ContainerToStart],
    cancel: &Cancel,
) -> Result<StartResults, SyncError> {
    let mut results = StartResults::default();
    for start in starts {
        let Some(wanted) = pod.container(&start.name) else { continue };
        results.read = false;
        let this = ContainerStart { context, pod, sandbox, start, spec: &wanted.spec, cancel };
        match this.measured_run().await {
            Ok(()) => {
                context.starter.errors.lock().remove(&start.name);
                context.read().await?;
                context.publish_and_record(pod).await;
                results.read = true;
                continue;
            }
            Err(NotStarted::Cancelled) => return Err(SyncError::Cancelled),
            Err(NotStarted::Failed(error)) => {
                results.fail(&error.message);
                context.starter.set_error(&start.name, error);
            }
            Err(NotStarted::Held(error, until)) => {
                results.hold(until);
                context.starter.set_error(&start.name, error);
            }
        }
        if start.kind == ContainerKind::Init {
            break;
        }
    }
    Ok(results)
}

/// The start of one container.
struct ContainerStart<'a> {
    context: &'a PodContext,
    pod: &'a Pod,
    sandbox: &'a SandboxId,
    start: &'a ContainerToStart,
    spec: &'a Container,
    cancel: &'a Cancel,
}

impl ContainerStart<'_> {
    /// Starts the container, and counts that and its failure.
    async fn measured_run(&self) -> Result<(), NotStarted> {
        let metrics = &self.context.node.metrics;
        let container_type = container_type(self.start.kind);
        metrics.started_containers.increment(container_type);
        let started = self.run().await;
        if let Err(NotStarted::Failed(error) | NotStarted::Held(error, _)) = &started {
            metrics.start_errors.increment((container_type, error.reason));
        }
        started
    }

    async fn run(&self) -> Result<(), NotStarted> {
        let Self { context, pod, start, spec, cancel, .. } = *self;
        let image = ImageRequest {
            context,
            pod,
            image: spec.image.as_deref().unwrap_or_default(),
            policy: PullPolicy::of(spec),
            container: Some((start.kind, &start.name)),
            sandbox: self.sandbox,
            cancel,
        };
        let images = image.ensure_images_exist(spec).await?;
        cancel.check()?;
        let starting = context.begin_container_activity(&start.name, Activity::Starting);
        let attempt = self.attempt().await?;
        let created = self.create(&images, attempt).await;
        context.node.metrics.images.volumes.mounted(images.volumes.len(), created.is_ok());
        let id = created?;
        // The container keeps them from here on.
        drop(images);
        self.record(PodEvent::normal("Created", "Container created"));
        cancel.check()?;
        let hooks = &context.node.container_lifecycle;
        if let Err(error) = hooks.pre_start(&self.reference(Some(&id))).await {
            return Err(self.fail(StartReason::RunContainerError, &error));
        }
        if let Err(error) = context.node.seams.runtime.start_container(id.as_str()).await {
            return Err(self.fail(StartReason::RunContainerError, &error));
        }
        self.record(PodEvent::normal("Started", "Container started"));
        self.link_log(attempt, &id).await;
        drop(starting);
        self.post_start(&id).await
    }

    async fn create(
        &self,
        images: &ContainerImages<'_>,
        attempt: u32,
    ) -> Result<ContainerId, NotStarted> {
        let Self { context, pod, sandbox, start, spec, .. } = *self;
        let request = container_config::generate_container_config(
            context, pod, sandbox, spec, images, attempt,
        )
        .await;
        let mut request = match request {
            Ok(request) => request,
            Err(error) => return Err(self.fail(StartReason::CreateContainerConfigError, &error)),
        };
        let hooks = &context.node.container_lifecycle;
        if let Err(error) = hooks.pre_create(&self.reference(None), &mut request).await {
            return Err(self.fail(StartReason::CreateContainerConfigError, &error));
        }
        let error = match context.node.seams.runtime.create_container(request).await {
            Ok(id) => return Ok(ContainerId::from(id)),
            Err(error) => error,
        };
        let view = context.read().await.ok();
        let adopted = view.and_then(|view| {
            context.node.decisions.adopted_container(&view, sandbox, &start.name, attempt)
        });
        if let Some(id) = adopted {
            return Ok(id);
        }
        if error.is_name_reserved() {
            context.starter.reserved().reserve_container(&start.name, attempt);
        }
        Err(self.fail(StartReason::CreateContainerError, &error))
    }

    /// Runs the postStart hook. A container whose hook fails is stopped; so is one whose pod is no longer wanted while its hook
    /// runs, but that is the kill's matter.
    async fn post_start(&self, id: &ContainerId) -> Result<(), NotStarted> {
        let Self { context, pod, start, spec, cancel, .. } = *self;
        let hook = spec.lifecycle.as_ref().and_then(|lifecycle| lifecycle.post_start.as_ref());
        let Some(hook) = hook else { return Ok(()) };
        let runner = HandlerRunner { context, pod: Some(pod), id, name: &start.name };
        let running = context.begin_container_activity(&start.name, Activity::PostStart);
        let Err(error) = cancel.race(runner.run(hook)).await? else { return Ok(()) };
        drop(running);
        let container = start.name.as_str();
        tracing::warn!(pod = %context.name, uid = %context.uid, container, %error, "postStart hook failed, container will be stopped");
        // What a hook prints may be secret, and events are for many eyes: why it failed is in the status.
        self.record(PodEvent::warning("FailedPostStartHook", "PostStartHook failed"));
        cancel.race(self.stop_after_failed_hook(id)).await?;
        let reason = StartReason::PostStartHookError;
        Err(NotStarted::Failed(StartError { reason, message: error.to_string() }))
    }

    /// Stops a container whose hook failed, unless that is why it failed: one that has ended by itself has no preStop hook.
    async fn stop_after_failed_hook(&self, id: &ContainerId) {
        let Self { context, pod, start, spec, .. } = *self;
        let has_ended = context.read().await.is_ok_and(|view| {
            view.containers.iter().any(|seen| seen.id == *id && !seen.state.may_run())
        });
        if has_ended {
            return;
        }
        let stops = [ContainerToKill::after_failed_post_start(pod, start.kind, spec, id.clone())];
        if let Err(error) = stopper::kill_containers(context, Some(pod), &stops, None).await {
            let container = start.name.as_str();
            tracing::warn!(pod = %context.name, uid = %context.uid, container, %error, "container not stopped after failed postStart hook");
        }
    }

    /// Links the log to the container's id; a container whose log is not linked runs all the same.
    async fn link_log(&self, attempt: u32, id: &ContainerId) {
        let Self { context, pod, start, .. } = *self;
        let linked = context.node.seams.pod_files.link_log(pod, &start.name, attempt, id).await;
        if let Err(error) = linked {
            let container = start.name.as_str();
            tracing::warn!(pod = %context.name, uid = %context.uid, container, %error, "container log not linked");
        }
    }

    /// The attempt to create the container under: its restart count, when need be by the names of its log files, and never a
    /// name that the runtime holds already.
    async fn attempt(&self) -> Result<u32, NotStarted> {
        let Self { context, pod, start, .. } = *self;
        let count = match start.restart_count {
            RestartCount::Known(count) => count,
            RestartCount::FromLogs => {
                match context.node.seams.pod_files.log_names(pod, &start.name).await {
                    Ok(names) => count_from_logs(names.iter().map(String::as_str)),
                    Err(error) => {
                        let reason = StartReason::CreateContainerConfigError;
                        let message = error.to_string();
                        return Err(NotStarted::Failed(StartError { reason, message }));
                    }
                }
            }
        };
        Ok(context.starter.reserved().free_container(&start.name, count))
    }

    fn reference<'a>(&'a self, id: Option<&'a ContainerId>) -> ContainerRef<'a> {
        ContainerRef { pod: &self.context.uid, name: &self.start.name, id }
    }

    fn record(&self, event: PodEvent) {
        let event = event.about(self.start.kind, &self.start.name);
        self.context.node.recorder.record(self.pod, [event]);
    }

    /// Records that the container was not started and why.
    fn fail(&self, reason: StartReason, error: &impl fmt::Display) -> NotStarted {
        self.record(PodEvent::warning("Failed", format!("Error: {error}")));
        NotStarted::Failed(StartError { reason, message: error.to_string() })
    }
}
