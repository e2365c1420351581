//! Causes of pods and containers that are being stopped. They wait for a file, so that the command can be run while they end.

use std::fs;

use anyhow::Result;
use oarsman_core::explain::ExplanationCause;
use oarsman_e2e::agent_process::AgentProcess;
use oarsman_e2e::manifest::{ContainerManifest, PodManifest, image, pod, script_container};
use oarsman_e2e::scenario::ScenarioContext;
use oarsman_rig::images::{BUSYBOX, SCRIPT_AS_USER};
use serde_json::json;

use super::ask::{expected, until};

pub(super) const CAUSES: &[ExplanationCause] = &[
    ExplanationCause::PreStopRuns,
    ExplanationCause::Stopping,
    ExplanationCause::WaitsForNamesake,
    ExplanationCause::Edited,
    ExplanationCause::KilledAfterGrace,
];

/// A container that ends after SIGTERM once there is a file named `go`.
fn slow_stopping_container() -> ContainerManifest {
    script_container("main", &["on-term:wait-file:/s/go,exit:0", "forever"]).mount("s", "/s")
}

fn pre_stop_hook_container() -> ContainerManifest {
    let hook = ["sh", "-c", "until [ -e /s/go ]; do sleep 0.1; done"];
    image("main", BUSYBOX)
        .with("command", json!(["sh", "-c", "trap 'exit 0' TERM; while :; do sleep 0.1; done"]))
        .with("lifecycle", json!({ "preStop": { "exec": { "command": hook } } }))
        .mount("s", "/s")
}

fn sigterm_ignoring_container() -> ContainerManifest {
    script_container("main", &["on-term:ignore", "forever"])
}

pub(super) async fn a_pod_that_ends_is_explained_with_its_remaining_time(
    cx: &ScenarioContext,
) -> Result<()> {
    let agent = cx.agent()?;
    let scratch = cx.scratch().display().to_string();
    let lasting = |name: &str, main: ContainerManifest, uid: &str, grace: i64| {
        pod(name)
            .with_metadata("uid", uid)
            .with("terminationGracePeriodSeconds", grace)
            .host_path("s", &scratch)
            .container(main)
    };
    let another = |main: ContainerManifest| main.with("image", SCRIPT_AS_USER.into());
    let before = [
        ("hooked", lasting("hooked", pre_stop_hook_container(), "u1", 300)),
        ("leaving", lasting("leaving", slow_stopping_container(), "u2", 300)),
        ("twin", lasting("twin", slow_stopping_container(), "u3", 300)),
        ("edited", lasting("edited", slow_stopping_container(), "u4", 300)),
        ("deaf", lasting("deaf", sigterm_ignoring_container(), "u5", 2)),
    ];
    until_all_run(&agent, &before).await?;
    agent.manifests().remove("hooked")?;
    agent.manifests().remove("leaving")?;
    agent.apply("twin", &lasting("twin", slow_stopping_container(), "u6", 300))?;
    agent.apply("edited", &lasting("edited", another(slow_stopping_container()), "u4", 300))?;
    agent.apply("deaf", &lasting("deaf", another(sigterm_ignoring_container()), "u5", 2))?;
    wait_for_explanations(&agent).await?;
    Ok(fs::write(cx.scratch().join("go"), "")?)
}

async fn until_all_run(agent: &AgentProcess, pods: &[(&str, PodManifest)]) -> Result<()> {
    for (name, manifest) in pods {
        agent.apply(name, manifest)?;
    }
    let runs = expected(
        ExplanationCause::Running,
        "The pod runs and is ready, for N seconds now.",
        "Nothing to do. `oarsman logs -c main {pod}` shows what it says.",
    );
    for (name, _) in pods {
        until(agent, name, &runs).await?;
    }
    Ok(())
}

async fn wait_for_explanations(agent: &AgentProcess) -> Result<()> {
    let stopping = "The pod is being stopped: container main was asked to end N seconds ago and has N seconds for it.";
    let changed = "Container main definition changed, will be restarted";
    let rows = [
        (
            "hooked",
            ExplanationCause::PreStopRuns,
            "The pod is being stopped: the preStop hook of container main runs, for N seconds now, and may take all of the grace period (N seconds).".to_owned(),
            "Wait until the hook has ended, or the grace period is over.",
        ),
        (
            "leaving",
            ExplanationCause::Stopping,
            stopping.to_owned(),
            "Wait: what has not ended by then is killed.",
        ),
        (
            "twin",
            ExplanationCause::WaitsForNamesake,
            format!("The pod as {{place}} has it now waits for the one of its name before it to be gone. {stopping}"),
            "Wait: two pods of one name never run at once.",
        ),
        (
            "edited",
            ExplanationCause::Edited,
            format!("Container main is being stopped ({changed}) and has N seconds for it, since N seconds ago; then it is started as {{place}} says now."),
            "Wait; if it takes too long, have its program end on SIGTERM: `oarsman logs -c main {pod}`.",
        ),
        (
            "deaf",
            ExplanationCause::KilledAfterGrace,
            format!("Container main was asked to end ({changed}), did not within its grace period of N seconds, and was killed; it runs again, for N seconds now."),
            "Have its program end on SIGTERM, or raise spec.terminationGracePeriodSeconds in {place}.",
        ),
    ];
    for (name, cause, sentence, next) in rows {
        until(agent, name, &expected(cause, &sentence, next)).await?;
    }
    Ok(())
}
