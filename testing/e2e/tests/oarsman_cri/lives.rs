//! The process ends, is killed or is held up, and containers go on.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use oarsman_cri::Runtime;
use oarsman_e2e::agent_process::AgentProcess;
use oarsman_e2e::inspect::{ObservedPod, eventually};
use oarsman_e2e::manifest::{PodManifest, pod, script_container};
use oarsman_e2e::notify_socket::{NotifySocket, is_ready_and_well};
use oarsman_e2e::program;
use oarsman_e2e::scenario::ScenarioContext;
use oarsman_host::processes;
use rustix::process::{Pid, Signal, kill_process};
use tokio::time::{Instant, sleep};

use super::MAX_WAIT;

/// Within this it has to end.
const ENDING: Duration = Duration::from_secs(2);
const PODS: [&str; 3] = ["p0", "p1", "p2"];
/// A pod that is started later.
const LATE: &str = "late";
/// What the writer writes: lines of 64 bytes for the time of the scenario.
const NUMBERS: &str = "numbers:6400/60s";

pub(super) fn lasting(name: &str, script: &[&str]) -> PodManifest {
    pod(name).with("terminationGracePeriodSeconds", 1).container(script_container("main", script))
}

/// The container of each pod, and its first process.
type FirstProcesses = BTreeMap<String, (String, u32)>;

async fn running(cx: &ScenarioContext) -> Result<FirstProcesses> {
    let mut found = BTreeMap::new();
    for pod in cx.inspector().pods().await? {
        if let Ok(container) = pod.container("main")
            && container.is_running()
        {
            let first = cx.inspector().processes(&container.id).await?.first().copied();
            let first = first.with_context(|| format!("{} has no process", container.id))?;
            found.insert(pod.sandbox()?.name.clone(), (container.id.clone(), first));
        }
    }
    Ok(found)
}

async fn start_pods(cx: &ScenarioContext, agent: &AgentProcess) -> Result<()> {
    for name in PODS {
        agent.apply(name, &lasting(name, &["on-term:ignore", "forever"]))?;
    }
    agent.apply("writer", &lasting("writer", &[NUMBERS, "forever"]))?;
    let all = async || running(cx).await;
    eventually(MAX_WAIT, "all pods run", all, |all| all.len() == PODS.len() + 1).await.map(drop)
}

/// Starts one more pod.
async fn start_late(cx: &ScenarioContext, agent: &AgentProcess) -> Result<()> {
    agent.apply(LATE, &lasting(LATE, &["forever"]))?;
    let late = async || cx.inspector().pod(LATE).await;
    let runs = |pod: &ObservedPod| pod.runs("main");
    eventually(MAX_WAIT, "a new pod runs", late, runs).await.map(drop)
}

/// That all others run as before.
async fn ensure_undisturbed(cx: &ScenarioContext, before: &FirstProcesses) -> Result<()> {
    let mut after = running(cx).await?;
    after.retain(|pod, _| before.contains_key(pod));
    ensure!(after == *before, "{before:?}\n{after:?}");
    Ok(())
}

/// That the lines of the writer have no gap and go on.
async fn lines_go_on(cx: &ScenarioContext) -> Result<()> {
    let lines = async || Ok(cx.inspector().pod("writer").await?.container("main")?.log_texts()?);
    let before = lines().await?.len();
    let after = eventually(MAX_WAIT, "more lines", lines, |lines| lines.len() > before).await?;
    for (at, line) in after.iter().enumerate() {
        ensure!(line.parse::<usize>()? == at + 1, "line {} is {line}", at + 1);
    }
    Ok(())
}

pub(super) async fn it_ends_within_two_seconds_and_finds_what_runs_again(
    cx: &ScenarioContext,
) -> Result<()> {
    let agent = cx.agent()?;
    start_pods(cx, &agent).await?;
    let before = running(cx).await?;
    // A call that would take long is under way.
    let (client, slow) = (cx.rig().client()?, before["p0-node"].0.clone());
    let stopping = tokio::spawn(async move { client.stop_container(&slow, MAX_WAIT).await });
    sleep(Duration::from_millis(300)).await;
    let began = Instant::now();
    let status = cx.rig().terminate(MAX_WAIT).await?;
    let took = began.elapsed();
    ensure!(status.success(), "it ended with {status}");
    ensure!(took < ENDING, "it took {took:?}");
    ensure!(!cx.rig().socket().exists(), "its socket is still there");
    stopping.await?.err().context("the call was cut off")?;
    for (pod, (_, pid)) in &before {
        ensure!(processes::find(*pid).is_some(), "{pod} ended with it");
    }
    cx.rig().restart().await?;
    ensure!(running(cx).await? == before, "{before:?}");
    lines_go_on(cx).await?;
    // The agent finds it again, too.
    start_late(cx, &agent).await?;
    ensure_undisturbed(cx, &before).await
}

pub(super) async fn killed_and_stopped_it_disturbs_no_container(
    cx: &ScenarioContext,
) -> Result<()> {
    let agent = cx.agent()?;
    start_pods(cx, &agent).await?;
    let before = running(cx).await?;
    for round in 0..3 {
        cx.rig().kill()?;
        sleep(Duration::from_millis(100 * round)).await;
        cx.rig().restart().await?;
    }
    cx.rig().pause()?;
    agent.apply(LATE, &lasting(LATE, &["forever"]))?;
    sleep(Duration::from_secs(2)).await;
    cx.rig().resume()?;
    start_late(cx, &agent).await?;
    ensure_undisturbed(cx, &before).await?;
    lines_go_on(cx).await
}

/// A second `oarsman cri`, which is killed when this is dropped.
pub(super) struct SecondProcess(pub(super) Child);

impl SecondProcess {
    pub(super) fn start(listen: &PathBuf, root: &PathBuf, notify: &PathBuf) -> Result<Self> {
        let mut command = Command::new(program::path()?);
        command.arg("cri").arg("--listen").arg(listen).arg("--root-dir").arg(root);
        command.env("NOTIFY_SOCKET", notify).env("WATCHDOG_USEC", "400000");
        let command = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        Ok(Self(command.spawn()?))
    }
}

impl Drop for SecondProcess {
    fn drop(&mut self) {
        self.0.kill().ok();
        self.0.wait().ok();
    }
}

pub(super) async fn systemd_is_notified_that_it_is_ready_and_well(
    cx: &ScenarioContext,
) -> Result<()> {
    let place = |name: &str| cx.scratch().join(name);
    let mut heard = NotifySocket::bind(&place("notify"))?;
    let mut process = SecondProcess::start(&place("cri.sock"), &place("root"), &place("notify"))?;
    let words = async || Ok(heard.so_far());
    eventually(MAX_WAIT, "it is ready and well", words, |words| is_ready_and_well(words)).await?;
    kill_process(Pid::from_child(&process.0), Signal::TERM)?;
    let ended = async || Ok(process.0.try_wait()?);
    let status = eventually(ENDING, "it ends", ended, Option::is_some).await?;
    ensure!(status.is_some_and(|status| status.success()), "{status:?}");
    let words = heard.so_far();
    ensure!(words.last().is_some_and(|word| word == "STOPPING=1"), "{words:?}");
    Ok(())
}
