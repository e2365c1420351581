//! `oarsman stop` with `oarsman run` and with a kubelet.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Result, ensure};
use oarsman_e2e::agent_process::AgentProcess;
use oarsman_e2e::inspect::always;
use oarsman_e2e::manifest::{pod, script_container};
use oarsman_e2e::scenario::ScenarioContext;

use super::shows::until_shown;

fn run_mode(cx: &ScenarioContext, names: &[&str]) -> Result<Arc<AgentProcess>> {
    let agent = cx.prepare(cx.setup()?.in_run_mode())?;
    for name in names {
        let main = script_container("main", &["forever"]);
        agent.apply(name, &pod(name).with("terminationGracePeriodSeconds", 2).container(main))?;
    }
    agent.start()?;
    Ok(agent)
}

pub(super) async fn run_mode_stops_a_pod_for_good(cx: &ScenarioContext) -> Result<()> {
    let agent = run_mode(cx, &["web", "db"])?;
    until_shown(&agent, &[&["web", "Running"], &["db", "Running"]]).await?;
    let said = agent.command(&["stop", "web"]).await?.success()?;
    ensure!(said == "Stopped web.\n", "{said}");
    ensure!(cx.inspector().pod("web").await?.is_gone(), "it is gone when stop returns");
    // Neither a rescan of the manifest nor a change of it brings the pod back.
    let main = script_container("main", &["out:changed", "forever"]);
    agent.apply("web", &pod("web").container(main))?;
    let look = async || cx.inspector().pod("web").await;
    always(Duration::from_secs(2), "it stays away", look, |pod| pod.is_gone()).await?;
    ensure!(cx.inspector().pod("db").await?.runs("main"), "the other runs on");
    let refused = agent.command(&["stop", "web"]).await?.failure()?;
    ensure!(refused.contains("there is no pod web"), "{refused}");
    Ok(())
}

pub(super) async fn run_mode_stops_all_pods_and_ends(cx: &ScenarioContext) -> Result<()> {
    let agent = run_mode(cx, &["web", "db"])?;
    until_shown(&agent, &[&["web", "Running"], &["db", "Running"]]).await?;
    let said = agent.command(&["stop", "--all"]).await?.success()?;
    ensure!(said == "Stopped db, web; the agent has ended.\n", "{said}");
    ensure!(cx.inspector().pods().await?.is_empty(), "pods are gone when stop returns");
    ensure!(!agent.is_alive(), "the agent is gone when stop returns");
    ensure!(agent.exit_code() == Some(0), "{:?}", agent.exit_code());
    ensure!(!agent.root().join("oarsman.sock").exists(), "its socket goes with it");
    let refused = agent.command(&["ps"]).await?.failure()?;
    ensure!(refused.contains("no agent answers in") && refused.contains("--root-dir"), "{refused}");
    Ok(())
}

pub(super) async fn a_kubelet_names_the_manifest_instead(cx: &ScenarioContext) -> Result<()> {
    let agent = cx.agent()?;
    agent.apply("web", &pod("web").container(script_container("main", &["forever"])))?;
    until_shown(&agent, &[&["web-node", "Running"]]).await?;
    let file = agent.manifests().path().join("web.yaml").display().to_string();
    let refused = agent.command(&["stop", "web"]).await?.failure()?;
    let want = format!("oarsman: pod web-node comes from {file}: remove that file to stop it\n");
    ensure!(refused == want, "{refused}");
    let refused = agent.command(&["stop", "--all"]).await?.failure()?;
    ensure!(refused.contains(&file), "{refused}");
    ensure!(cx.inspector().pod("web").await?.runs("main"), "it runs on");
    Ok(())
}
