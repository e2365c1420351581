//! The agent that is killed: it does one thing after the other, drawn from its seed.

use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use oarsman_clock::SystemClock;
use oarsman_cri::Runtime;
use oarsman_cri_types::v1::{
    Container, ContainerConfig, ContainerMetadata, ContainerState, CreateContainerRequest,
    ExecSyncRequest, ImageSpec, LinuxPodSandboxConfig, PodSandbox, PodSandboxConfig,
    PodSandboxMetadata, PodSandboxState, RunPodSandboxRequest,
};
use oarsman_rig::images;
use oarsman_runtime::{EmbeddedRuntime, EmbeddedRuntimeSettings};

use super::journal::{JournalWriter, KnownContainer};
use super::random::Random;
use super::until_exited;
use crate::harness::cgroup;

/// The program's first argument that makes it such an agent.
pub(crate) const AGENT: &str = "agent-to-be-killed";
const MOST_PODS: usize = 3;
const EXEC_CODE: i32 = 5;

/// The arguments are those after [`AGENT`]: the directory, the journal and the seed.
pub(crate) fn run(arguments: &[String]) -> ExitCode {
    let [root, journal, seed] = arguments else { return ExitCode::from(2) };
    let tokio = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let mut journal = JournalWriter::open(Path::new(journal)).unwrap();
    let result = tokio.block_on(work(Path::new(root), &mut journal, seed));
    if let Err(error) = result {
        journal.add(&format!("wrong {error:?}").replace('\n', " ")).unwrap();
    }
    ExitCode::FAILURE
}

struct KilledAgent<'a> {
    runtime: EmbeddedRuntime,
    root: &'a Path,
    journal: &'a mut JournalWriter,
    seed: &'a str,
    random: Random,
    count: u64,
}

async fn work(root: &Path, journal: &mut JournalWriter, seed: &str) -> Result<()> {
    let settings = EmbeddedRuntimeSettings::new(root, std::env::current_exe()?);
    let runtime = EmbeddedRuntime::open(settings, Arc::new(SystemClock::start())).await?;
    journal.add(&format!("opened {seed}"))?;
    let random = Random::new(seed.parse::<u64>()? + 1000);
    let mut agent = KilledAgent { runtime, root, journal, seed, random, count: 0 };
    loop {
        agent.step().await?;
    }
}

impl KilledAgent<'_> {
    async fn step(&mut self) -> Result<()> {
        let pods = self.runtime.list_pod_sandboxes(None).await?;
        let containers = self.runtime.list_containers(None).await?;
        match self.random.below(12) {
            _ if pods.is_empty() => self.add_pod().await,
            0 if pods.len() < MOST_PODS => self.add_pod().await,
            0 | 1 => self.remove_pod(&pods).await,
            2 | 3 => self.exec(&containers).await,
            4 => self.stop(&containers).await,
            5 | 6 => self.remove(&containers).await,
            _ => self.add_container(&pods).await,
        }
    }

    fn name(&mut self, kind: &str) -> String {
        self.count += 1;
        format!("{kind}-{}-{}", self.seed, self.count)
    }

    fn pick<'b, T>(&mut self, all: &'b [T]) -> Option<&'b T> {
        let at = self.random.below(u64::try_from(all.len()).unwrap_or(1));
        all.get(usize::try_from(at).unwrap_or(0))
    }

    fn pick_in(&mut self, all: &[Container], state: ContainerState) -> Option<Container> {
        let found: Vec<&Container> = all.iter().filter(|it| it.state() == state).collect();
        self.pick(&found).map(|found| (*found).clone())
    }

    async fn add_pod(&mut self) -> Result<()> {
        let name = self.name("pod");
        run_pod(&self.runtime, self.root, &name).await.map(drop)
    }

    async fn remove_pod(&mut self, pods: &[PodSandbox]) -> Result<()> {
        let Some(pod) = self.pick(pods) else { return Ok(()) };
        self.journal.add(&format!("remove-pod {}", name_of(pod)))?;
        self.runtime.stop_pod_sandbox(&pod.id).await?;
        Ok(self.runtime.remove_pod_sandbox(&pod.id).await?)
    }

    async fn add_container(&mut self, pods: &[PodSandbox]) -> Result<()> {
        // One whose removal was interrupted is not ready any more.
        let ready: Vec<&PodSandbox> =
            pods.iter().filter(|pod| pod.state() == PodSandboxState::SandboxReady).collect();
        let Some(pod) = self.pick(&ready) else { return Ok(()) };
        let name = self.name("c");
        let (count, code) = (self.random.below(12), i32::try_from(self.random.below(60))?);
        let known = KnownContainer::new(&name, &name_of(pod), count, code);
        self.journal.add(&format!("create {name} {} {count} {code}", known.pod))?;
        let config = pod_config(self.root, &known.pod);
        let id = create_container(&self.runtime, &pod.id, &config, &known).await?;
        self.journal.add(&format!("created {name} {id}"))?;
        self.runtime.start_container(&id).await?;
        Ok(self.journal.add(&format!("started {name}"))?)
    }

    async fn exec(&mut self, containers: &[Container]) -> Result<()> {
        let Some(container) = self.pick_in(containers, ContainerState::ContainerRunning) else {
            return Ok(());
        };
        let cmd = vec!["/script".to_owned(), format!("exit:{EXEC_CODE}")];
        let request = ExecSyncRequest { container_id: container.id.clone(), cmd, timeout: 20 };
        match self.runtime.exec_sync(request).await {
            Ok(done) => {
                // One whose container ends meanwhile ends with it.
                ensure!(
                    [EXEC_CODE, 137].contains(&done.exit_code),
                    "an exec gave {}",
                    done.exit_code
                );
                Ok(())
            }
            Err(error) => {
                // Its process may have ended, and that not be known yet.
                until_exited(&self.runtime, &container.id).await.context(error).map(drop)
            }
        }
    }

    async fn stop(&mut self, containers: &[Container]) -> Result<()> {
        let Some(container) = self.pick_in(containers, ContainerState::ContainerRunning) else {
            return Ok(());
        };
        self.journal.add(&format!("stop {}", container_name(&container)))?;
        let grace = Duration::from_secs(self.random.below(2));
        Ok(self.runtime.stop_container(&container.id, grace).await?)
    }

    async fn remove(&mut self, containers: &[Container]) -> Result<()> {
        let Some(container) = self.pick_in(containers, ContainerState::ContainerExited) else {
            return Ok(());
        };
        self.journal.add(&format!("remove {}", container_name(&container)))?;
        Ok(self.runtime.remove_container(&container.id).await?)
    }
}

fn name_of(pod: &PodSandbox) -> String {
    pod.metadata.clone().unwrap_or_default().name
}

fn container_name(container: &Container) -> String {
    container.metadata.clone().unwrap_or_default().name
}

fn pod_config(root: &Path, name: &str) -> PodSandboxConfig {
    let metadata = PodSandboxMetadata {
        name: name.to_owned(),
        uid: name.to_owned(),
        namespace: "default".to_owned(),
        attempt: 0,
    };
    let linux = LinuxPodSandboxConfig {
        cgroup_parent: cgroup().to_string_lossy().into_owned(),
        ..LinuxPodSandboxConfig::default()
    };
    PodSandboxConfig {
        metadata: Some(metadata),
        log_directory: root.join("logs").join(name).to_string_lossy().into_owned(),
        linux: Some(linux),
        ..PodSandboxConfig::default()
    }
}

/// Runs a pod of that name.
pub(super) async fn run_pod(
    runtime: &EmbeddedRuntime,
    root: &Path,
    name: &str,
) -> Result<(String, PodSandboxConfig)> {
    let config = pod_config(root, name);
    let request = RunPodSandboxRequest { config: Some(config.clone()), ..Default::default() };
    Ok((runtime.run_pod_sandbox(request).await.context("a pod")?, config))
}

/// Makes a container, and does not start it.
pub(super) async fn create_container(
    runtime: &EmbeddedRuntime,
    pod: &str,
    sandbox: &PodSandboxConfig,
    known: &KnownContainer,
) -> Result<String> {
    let config = ContainerConfig {
        metadata: Some(ContainerMetadata { name: known.name.clone(), attempt: 0 }),
        image: Some(ImageSpec { image: images::SCRIPT.to_owned(), ..ImageSpec::default() }),
        args: known.script(),
        log_path: format!("{}.log", known.name),
        ..ContainerConfig::default()
    };
    let request = CreateContainerRequest {
        pod_sandbox_id: pod.to_owned(),
        config: Some(config),
        sandbox_config: Some(sandbox.clone()),
    };
    runtime.create_container(request).await.context("a container")
}
