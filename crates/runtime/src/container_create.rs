//! Makes containers. Their process is made by the start: what is wrong with their program is an error of the start then, as with containerd.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use oarsman_cri_types::v1::{
    ContainerConfig, ContainerEventType, CreateContainerRequest, NamespaceMode, NamespaceOption,
};
use oarsman_image_store::StoredImage;
use oci_spec::runtime::Spec;

use crate::cdi::{self, SpecAbilities};
use crate::error::{EmbeddedRuntimeError, Outcome, failed};
use crate::ids::new_id;
use crate::inner::{ContainerEntry, RuntimeInner};
use crate::oci::namespaces::JoinableNamespaces;
use crate::oci::resources::StoredResources;
use crate::oci::security_modules::SecurityModules;
use crate::oci::signals::stop_signal;
use crate::oci::spec::{SpecInput, security_context, spec};
use crate::oci::user_namespace::PodUserNamespace;
use crate::oci::users::ProcessUser;
use crate::records::{SandboxPhase, StoredContainer, StoredMount, StoredSandbox, container_name};
use crate::state_directory::{make_directory, write_json};

impl RuntimeInner {
    pub(crate) async fn create_container(
        self: Arc<Self>,
        request: CreateContainerRequest,
    ) -> Outcome<String> {
        let (_, lock) = self.sandbox(&request.pod_sandbox_id)?;
        let _shared = lock.read().await;
        let (sandbox, _) = self.sandbox(&request.pod_sandbox_id)?;
        if sandbox.phase != SandboxPhase::Ready {
            return Err(EmbeddedRuntimeError::State {
                kind: "sandbox",
                id: sandbox.id,
                state: "not ready",
                why: "containers need one that is",
            });
        }
        let config = request.config.unwrap_or_default();
        let metadata = config.metadata.clone().unwrap_or_default();
        let name = container_name(&sandbox.id, &metadata.name, metadata.attempt);
        let id = new_id()?;
        self.reserve(&name, &id)?;
        match self.make_container(&id, sandbox, config).await {
            Ok(()) => Ok(id),
            Err(error) => {
                self.release(&name);
                let key = id.clone();
                let removed =
                    self.on_files(&id, move |inner| inner.remove_container_files(&key)).await;
                if let Err(error) = removed {
                    tracing::warn!(object = id, %error, "container that could not be made not removed");
                }
                Err(error)
            }
        }
    }

    async fn make_container(
        self: &Arc<Self>,
        id: &str,
        sandbox: StoredSandbox,
        config: ContainerConfig,
    ) -> Outcome<()> {
        let context = security_context(&config);
        let options = context.namespace_options.unwrap_or_default();
        if PodUserNamespace::of(&options)? != sandbox.user_namespace {
            let message = "the container's user namespace is not its sandbox's".to_owned();
            return Err(EmbeddedRuntimeError::Invalid(message));
        }
        let mut joinable = self.joinable(&sandbox)?;
        let user = joinable.user.clone();
        joinable.target = self.target_process(&sandbox.id, &options).await?;
        joinable.pid = match joinable.target {
            Some(pid) => Some(PathBuf::from(format!("/proc/{pid}/ns/pid"))),
            None => self.pid_namespace(&sandbox.id, &options, user).await?,
        };
        let (key, sandbox_id) = (id.to_owned(), sandbox.id.clone());
        let record = self
            .on_files(id, move |inner| inner.write_container(&key, &sandbox, &config, joinable))
            .await?;
        self.state.lock().containers.insert(id.to_owned(), ContainerEntry::new(record));
        self.emit(&sandbox_id, id, ContainerEventType::ContainerCreatedEvent);
        Ok(())
    }

    /// The namespace that the pod's containers share, if this one is to be in it.
    async fn pid_namespace(
        &self,
        sandbox: &str,
        options: &NamespaceOption,
        user_namespace: Option<PathBuf>,
    ) -> Outcome<Option<PathBuf>> {
        match options.pid() {
            NamespaceMode::Pod => Ok(Some(self.shim(sandbox).pid_namespace(user_namespace).await?)),
            NamespaceMode::Container | NamespaceMode::Node | NamespaceMode::Target => Ok(None),
        }
    }

    /// The first process of the container whose processes are to be shared, if there is one.
    async fn target_process(
        &self,
        sandbox: &str,
        options: &NamespaceOption,
    ) -> Outcome<Option<u32>> {
        if options.pid() != NamespaceMode::Target {
            return Ok(None);
        }
        let target = &options.target_id;
        let reports = self.shim(sandbox).list().await?;
        let found = reports.iter().find(|report| report.container == *target);
        let pid = found.filter(|report| report.exit.is_none()).and_then(|it| it.pid);
        pid.map(Some).ok_or_else(|| EmbeddedRuntimeError::no_container(target))
    }

    /// The record comes last: a directory without one is what a crash left of an unfinished create.
    fn write_container(
        &self,
        id: &str,
        sandbox: &StoredSandbox,
        config: &ContainerConfig,
        namespaces: JoinableNamespaces,
    ) -> Outcome<StoredContainer> {
        let asked = config.image.clone().unwrap_or_default();
        let image = self.find_image(&asked.image)?;
        make_directory(&self.directory.container(id))?;
        let mapped = self.mapped_users(sandbox)?;
        let users = self.make_root(id, &image.id, mapped.as_ref())?;
        let context = security_context(config);
        let user = users.resolve(&context, &image.config.user)?;
        let ipc = context.namespace_options.unwrap_or_default().ipc();
        let mounts = self.make_mounts(id, config, mapped.as_ref())?;
        let (cgroup, target) = (sandbox.cgroup_parent.join(id), namespaces.target);
        let mut spec = spec(&SpecInput {
            config,
            mounts: &mounts,
            image: &image.config,
            user: &user,
            hostname: &sandbox.hostname,
            root: &self.directory.rootfs(id),
            cgroup: cgroup.clone(),
            pod_files: self.pod_files(sandbox, ipc),
            namespaces,
            user_namespace: sandbox.user_namespace.as_ref(),
            abilities: self.abilities,
            kernel: self.kernel,
            modules: SecurityModules::read(),
        })?;
        self.inject_devices(&mut spec, config, sandbox)?;
        write_json(&self.directory.spec(id), &spec)?;
        let record = self.new_container(id, sandbox, config, &image, user, cgroup);
        let record = StoredContainer { target, ..record };
        make_log_directory(&record.log_path)?;
        write_json(&self.directory.container_record(id), &record)?;
        Ok(record)
    }

    fn inject_devices(
        &self,
        spec: &mut Spec,
        config: &ContainerConfig,
        sandbox: &StoredSandbox,
    ) -> Outcome<()> {
        let names: Vec<String> = config.cdi_devices.iter().map(|it| it.name.clone()).collect();
        let abilities = SpecAbilities { hooks: !sandbox.handler.is_empty() };
        Ok(cdi::inject(spec, &names, &self.settings.cdi_directories, abilities)?)
    }

    fn new_container(
        &self,
        id: &str,
        sandbox: &StoredSandbox,
        config: &ContainerConfig,
        image: &StoredImage,
        user: ProcessUser,
        cgroup: PathBuf,
    ) -> StoredContainer {
        let metadata = config.metadata.clone().unwrap_or_default();
        let resources = config.linux.as_ref().and_then(|linux| linux.resources.as_ref());
        let log_path = match config.log_path.is_empty() {
            true => PathBuf::new(),
            false => sandbox.log_directory.join(&config.log_path),
        };
        StoredContainer {
            id: id.to_owned(),
            sandbox: sandbox.id.clone(),
            name: metadata.name,
            attempt: metadata.attempt,
            created_at: self.now(),
            started_at: None,
            exit: None,
            labels: config.labels.clone(),
            annotations: config.annotations.clone(),
            image: config.image.clone().unwrap_or_default().image,
            image_id: image.id.to_string(),
            image_digest: image.digests.first().cloned().unwrap_or_default(),
            log_path,
            mounts: StoredMount::all_of(config),
            resources: resources.map(StoredResources::of).unwrap_or_default(),
            user,
            stop_signal: stop_signal(config.stop_signal(), &image.config.stop_signal),
            stdin: config.stdin,
            stdin_once: config.stdin_once,
            tty: config.tty,
            cgroup,
            target: None,
        }
    }
}

fn make_log_directory(log: &Path) -> Outcome<()> {
    match log.parent().filter(|parent| !parent.as_os_str().is_empty()) {
        Some(parent) => {
            fs::create_dir_all(parent).map_err(failed("make the log directory", parent))
        }
        None => Ok(()),
    }
}
