//! Runtimes that end and come back, and shims that are killed.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use libtest_mimic::{Failed, Trial};
use oarsman_cri::Runtime;
use oarsman_cri_types::v1::{
    ContainerConfig, ContainerMetadata, ContainerState, ContainerStatus, CreateContainerRequest,
    ImageSpec, LinuxPodSandboxConfig, PodSandboxConfig, PodSandboxMetadata, PodSandboxState,
    RunPodSandboxRequest,
};
use oarsman_host::processes;
use oarsman_rig::images;
use oarsman_runtime::EmbeddedRuntime;
use rustix::process::{Pid, Signal, kill_process};
use tokio::runtime::Handle;

use crate::harness::{Node, cgroup};

const FAMILY: &str = "reconnect";
const DEADLINE: Duration = Duration::from_secs(90);

pub(crate) fn trials(node: &Node, tokio: &Handle) -> Vec<Trial> {
    vec![
        trial(node, tokio, FAMILY, "a_new_runtime_finds_what_runs_and_what_has_ended", find_again),
        trial(node, tokio, FAMILY, "a_killed_shim_ends_its_containers", kill_shim),
        trial(node, tokio, FAMILY, "a_shim_killed_between_two_runtimes_is_noticed", kill_between),
        trial(node, tokio, FAMILY, "a_shim_that_does_not_answer_keeps_its_containers", stop_shim),
        trial(node, tokio, FAMILY, "what_an_interrupted_call_has_left_is_removed", unfinished),
    ]
}

pub(crate) fn trial<F: Future<Output = Result<()>> + Send>(
    node: &Node,
    tokio: &Handle,
    family: &str,
    name: &'static str,
    test: impl FnOnce(Node, &'static str) -> F + Send + 'static,
) -> Trial {
    let (node, tokio) = (node.clone(), tokio.clone());
    Trial::test(format!("{family}::{name}"), move || {
        let done = tokio.block_on(async { tokio::time::timeout(DEADLINE, test(node, name)).await });
        done.map_err(Failed::from)?.map_err(|error| Failed::from(format!("{error:?}")))
    })
}

/// The configuration of a pod.
pub(crate) fn pod_config() -> PodSandboxConfig {
    let metadata = PodSandboxMetadata {
        name: "web".to_owned(),
        uid: "1".to_owned(),
        namespace: "default".to_owned(),
        attempt: 0,
    };
    let linux = LinuxPodSandboxConfig {
        cgroup_parent: cgroup().to_string_lossy().into_owned(),
        ..LinuxPodSandboxConfig::default()
    };
    PodSandboxConfig { metadata: Some(metadata), linux: Some(linux), ..Default::default() }
}

pub(crate) async fn run_pod(runtime: &EmbeddedRuntime) -> Result<(String, PodSandboxConfig)> {
    let config = pod_config();
    let request = RunPodSandboxRequest { config: Some(config.clone()), ..Default::default() };
    Ok((runtime.run_pod_sandbox(request).await?, config))
}

async fn create(
    runtime: &EmbeddedRuntime,
    pod: &str,
    name: &str,
    script: &[&str],
) -> Result<String> {
    let config = ContainerConfig {
        metadata: Some(ContainerMetadata { name: name.to_owned(), attempt: 0 }),
        image: Some(ImageSpec { image: images::SCRIPT.to_owned(), ..ImageSpec::default() }),
        args: script.iter().map(|step| (*step).to_owned()).collect(),
        ..ContainerConfig::default()
    };
    let pod_sandbox_id = pod.to_owned();
    let request =
        CreateContainerRequest { pod_sandbox_id, config: Some(config), sandbox_config: None };
    Ok(runtime.create_container(request).await?)
}

async fn start(
    runtime: &EmbeddedRuntime,
    pod: &str,
    name: &str,
    script: &[&str],
) -> Result<String> {
    let id = create(runtime, pod, name, script).await?;
    runtime.start_container(&id).await?;
    Ok(id)
}

pub(crate) async fn until_exited(runtime: &EmbeddedRuntime, id: &str) -> Result<ContainerStatus> {
    loop {
        let status = runtime.container_status(id).await?;
        if status.state() == ContainerState::ContainerExited {
            return Ok(status);
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

pub(crate) async fn remove(node: &Node, runtime: EmbeddedRuntime, pod: &str) -> Result<()> {
    runtime.remove_pod_sandbox(pod).await?;
    ensure!(runtime.list_containers(None).await?.is_empty());
    ensure!(runtime.images().roots()?.is_empty());
    node.close_later(runtime);
    Ok(())
}

/// The shim of a pod, by the directory among its arguments.
pub(crate) fn shim_of(pod: &str) -> Result<u32> {
    let is_shim = |pid: u32| {
        let arguments = processes::arguments(pid);
        arguments.get(2).is_some_and(|call| call == "serve")
            && arguments.get(3).is_some_and(|path| path.to_string_lossy().ends_with(pod))
    };
    let found = processes::list()?.into_iter().find(|process| is_shim(process.pid));
    Ok(found.context("the pod has a shim")?.pid)
}

pub(crate) fn kill(pid: u32) -> Result<()> {
    send(pid, Signal::KILL)
}

fn send(pid: u32, signal: Signal) -> Result<()> {
    let pid = Pid::from_raw(i32::try_from(pid)?).context("a pid")?;
    Ok(kill_process(pid, signal)?)
}

async fn find_again(node: Node, name: &'static str) -> Result<()> {
    let first = node.with_images(name).await?;
    let (pod, config) = run_pod(&first).await?;
    let lasting = start(&first, &pod, "lasting", &["forever"]).await?;
    let brief = start(&first, &pod, "brief", &["sleep:300ms", "exit:7"]).await?;
    let waiting = create(&first, &pod, "waiting", &["forever"]).await?;
    let before = first.container_status(&lasting).await?;
    drop(first);
    tokio::time::sleep(Duration::from_millis(600)).await;
    let second = node.open(name).await?;
    ensure!(second.container_status(&lasting).await? == before);
    ensure!(until_exited(&second, &brief).await?.exit_code == 7);
    ensure!(second.container_status(&waiting).await?.state() == ContainerState::ContainerCreated);
    let again = RunPodSandboxRequest { config: Some(config), ..Default::default() };
    ensure!(second.run_pod_sandbox(again).await.is_err(), "its name is still reserved");
    second.start_container(&waiting).await?;
    second.stop_container(&lasting, Duration::ZERO).await?;
    ensure!(second.container_status(&lasting).await?.exit_code == 137);
    remove(&node, second, &pod).await
}

/// As one does whose disk hangs, or that is traced: what it holds runs on, and is known again when it answers.
async fn stop_shim(node: Node, name: &'static str) -> Result<()> {
    let first = node.with_images(name).await?;
    let (pod, _) = run_pod(&first).await?;
    let lasting = start(&first, &pod, "lasting", &["forever"]).await?;
    let brief = start(&first, &pod, "brief", &["sleep:300ms", "exit:7"]).await?;
    let shim = shim_of(&pod)?;
    drop(first);
    send(shim, Signal::STOP)?;
    let opened = node.open(name).await;
    // Whatever is found, it has to go on, or nothing here could be removed.
    let second = match opened {
        Ok(second) => second,
        Err(error) => return send(shim, Signal::CONT).and(Err(error)),
    };
    let status = second.container_status(&lasting).await?;
    let sandbox = second.pod_sandbox_status(&pod).await?;
    send(shim, Signal::CONT)?;
    ensure!(status.state() == ContainerState::ContainerRunning, "{status:?}");
    ensure!(sandbox.state() == PodSandboxState::SandboxReady, "{sandbox:?}");
    ensure!(until_exited(&second, &brief).await?.exit_code == 7);
    ensure!(second.container_status(&lasting).await?.state() == ContainerState::ContainerRunning);
    second.stop_container(&lasting, Duration::ZERO).await?;
    ensure!(second.container_status(&lasting).await?.exit_code == 137);
    remove(&node, second, &pod).await
}

async fn kill_shim(node: Node, name: &'static str) -> Result<()> {
    let runtime = node.with_images(name).await?;
    let (pod, _) = run_pod(&runtime).await?;
    let id = start(&runtime, &pod, "main", &["forever"]).await?;
    kill(shim_of(&pod)?)?;
    let status = until_exited(&runtime, &id).await?;
    assert_eq!((status.exit_code, status.reason.as_str()), (137, "ContainerStatusUnknown"));
    while runtime.pod_sandbox_status(&pod).await?.state() == PodSandboxState::SandboxReady {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    ensure!(create(&runtime, &pod, "next", &["forever"]).await.is_err());
    remove(&node, runtime, &pod).await
}

async fn kill_between(node: Node, name: &'static str) -> Result<()> {
    let first = node.with_images(name).await?;
    let (pod, _) = run_pod(&first).await?;
    let id = start(&first, &pod, "main", &["forever"]).await?;
    drop(first);
    kill(shim_of(&pod)?)?;
    let second = node.open(name).await?;
    let status = second.container_status(&id).await?;
    assert_eq!((status.exit_code, status.reason.as_str()), (137, "ContainerStatusUnknown"));
    let state = second.pod_sandbox_status(&pod).await?.state();
    assert_eq!(state, PodSandboxState::SandboxNotready);
    remove(&node, second, &pod).await
}

async fn unfinished(node: Node, name: &'static str) -> Result<()> {
    let first = node.with_images(name).await?;
    let (pod, _) = run_pod(&first).await?;
    let id = create(&first, &pod, "main", &["forever"]).await?;
    drop(first);
    // As a kill leaves them: the container before its record, the sandbox before it was ready.
    let root = node.path().join(name);
    std::fs::remove_file(root.join("containers").join(&id).join("container.json"))?;
    let record = root.join("sandboxes").join(&pod).join("sandbox.json");
    let text = std::fs::read_to_string(&record)?.replace("\"ready\"", "\"making\"");
    std::fs::write(&record, text)?;
    let second = node.open(name).await?;
    ensure!(second.list_pod_sandboxes(None).await?.is_empty());
    ensure!(second.list_containers(None).await?.is_empty());
    let (again, _) = run_pod(&second).await?;
    remove(&node, second, &again).await
}
