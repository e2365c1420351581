//! Calls that are not answered: of the whole runtime for a minute, or of one pod for as long as it takes.

use std::time::Duration;

use anyhow::{Result, ensure};
use oarsman_e2e::look::{PodSeen, eventually};
use oarsman_e2e::manifest::{Manifest, actor, pod};
use oarsman_e2e::node::Node;
use oarsman_e2e::proxy::{Deed, Which};
use oarsman_e2e::scenario::Stage;
use tokio::time::{Instant, sleep};

use super::deaths::PATIENCE;

const STOPPED: Duration = Duration::from_secs(60);

fn lasting(name: &str) -> Manifest {
    pod(name).with("terminationGracePeriodSeconds", 1).container(actor("main", &["forever"]))
}

async fn until_runs(stage: &Stage, name: &str) -> Result<PodSeen> {
    let look = async || stage.look().pod(name).await;
    eventually(PATIENCE, &format!("{name} runs"), look, |pod| pod.runs("main")).await
}

pub(super) async fn while_containerd_is_stopped_only_those_who_want_something_wait(
    stage: &Stage,
) -> Result<()> {
    let agent = stage.start(stage.setup()?.flag("sync-frequency", "5s"))?;
    let names = ["k0", "k1", "k2", "k3", "leaves"];
    for name in names {
        agent.apply(name, &lasting(name))?;
    }
    let mut before = Vec::new();
    for name in names {
        before.push(until_runs(stage, name).await?);
    }
    stage.rig().pause()?;
    agent.apply("comes", &lasting("comes"))?;
    agent.manifests().remove("leaves")?;
    sleep(STOPPED).await;
    let log = std::fs::read_to_string(agent.log())?;
    stage.rig().resume()?;
    ensure!(log.contains("the runtime has not answered yet"), "it does not say why:\n{log}");
    until_runs(stage, "comes").await?;
    let look = async || stage.look().pod("leaves").await;
    eventually(PATIENCE, "the one that was removed is gone", look, PodSeen::is_gone).await?;
    for (name, before) in names.iter().zip(&before).take(4) {
        let after = stage.look().pod(name).await?;
        ensure!(after.containers.len() == 1, "{after:#?}");
        ensure!(after.container("main")?.id == before.container("main")?.id, "{after:#?}");
    }
    Ok(())
}

/// How long it takes until so many pods run that are wanted at once, and then until they are gone again.
async fn round_trip(stage: &Stage, agent: &Node) -> Result<Duration> {
    let names: Vec<String> = (0..10).map(|number| format!("p{number}")).collect();
    let began = Instant::now();
    for name in &names {
        agent.apply(name, &lasting(name))?;
    }
    let look = async || stage.look().pods().await;
    let running = |pods: &Vec<PodSeen>| pods.iter().filter(|pod| pod.runs("main")).count() == 10;
    eventually(PATIENCE, "ten pods run", look, running).await?;
    for name in &names {
        agent.manifests().remove(name)?;
    }
    let gone = |pods: &Vec<PodSeen>| !pods.iter().any(|pod| pod.runs("main"));
    eventually(PATIENCE, "they are gone", look, gone).await?;
    let took = began.elapsed();
    let all_gone = |pods: &Vec<PodSeen>| pods.is_empty();
    eventually(PATIENCE, "nothing is left of them", look, all_gone).await?;
    Ok(took)
}

pub(super) async fn one_hung_sandbox_holds_up_nobody_else(stage: &Stage) -> Result<()> {
    let (agent, proxy) = stage.agent_behind_proxy().await?;
    let alone = round_trip(stage, &agent).await?;
    let held = proxy.when(Which::every().named("RunPodSandbox").about("hung-node"), Deed::Hold);
    agent.apply("hung", &lasting("hung"))?;
    held.until_waiting(1, PATIENCE).await?;
    let beside = round_trip(stage, &agent).await?;
    ensure!(beside < alone * 3 / 2 + Duration::from_secs(2), "{alone:?} alone, {beside:?} beside");
    ensure!(held.waiting() == 1, "the sandbox does not hang any more");
    held.release();
    until_runs(stage, "hung").await?;
    Ok(())
}
