//! Agents and shims that are killed at moments drawn from a seed, again and again: nothing is lost, no exit code is wrong, every line is there.
//!
//! The agent is this program executed again (`agent`): it makes pods and containers until it is killed, and keeps a journal of what it has begun and
//! what it was told. Between two agents this process looks at what is there by a runtime of its own.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use libtest_mimic::{Failed, Trial};
use oarsman_cri::Runtime;
use oarsman_cri_types::v1::{ContainerState, PodSandboxState};
use oarsman_runtime::EmbeddedRuntime;
use tokio::runtime::Handle;
use tokio::time::{Instant, sleep};

mod agent;
mod journal;
mod random;

pub(crate) use agent::{AGENT, run as run_agent};
use agent::{create_container, run_pod};
use journal::{Journal, KnownContainer};
use random::Random;

use crate::harness::{CGROUP, Node, cgroup};
use crate::reconnect::{kill, shim_of};

/// An agent lives at most so long.
const LONGEST_LIFE_MS: u64 = 900;
/// How long a container may run at most, and be killed.
const MAX_WAIT: Duration = Duration::from_secs(60);

pub(crate) fn trials(node: &Node, tokio: &Handle) -> Vec<Trial> {
    let trial = |name: &'static str, deadline: Duration, what: KillTest| {
        let (node, tokio) = (node.clone(), tokio.clone());
        Trial::test(format!("kills::{name}"), move || {
            let test = async {
                match what {
                    KillTest::Agents(rounds) => kill_agents(&node, name, rounds).await,
                    KillTest::Shims(rounds) => kill_shims(&node, name, rounds).await,
                }
            };
            let done = tokio.block_on(async { tokio::time::timeout(deadline, test).await });
            done.map_err(Failed::from)?.map_err(|error| Failed::from(format!("{error:?}")))
        })
    };
    let (short, long) = (Duration::from_secs(100), Duration::from_secs(1800));
    vec![
        trial("an_agent_killed_8_times_loses_nothing", short, KillTest::Agents(8)),
        trial("a_shim_killed_4_times_leaves_what_was_written", short, KillTest::Shims(4)),
        trial("an_agent_killed_200_times_loses_nothing", long, KillTest::Agents(200))
            .with_ignored_flag(true),
        trial("a_shim_killed_50_times_leaves_what_was_written", long, KillTest::Shims(50))
            .with_ignored_flag(true),
    ]
}

#[derive(Clone, Copy)]
enum KillTest {
    Agents(u64),
    Shims(u64),
}

async fn kill_agents(node: &Node, name: &str, rounds: u64) -> Result<()> {
    let root = node.path().join(name);
    let journal = node.path().join(format!("{name}.journal"));
    drop(node.with_images(name).await?);
    let mut random = Random::new(rounds);
    for round in 0..rounds {
        let life = Duration::from_millis(random.below(LONGEST_LIFE_MS));
        let killed = match round % 4 {
            3 => KilledWhile::Opening,
            _ => KilledWhile::Working,
        };
        live(&root, &journal, (round, killed), life)
            .await
            .with_context(|| format!("round {round}"))?;
        if round % 8 == 7 || round + 1 == rounds {
            let runtime = node.open(name).await?;
            check(&runtime, &root, &journal).await.with_context(|| format!("round {round}"))?;
        }
    }
    let runtime = node.open(name).await?;
    for pod in runtime.list_pod_sandboxes(None).await? {
        runtime.remove_pod_sandbox(&pod.id).await?;
    }
    ensure!(runtime.list_containers(None).await?.is_empty());
    ensure!(runtime.images().roots()?.is_empty());
    node.close_later(runtime);
    Ok(())
}

/// What an agent is doing at the most when it is killed.
#[derive(Clone, Copy, PartialEq, Eq)]
enum KilledWhile {
    /// It looks for what the one before has left, and removes what was unfinished.
    Opening,
    Working,
}

/// One agent, from its start to its kill.
async fn live(
    root: &Path,
    journal: &Path,
    (seed, killed): (u64, KilledWhile),
    life: Duration,
) -> Result<()> {
    let mut command = Command::new(std::env::current_exe()?);
    command.arg(AGENT).arg(root).arg(journal).arg(seed.to_string());
    command.env(CGROUP, cgroup());
    let mut agent = command.stdin(Stdio::null()).spawn()?;
    // Its life begins when it has opened its directory, at the latest after that many milliseconds more.
    let deadline = Instant::now() + MAX_WAIT;
    let opened = format!("opened {seed}");
    while killed == KilledWhile::Working && !Journal::read(journal)?.has(&opened) {
        let has_ended = agent.try_wait()?.is_some();
        ensure!(!has_ended, "the agent has ended: {:?}", Journal::read(journal)?.complaints());
        ensure!(Instant::now() < deadline, "the agent does not open its directory");
        sleep(Duration::from_millis(5)).await;
    }
    sleep(life).await;
    let has_ended = agent.try_wait()?.is_some();
    ensure!(!has_ended, "the agent has ended: {:?}", Journal::read(journal)?.complaints());
    agent.kill()?;
    agent.wait()?;
    Ok(())
}

/// Waits until all containers have ended, and compares them with what the agents were told.
async fn check(runtime: &EmbeddedRuntime, root: &Path, journal: &Path) -> Result<()> {
    let journal = Journal::read(journal)?;
    ensure!(journal.complaints().is_empty(), "{:?}", journal.complaints());
    for container in journal.containers() {
        let Some(id) = container.id.as_deref().filter(|_| !container.is_removed) else { continue };
        let status = runtime.container_status(id).await.context("a container is lost")?;
        if status.state() == ContainerState::ContainerCreated {
            ensure!(!container.is_started, "{container:?} was started");
            continue;
        }
        let status = until_exited(runtime, id).await?;
        if container.is_stopped {
            continue;
        }
        ensure!(status.exit_code == container.code, "{container:?} {status:?}");
        let log = root.join("logs").join(&container.pod).join(format!("{}.log", container.name));
        ensure!(lines(&log)? == container.lines(), "{container:?} {:?}", lines(&log)?);
    }
    Ok(())
}

async fn until_exited(
    runtime: &EmbeddedRuntime,
    id: &str,
) -> Result<oarsman_cri_types::v1::ContainerStatus> {
    let deadline = Instant::now() + MAX_WAIT;
    loop {
        let status = runtime.container_status(id).await?;
        if status.state() == ContainerState::ContainerExited {
            return Ok(status);
        }
        ensure!(Instant::now() < deadline, "container {id} does not end");
        sleep(Duration::from_millis(10)).await;
    }
}

/// The texts of a log's lines.
fn lines(log: &Path) -> Result<Vec<String>> {
    let text = fs::read_to_string(log).with_context(|| log.display().to_string())?;
    let line = |line: &str| line.splitn(4, ' ').nth(3).map(str::to_owned);
    Ok(text.lines().filter_map(line).collect())
}

async fn kill_shims(node: &Node, name: &str, rounds: u64) -> Result<()> {
    let runtime = node.with_images(name).await?;
    let root = node.path().join(name);
    let mut random = Random::new(rounds);
    for round in 0..rounds {
        let pod = format!("pod-{round}");
        let (id, config) = run_pod(&runtime, &root, &pod).await?;
        let mut containers = Vec::new();
        for number in 0..=random.below(2) {
            let known = KnownContainer::new(&format!("c-{number}"), &pod, 5, 0).lasting();
            let container = create_container(&runtime, &id, &config, &known).await?;
            runtime.start_container(&container).await?;
            containers.push((known, container));
        }
        sleep(Duration::from_millis(random.below(200))).await;
        let written = written_lines(&root, &containers)?;
        kill(shim_of(&id)?)?;
        for (_, container) in &containers {
            let status = until_exited(&runtime, container).await?;
            ensure!(
                status.exit_code == 137 && status.reason == "ContainerStatusUnknown",
                "{status:?}"
            );
        }
        let after = written_lines(&root, &containers)?;
        for (before, after) in written.iter().zip(&after) {
            ensure!(after.starts_with(before), "round {round}: {before:?} {after:?}");
        }
        let deadline = Instant::now() + MAX_WAIT;
        while runtime.pod_sandbox_status(&id).await?.state() == PodSandboxState::SandboxReady {
            ensure!(Instant::now() < deadline, "the sandbox without a shim is ready");
            sleep(Duration::from_millis(5)).await;
        }
        runtime.remove_pod_sandbox(&id).await?;
    }
    ensure!(runtime.list_containers(None).await?.is_empty());
    ensure!(runtime.images().roots()?.is_empty());
    node.close_later(runtime);
    Ok(())
}

fn written_lines(root: &Path, containers: &[(KnownContainer, String)]) -> Result<Vec<Vec<String>>> {
    let of = |(known, _): &(KnownContainer, String)| {
        lines(&root.join("logs").join(&known.pod).join(format!("{}.log", known.name)))
    };
    containers.iter().map(of).collect()
}
