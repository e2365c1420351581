//! Helpers of the test binaries: a rig to run on, and pods of one container.

use std::fs;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use libtest_mimic::{Arguments, Trial};
use oarsman_cri::{RemoteRuntime, Runtime};
use oarsman_cri_types::v1::{
    ContainerConfig, ContainerMetadata, CreateContainerRequest, ImageSpec, LinuxContainerConfig,
    LinuxContainerSecurityContext, LinuxPodSandboxConfig, LinuxSandboxSecurityContext,
    NamespaceMode, NamespaceOption, PodSandboxConfig, PodSandboxMetadata, PortMapping,
    RunPodSandboxRequest,
};
use oarsman_host::{cgroups, mounts};
use oarsman_rig::{Rig, RigOptions};

/// How long anything may take.
pub(crate) const MAX_WAIT: Duration = Duration::from_secs(30);
/// How often a condition is polled.
const POLL_INTERVAL: Duration = Duration::from_millis(10);

/// A test by its name.
pub(crate) type Case = (&'static str, fn(&Rig) -> Result<()>);

/// Runs the cases one at a time, all on one rig, which is stopped at the end.
pub(crate) fn run(cases: &[Case]) -> ExitCode {
    let arguments = Arguments { test_threads: Some(1), ..Arguments::from_args() };
    if arguments.list {
        return libtest_mimic::run(&arguments, trials(cases, None)).exit_code();
    }
    let rig = match block_on(Rig::start(RigOptions::default())) {
        Ok(rig) => Arc::new(rig),
        Err(error) => return print_error(&error),
    };
    let conclusion = libtest_mimic::run(&arguments, trials(cases, Some(&rig)));
    match block_on(rig.stop()) {
        Ok(()) => conclusion.exit_code(),
        Err(error) => print_error(&error),
    }
}

fn trials(cases: &[Case], rig: Option<&Arc<Rig>>) -> Vec<Trial> {
    let trial = |(name, case): &Case| {
        let (rig, case) = (rig.cloned(), *case);
        Trial::test(*name, move || {
            let rig = rig.ok_or("a list has no rig")?;
            case(&rig).map_err(|error| format!("{error:#}").into())
        })
    };
    cases.iter().map(trial).collect()
}

#[expect(clippy::print_stderr, reason = "this is a test's own main")]
fn print_error(error: &anyhow::Error) -> ExitCode {
    eprintln!("{error:#}");
    ExitCode::FAILURE
}

/// Runs a future to its end.
#[expect(clippy::expect_used, reason = "without a runtime no test can go on")]
pub(crate) fn block_on<T>(future: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.expect("a tokio runtime").block_on(future)
}

/// Polls until it is done, and fails if that takes too long.
pub(crate) async fn until(what: &str, mut done: impl AsyncFnMut() -> Result<bool>) -> Result<()> {
    let waiting = async {
        while !done().await? {
            tokio::time::sleep(POLL_INTERVAL).await;
        }
        Ok(())
    };
    tokio::time::timeout(MAX_WAIT, waiting).await.with_context(|| format!("not in time: {what}"))?
}

/// A pod of one container.
pub(crate) struct TestPod {
    client: RemoteRuntime,
    cgroup: PathBuf,
    /// The directory of the container's log `main.log`.
    pub(crate) logs: PathBuf,
    /// The sandbox's id.
    pub(crate) sandbox: String,
    /// The container's id.
    pub(crate) container: String,
}

impl TestPod {
    /// Starts a pod whose container has a pid namespace of its own.
    pub(crate) async fn start(rig: &Rig, name: &str, image: &str, script: &[&str]) -> Result<Self> {
        let pid = NamespaceMode::Container.into();
        let namespaces = NamespaceOption { pid, ..NamespaceOption::default() };
        Self::start_in(rig, name, image, script, namespaces).await
    }

    /// Starts a pod. It has a host port, so that there is a packet filter rule of its own.
    pub(crate) async fn start_in(
        rig: &Rig,
        name: &str,
        image: &str,
        script: &[&str],
        namespaces: NamespaceOption,
    ) -> Result<Self> {
        let client = rig.client()?;
        let cgroup = format!("{}/{name}", rig.cgroup_parent());
        let logs = rig.pod_logs().join(name);
        let config = PodSandboxConfig {
            metadata: Some(PodSandboxMetadata {
                name: name.to_owned(),
                uid: name.to_owned(),
                namespace: "rig".to_owned(),
                attempt: 0,
            }),
            log_directory: logs.display().to_string(),
            port_mappings: vec![PortMapping {
                container_port: 80,
                host_port: 8080,
                ..PortMapping::default()
            }],
            linux: Some(LinuxPodSandboxConfig {
                cgroup_parent: cgroup.clone(),
                security_context: Some(LinuxSandboxSecurityContext {
                    namespace_options: Some(namespaces.clone()),
                    ..LinuxSandboxSecurityContext::default()
                }),
                ..LinuxPodSandboxConfig::default()
            }),
            ..PodSandboxConfig::default()
        };
        let request = RunPodSandboxRequest { config: Some(config.clone()), ..Default::default() };
        let sandbox = client.run_pod_sandbox(request).await?;
        let container = ContainerConfig {
            metadata: Some(ContainerMetadata { name: "main".to_owned(), attempt: 0 }),
            image: Some(ImageSpec { image: image.to_owned(), ..ImageSpec::default() }),
            args: script.iter().map(|step| (*step).to_owned()).collect(),
            log_path: "main.log".to_owned(),
            linux: Some(LinuxContainerConfig {
                security_context: Some(LinuxContainerSecurityContext {
                    namespace_options: Some(namespaces),
                    ..LinuxContainerSecurityContext::default()
                }),
                ..LinuxContainerConfig::default()
            }),
            ..ContainerConfig::default()
        };
        let request = CreateContainerRequest {
            pod_sandbox_id: sandbox.clone(),
            config: Some(container),
            sandbox_config: Some(config),
        };
        let container = client.create_container(request).await?;
        client.start_container(&container).await?;
        Ok(Self { client, cgroup: cgroup.into(), logs, sandbox, container })
    }

    /// Removes the pod and what an agent would remove: its cgroup and its logs.
    pub(crate) async fn remove(self) -> Result<()> {
        self.client.stop_pod_sandbox(&self.sandbox).await?;
        self.client.remove_pod_sandbox(&self.sandbox).await?;
        for hierarchy in cgroups::hierarchies(&mounts::current()?) {
            until("the pod's cgroup goes", async || Ok(hierarchy.remove(&self.cgroup).is_ok()))
                .await?;
        }
        fs::remove_dir_all(&self.logs)?;
        Ok(())
    }
}
