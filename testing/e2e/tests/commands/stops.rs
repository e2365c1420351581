//! Stopping pods by asking.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Result, ensure};
use oarsman_e2e::look::always;
use oarsman_e2e::manifest::{actor, pod};
use oarsman_e2e::node::Node;
use oarsman_e2e::scenario::Stage;

use super::shows::until_shown;

fn guest(stage: &Stage, names: &[&str]) -> Result<Arc<Node>> {
    let agent = stage.prepare(stage.setup()?.as_guest())?;
    for name in names {
        let main = actor("main", &["forever"]);
        agent.apply(name, &pod(name).with("terminationGracePeriodSeconds", 2).container(main))?;
    }
    agent.start()?;
    Ok(agent)
}

pub(super) async fn a_guest_stops_a_pod_for_good(stage: &Stage) -> Result<()> {
    let agent = guest(stage, &["web", "db"])?;
    until_shown(&agent, &[&["web", "Running"], &["db", "Running"]]).await?;
    let said = agent.command(&["stop", "web"]).await?.well()?;
    ensure!(said == "Stopped web.\n", "{said}");
    ensure!(stage.look().pod("web").await?.is_gone(), "it is gone when stop returns");
    // Neither another look at the manifest nor a change of it brings it back.
    let main = actor("main", &["out:changed", "forever"]);
    agent.apply("web", &pod("web").container(main))?;
    let look = async || stage.look().pod("web").await;
    always(Duration::from_secs(2), "it stays away", look, |pod| pod.is_gone()).await?;
    ensure!(stage.look().pod("db").await?.runs("main"), "the other runs on");
    let refused = agent.command(&["stop", "web"]).await?.refusal()?;
    ensure!(refused.contains("there is no pod web"), "{refused}");
    Ok(())
}

pub(super) async fn a_guest_stops_all_and_ends(stage: &Stage) -> Result<()> {
    let agent = guest(stage, &["web", "db"])?;
    until_shown(&agent, &[&["web", "Running"], &["db", "Running"]]).await?;
    let said = agent.command(&["stop", "--all"]).await?.well()?;
    ensure!(said == "Stopped db, web; the agent has ended.\n", "{said}");
    ensure!(stage.look().pods().await?.is_empty(), "pods are gone when stop returns");
    ensure!(!agent.is_alive(), "the agent is gone when stop returns");
    ensure!(agent.exit_code() == Some(0), "{:?}", agent.exit_code());
    ensure!(!agent.root().join("oarsman.sock").exists(), "its socket goes with it");
    let refused = agent.command(&["ps"]).await?.refusal()?;
    ensure!(refused.contains("no agent answers in") && refused.contains("--root-dir"), "{refused}");
    Ok(())
}

pub(super) async fn a_kubelet_names_the_manifest_instead(stage: &Stage) -> Result<()> {
    let agent = stage.agent()?;
    agent.apply("web", &pod("web").container(actor("main", &["forever"])))?;
    until_shown(&agent, &[&["web-node", "Running"]]).await?;
    let file = agent.manifests().path().join("web.yaml").display().to_string();
    let refused = agent.command(&["stop", "web"]).await?.refusal()?;
    let want = format!("oarsman: pod web-node comes from {file}: remove that file to stop it\n");
    ensure!(refused == want, "{refused}");
    let refused = agent.command(&["stop", "--all"]).await?.refusal()?;
    ensure!(refused.contains(&file), "{refused}");
    ensure!(stage.look().pod("web").await?.runs("main"), "it runs on");
    Ok(())
}
