//! The output of `ps`, `top`, `describe` and `events`.

use anyhow::{Context, Result, ensure};
use oarsman_e2e::agent_process::AgentProcess;
use oarsman_e2e::inspect::eventually;
use oarsman_e2e::manifest::{pod, script_container};
use oarsman_e2e::scenario::ScenarioContext;
use serde_json::json;

use super::MAX_WAIT;

/// Waits until `ps` prints a line with each of these sets of words.
pub(super) async fn until_shown(agent: &AgentProcess, lines: &[&[&str]]) -> Result<String> {
    let ps = async || agent.command(&["ps"]).await?.success();
    let has = |text: &str, words: &[&str]| {
        text.lines()
            .any(|line| words.iter().all(|word| line.split_whitespace().any(|it| it == *word)))
    };
    let wanted = |text: &String| lines.iter().all(|words| has(text, words));
    eventually(MAX_WAIT, &format!("ps shows {lines:?}"), ps, wanted).await
}

pub(super) async fn containers_and_the_node_are_measured_without_a_cluster(
    cx: &ScenarioContext,
) -> Result<()> {
    let agent = cx.agent()?;
    let holder = script_container("holder", &["alloc:64Mi", "out:held", "forever"]);
    agent.apply("web", &pod("web").container(holder))?;
    until_shown(&agent, &[&["web-node", "1/1", "Running"]]).await?;
    let top = async || agent.command(&["top"]).await?.success();
    let bytes = |text: &str| -> Option<u64> {
        let line = text.lines().find(|line| line.starts_with("web-node"))?;
        line.split_whitespace().last()?.strip_suffix("Mi")?.parse().ok()
    };
    let is_held = |text: &String| bytes(text).is_some_and(|bytes| (64..80).contains(&bytes));
    let shown = eventually(MAX_WAIT, "top shows what the container holds", top, is_held).await?;
    ensure!(shown.starts_with("POD ") && shown.contains("holder"), "{shown}");
    let node = agent.command(&["top", "node", "-o", "json"]).await?.success()?;
    let node: serde_json::Value = serde_json::from_str(&node)?;
    ensure!(node["memory"]["workingSetBytes"].as_u64() > Some(64 << 20), "{node:#}");
    ensure!(node["cpu"]["usageNanoCores"].as_u64() > Some(0), "{node:#}");
    Ok(())
}

fn several_states(agent: &AgentProcess) -> Result<()> {
    agent
        .apply("web", &pod("web").container(script_container("main", &["out:hello", "forever"])))?;
    let crash = script_container("main", &["out:trying", "exit:3"]);
    agent.apply("loop", &pod("loop").container(crash))?;
    let once = script_container("main", &["exit:0"]);
    agent.apply("once", &pod("once").with("restartPolicy", "Never").container(once))?;
    let waits = script_container("first", &["forever"]);
    let slow = pod("slow").init(waits).container(script_container("main", &["forever"]));
    agent.apply("slow", &slow)?;
    let nowhere = script_container("main", &[]).with("image", json!("127.0.0.1:1/none:1"));
    agent.apply("nowhere", &pod("nowhere").container(nowhere))?;
    agent.manifests().write("broken", "apiVersion: v1\nkind: Pod\nmetadata: {name: x")
}

pub(super) async fn pods_in_all_states_are_shown_as_kubectl_does(
    cx: &ScenarioContext,
) -> Result<()> {
    let agent = cx.agent()?;
    several_states(&agent)?;
    let shown = until_shown(
        &agent,
        &[
            &["web-node", "1/1", "Running", "0"],
            &["loop-node", "0/1", "CrashLoopBackOff"],
            &["once-node", "0/1", "Completed"],
            &["slow-node", "0/1", "Init:0/1"],
            &["nowhere-node", "0/1", "ImagePullBackOff"],
        ],
    )
    .await?;
    ensure!(shown.starts_with("NAME "), "{shown}");
    ensure!(shown.contains("broken.yaml:"), "what is broken is told below: {shown}");
    let wide = agent.command(&["ps", "-o", "wide"]).await?.success()?;
    let web = wide.lines().find(|line| line.starts_with("web-node")).context("no line on web")?;
    ensure!(web.contains("web.yaml") && web.contains("script"), "{web}");
    check_json_output(&agent).await?;
    check_details(&agent).await
}

async fn check_json_output(agent: &AgentProcess) -> Result<()> {
    let list = agent.command(&["ps", "-o", "json"]).await?.json()?;
    ensure!(list["kind"] == "PodList" && list["apiVersion"] == "v1", "{list:#}");
    let items = list["items"].as_array().context("no items")?;
    let web = items.iter().find(|pod| pod["metadata"]["name"] == "web-node").context("no web")?;
    ensure!(web["kind"] == "Pod" && web["status"]["phase"] == "Running", "{web:#}");
    ensure!(web["status"]["containerStatuses"][0]["ready"] == true, "{web:#}");
    let yaml = agent.command(&["ps", "-o", "yaml"]).await?.success()?;
    ensure!(yaml.contains("kind: PodList") && yaml.contains("name: web-node"), "{yaml}");
    let events = agent.command(&["events", "web", "-o", "json"]).await?.json()?;
    let reasons: Vec<_> =
        events["items"].as_array().into_iter().flatten().map(|event| &event["reason"]).collect();
    ensure!(reasons.contains(&&json!("Started")), "{events:#}");
    Ok(())
}

async fn check_details(agent: &AgentProcess) -> Result<()> {
    let web = agent.command(&["describe", "web"]).await?.success()?;
    for part in ["Name:", "web-node", "web.yaml", "State:", "Running", "Ready", "Started"] {
        ensure!(web.contains(part), "{part} is missing: {web}");
    }
    let crash = agent.command(&["describe", "loop"]).await?.success()?;
    ensure!(crash.contains("CrashLoopBackOff") && crash.contains("Exit Code:"), "{crash}");
    let events = agent.command(&["events", "loop"]).await?.success()?;
    ensure!(events.starts_with("LAST ") && events.contains("BackOff"), "{events}");
    for name in ["loop", "nowhere", "slow", "web", "once"] {
        let why = agent.command(&["explain", name]).await?.success()?;
        ensure!(why.lines().count() > 1 && !why.contains('\u{1b}'), "{name}: {why}");
    }
    Ok(())
}

pub(super) async fn pods_are_found_by_name_and_similar_names_suggested(
    cx: &ScenarioContext,
) -> Result<()> {
    let agent = cx.agent()?;
    for name in ["web", "web-two"] {
        agent.apply(name, &pod(name).container(script_container("main", &["forever"])))?;
    }
    until_shown(&agent, &[&["web-node", "Running"], &["web-two-node", "Running"]]).await?;
    for name in ["web", "web-node", "default/web", "web-t"] {
        agent.command(&["describe", name]).await?.success()?;
    }
    let refused = agent.command(&["describe", "web-"]).await?.failure()?;
    ensure!(refused.contains("name one of web-node, web-two-node"), "{refused}");
    let refused = agent.command(&["logs", "wob"]).await?.failure()?;
    ensure!(refused.contains("there is no pod wob; did you mean web-node"), "{refused}");
    let refused = agent.command(&["logs", "web", "-c", "other"]).await?.failure()?;
    ensure!(refused.contains("it has main"), "{refused}");
    let usage = agent.command(&["ps", "--no-such-flag"]).await?;
    ensure!(usage.code == Some(2), "{usage:#?}");
    Ok(())
}
