//! How pods end: hooks, grace periods, signals, and the order of containers.

use std::time::Duration;

use anyhow::{Result, ensure};
use oarsman_e2e::agent_process::AgentProcess;
use oarsman_e2e::inspect::eventually;
use oarsman_e2e::manifest::{image, pod, script_container};
use oarsman_e2e::scenario::{self, ScenarioContext};
use oarsman_rig::{ContainerdFlavour, images};
use serde_json::json;
use tokio::time::Instant;

use super::starts::MAX_WAIT;

/// Runs the pod, removes its manifest, and returns how long it then took until its sandbox was stopped.
async fn time_to_end(cx: &ScenarioContext, agent: &AgentProcess, name: &str) -> Result<Duration> {
    let look = async || cx.inspector().pod(name).await;
    eventually(MAX_WAIT, "the pod runs", look, |pod| pod.runs("main")).await?;
    agent.manifests().remove(name)?;
    let began = Instant::now();
    eventually(MAX_WAIT * 2, "it has ended", look, |pod| {
        pod.sandboxes.iter().all(|sandbox| !sandbox.is_ready)
    })
    .await?;
    Ok(began.elapsed())
}

pub(super) async fn a_removed_manifest_ends_its_pod_within_grace(
    cx: &ScenarioContext,
) -> Result<()> {
    let agent = cx.agent()?;
    let note = cx.scratch().join("note");
    let script = ["on-term:write:/scratch/note=asked,exit:0", "forever"];
    let manifest = pod("web")
        .host_path("scratch", &cx.scratch().display().to_string())
        .container(script_container("main", &script).mount("scratch", "/scratch"));
    agent.apply("web", &manifest)?;
    let took = time_to_end(cx, &agent, "web").await?;
    ensure!(took < Duration::from_secs(10), "of its 30 s of grace it took {took:?}");
    ensure!(std::fs::read_to_string(note)? == "asked", "it was asked to end");
    Ok(())
}

pub(super) async fn a_container_that_ignores_its_end_is_killed_when_its_grace_is_over(
    cx: &ScenarioContext,
) -> Result<()> {
    let agent = cx.agent()?;
    let manifest = pod("web")
        .with("terminationGracePeriodSeconds", 4)
        .container(script_container("main", &["on-term:ignore", "forever"]));
    agent.apply("web", &manifest)?;
    let took = time_to_end(cx, &agent, "web").await?;
    let range = Duration::from_secs(4)..Duration::from_secs(10);
    ensure!(range.contains(&took), "{took:?}");
    Ok(())
}

pub(super) async fn a_hook_and_its_container_share_one_grace(cx: &ScenarioContext) -> Result<()> {
    let agent = cx.agent()?;
    let hook = json!({ "preStop": { "exec": { "command": ["sh", "-c", "date > /scratch/hook; sleep 3"] } } });
    let main = image("main", images::BUSYBOX)
        .with(
            "command",
            json!(["sh", "-c", "trap 'date > /scratch/term' TERM; while :; do sleep 0.1; done"]),
        )
        .with("lifecycle", hook)
        .mount("scratch", "/scratch");
    let manifest = pod("web")
        .with("terminationGracePeriodSeconds", 6)
        .host_path("scratch", &cx.scratch().display().to_string())
        .container(main);
    agent.apply("web", &manifest)?;
    let took = time_to_end(cx, &agent, "web").await?;
    // Three seconds for the hook leave three for the container, which ignores SIGTERM.
    let range = Duration::from_secs(6)..Duration::from_secs(12);
    ensure!(range.contains(&took), "{took:?}");
    let modified = |name: &str| std::fs::metadata(cx.scratch().join(name))?.modified();
    let between = modified("term")?.duration_since(modified("hook")?)?;
    ensure!(between >= Duration::from_secs(2), "asked {between:?} after its hook began");
    Ok(())
}

pub(super) async fn a_sidecar_outlives_the_others_and_goes_last(
    cx: &ScenarioContext,
) -> Result<()> {
    let agent = cx.agent()?;
    let sidecar = |name: &str| {
        let script = format!("on-term:write:/scratch/{name}=x,exit:0");
        script_container(name, &[&script, "forever"])
            .with("restartPolicy", "Always".into())
            .mount("scratch", "/scratch")
    };
    let main =
        script_container("main", &["on-term:sleep:1s,write:/scratch/main=x,exit:0", "forever"]);
    let manifest = pod("web")
        .host_path("scratch", &cx.scratch().display().to_string())
        .init(sidecar("outer"))
        .init(sidecar("inner"))
        .container(main.mount("scratch", "/scratch"));
    agent.apply("web", &manifest)?;
    let look = async || cx.inspector().pod("web").await;
    let seen = eventually(MAX_WAIT, "the pod runs", look, |pod| pod.runs("main")).await?;
    let order = [seen.container("outer")?, seen.container("inner")?, seen.container("main")?];
    ensure!(order.is_sorted_by_key(|container| container.started), "{seen:#?}");
    let took = time_to_end(cx, &agent, "web").await?;
    ensure!(took < Duration::from_secs(15), "{took:?}");
    let modified = |name: &str| std::fs::metadata(cx.scratch().join(name))?.modified();
    let (main, inner, outer) = (modified("main")?, modified("inner")?, modified("outer")?);
    ensure!(main <= inner && inner <= outer, "main {main:?}, inner {inner:?}, outer {outer:?}");
    Ok(())
}

pub(super) async fn a_container_is_stopped_by_the_signal_that_its_spec_names(
    cx: &ScenarioContext,
) -> Result<()> {
    let gate = cx.setup()?.flag("feature-gates", "ContainerStopSignals=true");
    let agent = cx.start(gate)?;
    let script = "trap 'echo usr1 > /scratch/signal; exit 0' USR1; trap 'echo term > /scratch/signal; exit 0' TERM; while :; do sleep 0.1; done";
    let main = image("main", images::BUSYBOX)
        .with("command", json!(["sh", "-c", script]))
        .with("lifecycle", json!({ "stopSignal": "SIGUSR1" }))
        .mount("scratch", "/scratch");
    let manifest = pod("web")
        .with("os", json!({ "name": "linux" }))
        .host_path("scratch", &cx.scratch().display().to_string())
        .container(main);
    agent.apply("web", &manifest)?;
    let took = time_to_end(cx, &agent, "web").await?;
    ensure!(took < Duration::from_secs(10), "of its 30 s of grace it took {took:?}");
    let signal = std::fs::read_to_string(cx.scratch().join("signal"))?;
    // Debian's containerd is older than the field, and uses the image's signal.
    let expected = match scenario::flavours() {
        [ContainerdFlavour::Debian] => "term\n",
        _ => "usr1\n",
    };
    ensure!(signal == expected, "it got {signal:?}");
    Ok(())
}
