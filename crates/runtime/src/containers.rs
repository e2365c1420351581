//! Containers: start, stop, remove, and what is done to those that run.

use std::sync::Arc;
use std::time::Duration;

use oarsman_cri_types::v1::{
    ContainerEventType, ExecSyncRequest, ExecSyncResponse, UpdateContainerResourcesRequest,
};
use oarsman_shim::client::ShimError;
use oarsman_shim::protocol::{ContainerReport, CreateRequest, RefusalKind};
use oci_spec::runtime::{Process, Spec};
use tokio::time::{Instant, sleep, timeout};

use crate::error::{EmbeddedRuntimeError, Outcome};
use crate::inner::{RuntimeInner, SHIM_DEADLINE};
use crate::oci::resources::resources;
use crate::records::{SandboxPhase, StoredContainer, StoredExit};
use crate::state_directory::read_json;

const START_ERROR: i32 = 128;
const SIGKILL: i32 = 9;
/// How often a container is deleted again that is just being made.
const BETWEEN_DELETES: Duration = Duration::from_millis(20);

impl RuntimeInner {
    pub(crate) async fn start_container(self: Arc<Self>, id: String) -> Outcome<()> {
        let (record, lock) = self.container(&id)?;
        let (_, sandbox_lock) = self.sandbox(&record.sandbox)?;
        let _shared = sandbox_lock.read().await;
        let _alone = lock.lock().await;
        let (record, _) = self.container(&id)?;
        self.check_startable(&record)?;
        match self.make_process(&record).await {
            Ok(()) => {}
            Err(error) => {
                let exit = StoredExit {
                    code: START_ERROR,
                    reason: "StartError".to_owned(),
                    message: error.to_string(),
                    finished_at: self.now(),
                };
                self.change_container(&id, |entry| {
                    entry.record.exit = Some(exit);
                    entry.ended.send_replace(true);
                })
                .await?;
                // What is left of it goes with the container at the latest.
                if let Err(left) = self.delete_from_shim(&record.sandbox, &id).await {
                    tracing::debug!(object = id, error = %left, "unstarted container left in its shim");
                }
                return Err(error);
            }
        }
        let started_at = self.now();
        self.tell_start(&record, started_at);
        let key = id.clone();
        self.on_files(&id, move |inner| inner.save_container(&key)).await
    }

    /// The end of a short container may be known already; it is reported after the start.
    fn tell_start(&self, record: &StoredContainer, started_at: i64) {
        let mut has_ended = false;
        if let Some(entry) = self.state.lock().containers.get_mut(&record.id) {
            has_ended = entry.record.exit.is_some();
            let finished = entry.record.exit.as_ref().map(|exit| exit.finished_at);
            entry.record.started_at = Some(finished.map_or(started_at, |it| it.min(started_at)));
            entry.is_start_told = true;
        }
        self.emit(&record.sandbox, &record.id, ContainerEventType::ContainerStartedEvent);
        if has_ended {
            self.emit(&record.sandbox, &record.id, ContainerEventType::ContainerStoppedEvent);
        }
    }

    fn check_startable(&self, record: &StoredContainer) -> Outcome<()> {
        let state = match (&record.started_at, &record.exit) {
            (_, Some(_)) => "ended",
            (Some(_), None) => "running",
            (None, None) => {
                let (sandbox, _) = self.sandbox(&record.sandbox)?;
                if sandbox.phase == SandboxPhase::Ready {
                    return Ok(());
                }
                "in a sandbox that is not ready"
            }
        };
        let why = "a container is started once";
        Err(EmbeddedRuntimeError::State { kind: "container", id: record.id.clone(), state, why })
    }

    async fn make_process(self: &Arc<Self>, record: &StoredContainer) -> Outcome<()> {
        let shim = self.shim(&record.sandbox);
        if let Some(target) = record.target {
            // The number may be that of another process by now.
            let runs = |it: &ContainerReport| it.pid == Some(target) && it.exit.is_none();
            if !shim.list().await?.iter().any(runs) {
                let why = "the container whose processes it shares has ended";
                let (kind, state) = ("container", "not startable");
                return Err(EmbeddedRuntimeError::State {
                    kind,
                    id: record.id.clone(),
                    state,
                    why,
                });
            }
        }
        let log = Some(record.log_path.clone()).filter(|path| !path.as_os_str().is_empty());
        shim.create(CreateRequest {
            container: record.id.clone(),
            spec: self.read_spec(&record.id).await?,
            log,
            stdin: record.stdin,
            stdin_once: record.stdin_once,
            oci_runtime: self.oci_runtime(&record.sandbox)?,
        })
        .await?;
        Ok(shim.start(&record.id).await?)
    }

    pub(crate) async fn read_spec(self: &Arc<Self>, id: &str) -> Outcome<Spec> {
        let key = id.to_owned();
        let read = move |inner: &Self| {
            read_json(&inner.directory.spec(&key))?
                .ok_or_else(|| EmbeddedRuntimeError::no_container(&key))
        };
        self.on_files(id, read).await
    }

    /// Asks a container to stop, and kills it when its grace is over.
    pub(crate) async fn stop_container(
        self: Arc<Self>,
        id: String,
        grace: Duration,
    ) -> Outcome<()> {
        let Ok((record, _)) = self.container(&id) else { return Ok(()) };
        if !record.is_running() {
            return Ok(());
        }
        if !grace.is_zero() {
            let whole = Duration::from_secs(grace.as_secs() + u64::from(grace.subsec_nanos() > 0));
            let signalled = self.shim(&record.sandbox).kill(&id, record.stop_signal, false).await;
            allow_ended(signalled)?;
            if self.wait_for_end(&id, whole).await {
                return Ok(());
            }
        }
        self.kill_container(&id).await
    }

    /// Kills all processes of a container that runs, and waits until its end is written down.
    pub(crate) async fn kill_container(self: &Arc<Self>, id: &str) -> Outcome<()> {
        let Ok((record, _)) = self.container(id) else { return Ok(()) };
        if !record.is_running() {
            return Ok(());
        }
        allow_ended(self.shim(&record.sandbox).kill(id, SIGKILL, true).await)?;
        match self.wait_for_end(id, Self::KILL_DEADLINE).await {
            true => Ok(()),
            false => Err(EmbeddedRuntimeError::Deadline {
                what: format!("the end of container {id}"),
                deadline: Self::KILL_DEADLINE,
            }),
        }
    }

    /// Whether a container ends in time; one that is gone has ended.
    async fn wait_for_end(&self, id: &str, limit: Duration) -> bool {
        let ended = self.state.lock().containers.get(id).map(|entry| entry.ended.subscribe());
        match ended {
            Some(mut ended) => timeout(limit, ended.wait_for(|ended| *ended)).await.is_ok(),
            None => true,
        }
    }

    /// Removes a container from its shim, if it is there. A create or a delete of an agent that was killed may still be under way.
    pub(crate) async fn delete_from_shim(&self, sandbox: &str, id: &str) -> Outcome<()> {
        let deadline = Instant::now() + SHIM_DEADLINE;
        loop {
            match self.shim(sandbox).delete(id).await {
                Ok(()) | Err(ShimError::Gone { .. }) => return Ok(()),
                Err(ShimError::Refused { kind: RefusalKind::NotFound, .. }) => return Ok(()),
                Err(ShimError::Refused { kind: RefusalKind::WrongState, .. })
                    if Instant::now() < deadline => {}
                Err(error) => return Err(error.into()),
            }
            sleep(BETWEEN_DELETES).await;
        }
    }

    pub(crate) async fn remove_container(self: Arc<Self>, id: String) -> Outcome<()> {
        let Ok((record, _)) = self.container(&id) else { return Ok(()) };
        let Ok((_, lock)) = self.sandbox(&record.sandbox) else { return Ok(()) };
        let _shared = lock.read().await;
        self.remove_container_locked(&id).await
    }

    pub(crate) async fn remove_container_locked(self: &Arc<Self>, id: &str) -> Outcome<()> {
        let Ok((_, lock)) = self.container(id) else { return Ok(()) };
        let _alone = lock.lock().await;
        let Ok((record, _)) = self.container(id) else { return Ok(()) };
        self.kill_container(id).await?;
        self.delete_from_shim(&record.sandbox, id).await?;
        let key = id.to_owned();
        self.on_files(id, move |inner| inner.remove_container_files(&key)).await?;
        self.emit(&record.sandbox, id, ContainerEventType::ContainerDeletedEvent);
        self.state.lock().containers.remove(id);
        self.release(&record.full_name());
        Ok(())
    }

    pub(crate) async fn reopen_log(self: Arc<Self>, id: String) -> Outcome<()> {
        let record = self.running(&id, "only the log of one that runs is open")?;
        Ok(self.shim(&record.sandbox).reopen_log(&id).await?)
    }

    pub(crate) async fn update_resources(
        self: Arc<Self>,
        request: UpdateContainerResourcesRequest,
    ) -> Outcome<()> {
        let id = request.container_id;
        let (_, lock) = self.container(&id)?;
        let _alone = lock.lock().await;
        let (record, _) = self.container(&id)?;
        let asked = record.resources.updated(&request.linux.unwrap_or_default());
        let limits = resources(&asked.shown(), Vec::new(), self.abilities)?;
        if record.is_running() {
            self.shim(&record.sandbox).update(&id, limits).await?;
        } else if record.exit.is_none() {
            Box::pin(self.update_spec(&id, limits)).await?;
        }
        self.change_container(&id, |entry| entry.record.resources = asked).await
    }

    /// A container that is not started yet starts with its new limits.
    async fn update_spec(
        self: &Arc<Self>,
        id: &str,
        limits: oci_spec::runtime::LinuxResources,
    ) -> Outcome<()> {
        let mut spec = self.read_spec(id).await?;
        let known = spec.linux_mut().as_mut().and_then(|linux| linux.resources_mut().as_mut());
        if let Some(known) = known {
            known.set_memory(*limits.memory()).set_cpu(limits.cpu().clone());
            known.set_hugepage_limits(limits.hugepage_limits().clone());
            known.set_unified(limits.unified().clone());
        }
        let path = self.directory.spec(id);
        self.on_files(id, move |_| crate::state_directory::write_json(&path, &spec)).await
    }

    /// A container that runs.
    pub(crate) fn running(&self, id: &str, why: &'static str) -> Outcome<StoredContainer> {
        let (record, _) = self.container(id)?;
        if record.is_running() {
            return Ok(record);
        }
        let state = "not running";
        Err(EmbeddedRuntimeError::State { kind: "container", id: id.to_owned(), state, why })
    }

    /// The process of a command in a container: as its first one, but for the arguments.
    pub(crate) async fn exec_process(
        self: &Arc<Self>,
        id: &str,
        command: Vec<String>,
        tty: bool,
    ) -> Outcome<Process> {
        let spec = self.read_spec(id).await?;
        let mut process = spec.process().clone().unwrap_or_default();
        process.set_args(Some(command)).set_terminal(Some(tty));
        if tty {
            let mut env = process.env().clone().unwrap_or_default();
            if !env.iter().any(|entry| entry.starts_with("TERM=")) {
                env.push("TERM=xterm".to_owned());
            }
            process.set_env(Some(env));
        }
        Ok(process)
    }

    /// None for a command that took too long.
    pub(crate) async fn exec_sync(
        self: Arc<Self>,
        request: ExecSyncRequest,
    ) -> Outcome<Option<ExecSyncResponse>> {
        let id = request.container_id;
        let record = self.running(&id, "commands need one that is")?;
        let process = self.exec_process(&id, request.cmd, false).await?;
        let limit = u64::try_from(request.timeout).ok().filter(|seconds| *seconds > 0);
        let shim = self.shim(&record.sandbox);
        let output = shim.exec_sync(&id, process, limit.map(Duration::from_secs)).await?;
        Ok((!output.exit.timed_out).then_some(ExecSyncResponse {
            stdout: output.stdout,
            stderr: output.stderr,
            exit_code: output.exit.exit_code,
        }))
    }

    /// The containers that run and meet a condition.
    pub(crate) fn running_containers(
        &self,
        wanted: impl Fn(&StoredContainer) -> bool,
    ) -> Vec<StoredContainer> {
        let state = self.state.lock();
        let records = state.containers.values().map(|entry| &entry.record);
        records.filter(|record| record.is_running() && wanted(record)).cloned().collect()
    }
}

/// A container may end between the look and the signal.
fn allow_ended(signalled: Result<(), ShimError>) -> Outcome<()> {
    match signalled {
        Err(
            ShimError::Refused { kind: RefusalKind::WrongState | RefusalKind::NotFound, .. }
            | ShimError::Gone { .. },
        ) => Ok(()),
        other => Ok(other?),
    }
}
