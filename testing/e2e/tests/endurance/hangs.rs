//! Calls that are not answered: of the whole runtime for a minute, or of one pod until it is released.

use std::time::Duration;

use anyhow::{Result, ensure};
use oarsman_e2e::agent_process::AgentProcess;
use oarsman_e2e::inspect::{ObservedPod, eventually};
use oarsman_e2e::manifest::{PodManifest, pod, script_container};
use oarsman_e2e::proxy::{CallFilter, RuleAction};
use oarsman_e2e::scenario::ScenarioContext;
use tokio::time::{Instant, sleep};

use super::kills::MAX_WAIT;

const STOPPED: Duration = Duration::from_secs(60);

fn lasting(name: &str) -> PodManifest {
    pod(name)
        .with("terminationGracePeriodSeconds", 1)
        .container(script_container("main", &["forever"]))
}

async fn until_runs(cx: &ScenarioContext, name: &str) -> Result<ObservedPod> {
    let look = async || cx.inspector().pod(name).await;
    eventually(MAX_WAIT, &format!("{name} runs"), look, |pod| pod.runs("main")).await
}

pub(super) async fn while_containerd_is_stopped_only_pods_that_need_it_wait(
    cx: &ScenarioContext,
) -> Result<()> {
    let agent = cx.start(cx.setup()?.flag("sync-frequency", "5s"))?;
    let names = ["k0", "k1", "k2", "k3", "leaves"];
    for name in names {
        agent.apply(name, &lasting(name))?;
    }
    let mut before = Vec::new();
    for name in names {
        before.push(until_runs(cx, name).await?);
    }
    cx.rig().pause()?;
    agent.apply("comes", &lasting("comes"))?;
    agent.manifests().remove("leaves")?;
    sleep(STOPPED).await;
    let log = std::fs::read_to_string(agent.log())?;
    cx.rig().resume()?;
    ensure!(
        log.contains("runtime has not answered yet, still waiting"),
        "it does not say why:\n{log}"
    );
    until_runs(cx, "comes").await?;
    let look = async || cx.inspector().pod("leaves").await;
    eventually(MAX_WAIT, "the one that was removed is gone", look, ObservedPod::is_gone).await?;
    for (name, before) in names.iter().zip(&before).take(4) {
        let after = cx.inspector().pod(name).await?;
        ensure!(after.containers.len() == 1, "{after:#?}");
        ensure!(after.container("main")?.id == before.container("main")?.id, "{after:#?}");
    }
    Ok(())
}

/// How long it takes until all of the new pods run, and then until they are gone again.
async fn round_trip(cx: &ScenarioContext, agent: &AgentProcess) -> Result<Duration> {
    let names: Vec<String> = (0..10).map(|number| format!("p{number}")).collect();
    let began = Instant::now();
    for name in &names {
        agent.apply(name, &lasting(name))?;
    }
    let look = async || cx.inspector().pods().await;
    let running =
        |pods: &Vec<ObservedPod>| pods.iter().filter(|pod| pod.runs("main")).count() == 10;
    eventually(MAX_WAIT, "ten pods run", look, running).await?;
    for name in &names {
        agent.manifests().remove(name)?;
    }
    let gone = |pods: &Vec<ObservedPod>| !pods.iter().any(|pod| pod.runs("main"));
    eventually(MAX_WAIT, "they are gone", look, gone).await?;
    let took = began.elapsed();
    let all_gone = |pods: &Vec<ObservedPod>| pods.is_empty();
    eventually(MAX_WAIT, "nothing is left of them", look, all_gone).await?;
    Ok(took)
}

pub(super) async fn one_hung_sandbox_holds_up_no_other_pod(cx: &ScenarioContext) -> Result<()> {
    let (agent, proxy) = cx.agent_behind_proxy().await?;
    let alone = round_trip(cx, &agent).await?;
    let held = proxy
        .add_rule(CallFilter::all().named("RunPodSandbox").about("hung-node"), RuleAction::Hold);
    agent.apply("hung", &lasting("hung"))?;
    held.wait_until_held(1, MAX_WAIT).await?;
    let beside = round_trip(cx, &agent).await?;
    ensure!(beside < alone * 3 / 2 + Duration::from_secs(2), "{alone:?} alone, {beside:?} beside");
    ensure!(held.waiting() == 1, "the sandbox does not hang any more");
    held.release();
    until_runs(cx, "hung").await?;
    Ok(())
}
