//! Other agents and foreign sandboxes on the same runtime.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use oarsman_cri::Runtime;
use oarsman_cri_types::v1::{
    LinuxPodSandboxConfig, PodSandboxConfig, PodSandboxMetadata, RunPodSandboxRequest,
};
use oarsman_e2e::agent_process::AgentSetup;
use oarsman_e2e::inspect::{ObservedPod, always, eventually};
use oarsman_e2e::manifest::{pod, script_container};
use oarsman_e2e::scenario::ScenarioContext;

use super::kills::MAX_WAIT;

/// Makes a sandbox as crictl does: without a kubelet's labels.
async fn foreign_sandbox(cx: &ScenarioContext) -> Result<String> {
    let metadata = PodSandboxMetadata {
        name: "stranger".to_owned(),
        namespace: "default".to_owned(),
        uid: "stranger-uid".to_owned(),
        attempt: 0,
    };
    let config = PodSandboxConfig {
        metadata: Some(metadata),
        log_directory: cx.rig().pod_logs().join("stranger").display().to_string(),
        linux: Some(LinuxPodSandboxConfig {
            cgroup_parent: cx.rig().cgroup_parent(),
            ..LinuxPodSandboxConfig::default()
        }),
        ..PodSandboxConfig::default()
    };
    let request = RunPodSandboxRequest { config: Some(config), ..RunPodSandboxRequest::default() };
    Ok(cx.rig().client()?.run_pod_sandbox(request).await?)
}

fn names(pods: &[ObservedPod]) -> Vec<String> {
    let running = pods.iter().filter_map(|pod| pod.sandbox().ok()).filter(|it| it.is_ready);
    let mut names: Vec<String> = running.map(|sandbox| sandbox.name.clone()).collect();
    names.sort();
    names
}

pub(super) async fn two_agents_and_a_foreign_sandbox_do_not_affect_each_other(
    cx: &ScenarioContext,
) -> Result<()> {
    let kubelet = cx.start(cx.setup()?.flag("sync-frequency", "500ms"))?;
    let run_mode = AgentSetup::on(cx.rig(), "guest")?.in_run_mode().flag("sync-frequency", "500ms");
    let run_mode = cx.prepare(run_mode)?;
    let foreign_sandbox = foreign_sandbox(cx).await?;
    let quick = |name: &str| {
        pod(name)
            .with("terminationGracePeriodSeconds", 1)
            .container(script_container("main", &["forever"]))
    };
    kubelet.apply("ours", &quick("ours"))?;
    run_mode.apply("theirs", &quick("theirs"))?;
    run_mode.start()?;
    let look = async || Ok(names(&cx.inspector().pods().await?));
    let all = ["ours-node", "stranger", "theirs"];
    eventually(MAX_WAIT, "all three run", look, |names| names == &all).await?;
    // Both agents start anew without any state, and relist twice a second.
    for agent in [&kubelet, &run_mode] {
        agent.kill()?;
        agent.start()?;
    }
    always(Duration::from_secs(4), "nobody is touched", look, |names| names == &all).await?;
    kubelet.manifests().remove("ours")?;
    let left = &all[1..];
    eventually(MAX_WAIT, "only its own pod goes", look, |names| names == left).await?;
    run_mode.manifests().remove("theirs")?;
    let left = &all[1..2];
    eventually(MAX_WAIT, "and those of run mode", look, |names| names == left).await?;
    always(Duration::from_secs(2), "the stranger stays", look, |names| names == left).await?;
    let client = cx.rig().client()?;
    client.stop_pod_sandbox(&foreign_sandbox).await?;
    client.remove_pod_sandbox(&foreign_sandbox).await?;
    Ok(())
}

pub(super) async fn a_runtime_has_one_kubelet(cx: &ScenarioContext) -> Result<()> {
    let first = cx.agent()?;
    first.apply("web", &pod("web").container(script_container("main", &["forever"])))?;
    let look = async || cx.inspector().pod("web").await;
    eventually(MAX_WAIT, "the pod runs", look, |pod| pod.runs("main")).await?;
    let second =
        oarsman_e2e::agent_process::AgentProcess::new(AgentSetup::on(cx.rig(), "second")?)?;
    second.start()?;
    let ended = async || Ok(!second.is_alive());
    eventually(MAX_WAIT, "the second kubelet ends", ended, |ended| *ended).await?;
    let log = std::fs::read_to_string(second.log()).context("the second kubelet's log")?;
    ensure!(log.contains("is held by another agent") && log.contains("stop the other"), "{log}");
    ensure!(cx.inspector().pod("web").await?.runs("main"));
    for path in [second.root().to_owned(), second.manifests().path().to_owned(), second.log()] {
        std::fs::remove_dir_all(&path).or_else(|_| std::fs::remove_file(&path)).ok();
    }
    Ok(())
}
