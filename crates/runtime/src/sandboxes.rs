//! Sandboxes: run, stop, remove.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use oarsman_cri_types::v1::{ContainerEventType, PodSandboxConfig, RunPodSandboxRequest};
use oarsman_shim::client::{ShimError, clean_dead_shim};

use crate::error::{EmbeddedRuntimeError, Outcome, failed};
use crate::ids::new_id;
use crate::inner::{RuntimeInner, SHIM_DEADLINE, SandboxEntry};
use crate::oci::sysctls::{self, PodSysctl};
use crate::oci::user_namespace::PodUserNamespace;
use crate::records::{SandboxPhase, StoredSandbox, sandbox_options};
use crate::state_directory::write_json;

/// Where pods are whose agent names no control group.
const DEFAULT_CGROUP: &str = "/oarsman";

impl RuntimeInner {
    pub(crate) async fn run_sandbox(
        self: Arc<Self>,
        request: RunPodSandboxRequest,
    ) -> Outcome<String> {
        let config = request.config.unwrap_or_default();
        if !request.runtime_handler.is_empty() {
            let message = format!("there is no runtime handler {:?}", request.runtime_handler);
            return Err(EmbeddedRuntimeError::Invalid(message));
        }
        let record = self.new_sandbox(&config)?;
        let asked = config.linux.as_ref().map(|linux| &linux.sysctls);
        let sysctls = sysctls::sysctls(asked.into_iter().flatten(), record.own())?;
        let (id, name) = (record.id.clone(), record.full_name());
        self.reserve(&name, &id)?;
        match self.make_sandbox(record, config, sysctls).await {
            Ok(()) => Ok(id),
            Err(error) => {
                self.undo_sandbox(&id).await;
                self.release(&name);
                Err(error)
            }
        }
    }

    fn new_sandbox(&self, config: &PodSandboxConfig) -> Outcome<StoredSandbox> {
        let metadata = config.metadata.clone().unwrap_or_default();
        let options = sandbox_options(config);
        let parent = config.linux.as_ref().map(|linux| PathBuf::from(&linux.cgroup_parent));
        let parent = parent.filter(|parent| parent.is_absolute());
        Ok(StoredSandbox {
            id: new_id()?,
            name: metadata.name,
            uid: metadata.uid,
            namespace: metadata.namespace,
            attempt: metadata.attempt,
            created_at: self.now(),
            labels: config.labels.clone(),
            annotations: config.annotations.clone(),
            handler: String::new(),
            hostname: self.hostname(config),
            log_directory: PathBuf::from(&config.log_directory),
            cgroup_parent: parent.unwrap_or_else(|| PathBuf::from(DEFAULT_CGROUP)),
            boot_id: self.boot_id.clone(),
            phase: SandboxPhase::Making,
            modes: [options.network, options.pid, options.ipc],
            addresses: Vec::new(),
            user_namespace: PodUserNamespace::of(&options)?,
        })
    }

    /// A pod without a name of its own, such as one on the node's network, has the node's.
    fn hostname(&self, config: &PodSandboxConfig) -> String {
        match config.hostname.is_empty() {
            true => self.node_name.clone(),
            false => config.hostname.clone(),
        }
    }

    /// The record comes first, so that whatever a crash leaves is found.
    async fn make_sandbox(
        self: &Arc<Self>,
        record: StoredSandbox,
        config: PodSandboxConfig,
        sysctls: Vec<PodSysctl>,
    ) -> Outcome<()> {
        let id = record.id.clone();
        let made = record.clone();
        self.on_files(&id, move |inner| inner.begin_sandbox_files(&made)).await?;
        let directory = self.directory.shim(&id);
        let shim = self.shims.spawn(&directory, SHIM_DEADLINE);
        let (record, shim) = tokio::join!(self.make_surroundings(record, config, sysctls), shim);
        shim?;
        let mut record = record?;
        record.phase = SandboxPhase::Ready;
        let saved = record.clone();
        self.on_files(&id, move |inner| inner.save_sandbox(&saved)).await?;
        self.state.lock().sandboxes.insert(id.clone(), SandboxEntry::new(record));
        self.monitor(&id).await?;
        self.emit(&id, &id, ContainerEventType::ContainerCreatedEvent);
        self.emit(&id, &id, ContainerEventType::ContainerStartedEvent);
        Ok(())
    }

    /// Files, mounts, namespaces and network of a sandbox.
    async fn make_surroundings(
        self: &Arc<Self>,
        record: StoredSandbox,
        config: PodSandboxConfig,
        sysctls: Vec<PodSysctl>,
    ) -> Outcome<StoredSandbox> {
        let (id, made) = (record.id.clone(), record.clone());
        let (asked, settings) = (config.clone(), sysctls.clone());
        self.on_files(&id, move |inner| inner.make_sandbox_files(&made, &asked, &settings)).await?;
        let mut record = record;
        self.on_network(&id, move |inner| {
            inner.set_up_network(&mut record, &config, &sysctls)?;
            Ok(record)
        })
        .await
    }

    /// Removes what a failed run has made; what stays is removed at the next start.
    pub(crate) async fn undo_sandbox(self: &Arc<Self>, id: &str) {
        self.state.lock().sandboxes.remove(id);
        if let Err(error) = self.end_unfinished(id).await {
            tracing::warn!(sandbox = id, %error, "sandbox that could not be run not removed");
        }
    }

    async fn end_unfinished(self: &Arc<Self>, id: &str) -> Outcome<()> {
        self.end_shim(id).await?;
        self.tear_down_surroundings(id).await?;
        let key = id.to_owned();
        self.on_files(id, move |inner| inner.remove_sandbox_files(&key)).await
    }

    async fn end_shim(self: &Arc<Self>, id: &str) -> Outcome<()> {
        match self.shim(id).shut_down().await {
            Ok(()) => Ok(()),
            Err(ShimError::Gone { .. }) => {
                let key = id.to_owned();
                self.on_files(id, move |inner| inner.clean_shim(&key)).await
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Kills what a dead shim has left.
    pub(crate) fn clean_shim(&self, sandbox: &str) -> Outcome<()> {
        let directory = self.directory.shim(sandbox);
        if !directory.path().exists() {
            return Ok(());
        }
        let cleaned = clean_dead_shim(&directory, self.clock.wall());
        cleaned.map(drop).map_err(failed("clean the shim's directory", directory.path()))
    }

    pub(crate) async fn stop_sandbox(self: Arc<Self>, id: String) -> Outcome<()> {
        let Ok((_, lock)) = self.sandbox(&id) else { return Ok(()) };
        let _alone = lock.write().await;
        self.stop_sandbox_locked(&id).await
    }

    async fn stop_sandbox_locked(self: &Arc<Self>, id: &str) -> Outcome<()> {
        let Ok((record, _)) = self.sandbox(id) else { return Ok(()) };
        if record.phase == SandboxPhase::Stopped {
            return Ok(());
        }
        if let Err(ShimError::Gone { .. }) = self.shim(id).hello().await {
            let reports = self.clean_lost_shim(id).await?;
            self.apply_reports(&reports).await;
        }
        for container in self.containers_of(id) {
            self.kill_container(&container).await?;
        }
        // Its shim ends now, and that is no loss.
        let monitor =
            self.state.lock().sandboxes.get_mut(id).and_then(|entry| entry.monitor.take());
        drop(monitor);
        // From here on it is not ready, for the next process too: its network may be gone before its shim.
        self.change_phase(id, SandboxPhase::Lost).await?;
        let (processes, network) =
            tokio::join!(self.end_processes(id), self.tear_down_surroundings(id));
        processes.and(network)?;
        self.change_phase(id, SandboxPhase::Stopped).await?;
        self.emit(id, id, ContainerEventType::ContainerStoppedEvent);
        Ok(())
    }

    /// Removes containers that have ended from their shim, and ends it.
    async fn end_processes(self: &Arc<Self>, id: &str) -> Outcome<()> {
        for container in self.containers_of(id) {
            self.delete_from_shim(id, &container).await?;
            let key = container.clone();
            self.on_files(&container, move |inner| inner.unmount_container(&key)).await?;
        }
        self.end_shim(id).await
    }

    async fn tear_down_surroundings(self: &Arc<Self>, id: &str) -> Outcome<()> {
        let key = id.to_owned();
        self.on_network(id, move |inner| inner.tear_down_sandbox(&key)).await
    }

    /// Sets the phase in memory and on disk.
    async fn change_phase(self: &Arc<Self>, id: &str, phase: SandboxPhase) -> Outcome<()> {
        let Some(record) = self.set_phase(id, phase) else { return Ok(()) };
        self.on_files(id, move |inner| inner.save_sandbox(&record)).await
    }

    fn save_sandbox(&self, record: &StoredSandbox) -> Outcome<()> {
        write_json(&self.directory.sandbox_record(&record.id), record)
    }

    pub(crate) async fn remove_sandbox(self: Arc<Self>, id: String) -> Outcome<()> {
        let Ok((record, lock)) = self.sandbox(&id) else { return Ok(()) };
        let _alone = lock.write().await;
        self.stop_sandbox_locked(&id).await?;
        for container in self.containers_of(&id) {
            self.remove_container_locked(&container).await?;
        }
        let key = id.clone();
        self.on_files(&id, move |inner| inner.remove_sandbox_files(&key)).await?;
        self.emit(&id, &id, ContainerEventType::ContainerDeletedEvent);
        self.state.lock().sandboxes.remove(&id);
        self.release(&record.full_name());
        Ok(())
    }

    /// How long a killed container may take to end: its processes may be in a call of the kernel.
    pub(crate) const KILL_DEADLINE: Duration = Duration::from_secs(60);
}
