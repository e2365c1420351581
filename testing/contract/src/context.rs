//! The context of one case: makes pods under names of its own, and removes all of them afterwards.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use oarsman_cri::Runtime;
use oarsman_cri_types::v1::{
    ContainerConfig, ContainerMetadata, ContainerState, ContainerStatus, CreateContainerRequest,
    ImageSpec, KeyValue, LinuxPodSandboxConfig, LinuxSandboxSecurityContext, NamespaceMode,
    NamespaceOption, PodSandboxConfig, PodSandboxMetadata, RunPodSandboxRequest,
};
use tokio::time::{Instant, sleep};

use crate::Harness;

/// How long a container may take to do what its script says.
const MAX_WAIT: Duration = Duration::from_secs(20);
const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// The context of one case.
pub struct CaseContext {
    harness: Arc<dyn Harness>,
    name: &'static str,
    count: AtomicU32,
    sandboxes: Mutex<Vec<String>>,
}

/// A sandbox and the configuration it was made with.
#[derive(Clone, Debug)]
pub struct TestSandbox {
    /// The runtime's id.
    pub id: String,
    /// What it was made with.
    pub config: PodSandboxConfig,
}

impl CaseContext {
    pub(crate) fn new(harness: Arc<dyn Harness>, name: &'static str) -> Self {
        Self { harness, name, count: AtomicU32::new(0), sandboxes: Mutex::default() }
    }

    /// The harness.
    pub fn harness(&self) -> &dyn Harness {
        self.harness.as_ref()
    }

    /// The runtime under test.
    pub fn runtime(&self) -> Arc<dyn Runtime> {
        self.harness.runtime()
    }

    /// A configuration under a new name.
    pub fn sandbox_config(&self) -> PodSandboxConfig {
        let number = self.count.fetch_add(1, Ordering::Relaxed);
        let name = format!("{}-{number}", self.name.replace('_', "-"));
        let logs = self.directory().join(format!("logs-{number}"));
        let namespaces =
            NamespaceOption { pid: NamespaceMode::Container.into(), ..NamespaceOption::default() };
        PodSandboxConfig {
            metadata: Some(PodSandboxMetadata {
                uid: format!("uid-{name}"),
                name,
                namespace: "contract".to_owned(),
                attempt: 0,
            }),
            hostname: "stage".to_owned(),
            log_directory: logs.to_string_lossy().into_owned(),
            labels: BTreeMap::from([("case".to_owned(), self.name.to_owned())]),
            annotations: BTreeMap::from([("note".to_owned(), "kept".to_owned())]),
            linux: Some(LinuxPodSandboxConfig {
                cgroup_parent: self.harness.cgroup_parent(),
                security_context: Some(LinuxSandboxSecurityContext {
                    namespace_options: Some(namespaces),
                    ..LinuxSandboxSecurityContext::default()
                }),
                ..LinuxPodSandboxConfig::default()
            }),
            ..PodSandboxConfig::default()
        }
    }

    /// A directory on the host for this case alone.
    pub fn directory(&self) -> PathBuf {
        self.harness.directory().join(self.name)
    }

    /// Makes a sandbox.
    pub async fn pod(&self) -> Result<TestSandbox> {
        self.pod_with(self.sandbox_config()).await
    }

    /// Makes a sandbox of that configuration.
    pub async fn pod_with(&self, config: PodSandboxConfig) -> Result<TestSandbox> {
        let request = RunPodSandboxRequest { config: Some(config.clone()), ..Default::default() };
        let id = self.runtime().run_pod_sandbox(request).await?;
        self.remove_later(id.clone());
        Ok(TestSandbox { id, config })
    }

    /// A container's configuration: the image of `oarsman-script` with that script.
    pub fn script(&self, name: &str, script: &[&str]) -> ContainerConfig {
        ContainerConfig {
            metadata: Some(ContainerMetadata { name: name.to_owned(), attempt: 0 }),
            image: Some(image(&self.harness.images().script)),
            args: script.iter().map(|&step| step.to_owned()).collect(),
            labels: BTreeMap::from([("container".to_owned(), name.to_owned())]),
            annotations: BTreeMap::from([("restarts".to_owned(), "0".to_owned())]),
            log_path: format!("{name}.log"),
            ..ContainerConfig::default()
        }
    }

    /// Makes a container without starting it.
    pub async fn create(
        &self,
        pod: &TestSandbox,
        config: ContainerConfig,
    ) -> oarsman_cri::Result<String> {
        let request = CreateContainerRequest {
            pod_sandbox_id: pod.id.clone(),
            config: Some(config),
            sandbox_config: Some(pod.config.clone()),
        };
        self.runtime().create_container(request).await
    }

    /// Makes and starts a container.
    pub async fn start(&self, pod: &TestSandbox, config: ContainerConfig) -> Result<String> {
        let id = self.create(pod, config).await?;
        self.runtime().start_container(&id).await?;
        Ok(id)
    }

    /// Makes a pod with one started container `main` with that script.
    pub async fn run(&self, script: &[&str]) -> Result<(TestSandbox, String)> {
        let pod = self.pod().await?;
        let id = self.start(&pod, self.script("main", script)).await?;
        Ok((pod, id))
    }

    /// Makes a pod with a container that has written `ready` to its log, so that its signal handlers are installed.
    pub async fn run_until_ready(&self, script: &[&str]) -> Result<(TestSandbox, String)> {
        let (mut steps, last) = match script.split_last() {
            Some((last, before)) => (before.to_vec(), *last),
            None => bail!("a script has a step"),
        };
        steps.extend(["out:ready", last]);
        let (pod, id) = self.run(&steps).await?;
        self.until_log(&pod, "main.log", "ready").await?;
        Ok((pod, id))
    }

    /// Waits until the container has ended.
    pub async fn until_exited(&self, id: &str) -> Result<ContainerStatus> {
        let deadline = Instant::now() + MAX_WAIT;
        loop {
            let status = self.runtime().container_status(id).await?;
            if status.state() == ContainerState::ContainerExited {
                return Ok(status);
            }
            if Instant::now() > deadline {
                bail!("container {id} is {:?} and should have ended", status.state());
            }
            sleep(POLL_INTERVAL).await;
        }
    }

    /// The state of a container now.
    pub async fn state(&self, id: &str) -> Result<ContainerState> {
        Ok(self.runtime().container_status(id).await?.state())
    }

    /// A log file as it is now; empty before the runtime made it.
    pub async fn log(&self, pod: &TestSandbox, file: &str) -> Result<String> {
        let path = PathBuf::from(&pod.config.log_directory).join(file);
        match self.harness.read(&path).await {
            Ok(bytes) => Ok(String::from_utf8(bytes)?),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(String::new()),
            Err(error) => Err(error).with_context(|| path.display().to_string()),
        }
    }

    /// Waits until a log file holds that text, and returns all of it.
    pub async fn until_log(&self, pod: &TestSandbox, file: &str, text: &str) -> Result<String> {
        let deadline = Instant::now() + MAX_WAIT;
        loop {
            let log = self.log(pod, file).await?;
            if log.contains(text) {
                return Ok(log);
            }
            if Instant::now() > deadline {
                bail!("{file} should hold {text:?} and holds {log:?}");
            }
            sleep(POLL_INTERVAL).await;
        }
    }

    /// Has a sandbox removed after the case that was made without this context.
    pub fn remove_later(&self, id: String) {
        // A poisoned lock means that another part of this case failed; its list is still good.
        self.sandboxes.lock().unwrap_or_else(std::sync::PoisonError::into_inner).push(id);
    }

    /// Removes every sandbox of the case.
    pub(crate) async fn remove_all(&self) -> Result<()> {
        let lock = || self.sandboxes.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let sandboxes = std::mem::take(&mut *lock());
        for id in sandboxes {
            self.runtime().stop_pod_sandbox(&id).await?;
            self.runtime().remove_pod_sandbox(&id).await?;
        }
        Ok(())
    }
}

/// An image by its name.
pub(crate) fn image(name: &str) -> ImageSpec {
    ImageSpec { image: name.to_owned(), ..ImageSpec::default() }
}

/// An environment variable.
pub(crate) fn variable(key: &str, value: &str) -> KeyValue {
    KeyValue { key: key.to_owned(), value: value.as_bytes().to_vec() }
}

/// Fails unless the call said that the thing does not exist.
pub(crate) fn assert_gone<T: std::fmt::Debug>(result: &oarsman_cri::Result<T>) {
    assert!(result.as_ref().is_err_and(oarsman_cri::CriError::is_gone), "{result:?}");
}
