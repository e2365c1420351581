//! Every example runs as its comment says.

use std::fs;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use oarsman_cri::Runtime;
use oarsman_cri_types::v1::ExecSyncRequest;
use oarsman_e2e::inspect::eventually;
use oarsman_e2e::run_process::{RunProcess, example};
use oarsman_e2e::scenario::ScenarioContext;

const MAX_WAIT: Duration = Duration::from_secs(60);

/// The examples that the scenarios here run.
const RUN: [&str; 9] = [
    "config.yaml",
    "hello.yaml",
    "hooks.yaml",
    "init.yaml",
    "job.yaml",
    "kubelet.yaml",
    "restart.yaml",
    "sidecar.yaml",
    "static-pods",
];

pub(super) async fn every_example_has_a_scenario(_: &ScenarioContext) -> Result<()> {
    let entries = fs::read_dir(example(""))?;
    let names = entries.map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned()));
    let mut names: Vec<String> = names.collect::<Result<_>>()?;
    names.sort();
    ensure!(names == RUN, "run each of them in a scenario here: {names:?}");
    Ok(())
}

/// Runs an example, waits until it has printed all of these texts, and interrupts it.
async fn run_example(cx: &ScenarioContext, name: &str, all: &[&str]) -> Result<RunProcess> {
    let mut process = RunProcess::start(cx, &[&example(name)], &[])?;
    for what in all {
        process.wait_for_output(what, MAX_WAIT).await?;
    }
    process.interrupt()?;
    let code = process.wait_exit(MAX_WAIT).await?;
    ensure!(code == 0, "it ended with {code}: {}", process.output()?);
    Ok(process)
}

pub(super) async fn the_hello_example_says_hello_until_interrupted(
    cx: &ScenarioContext,
) -> Result<()> {
    let mut process = RunProcess::start(cx, &[&example("hello.yaml")], &[])?;
    for what in ["hello: running at ", "hello | listening on port 8080"] {
        process.wait_for_output(what, MAX_WAIT).await?;
    }
    let answer = ask(cx, "hello", "main").await?;
    ensure!(answer == "hello from hello\n", "{answer}");
    process.interrupt()?;
    ensure!(process.wait_exit(MAX_WAIT).await? == 0, "{}", process.output()?);
    Ok(())
}

/// What the server of a pod answers to its own container.
async fn ask(cx: &ScenarioContext, pod: &str, container: &str) -> Result<String> {
    let seen = cx.inspector().pod(pod).await?;
    let request = ExecSyncRequest {
        container_id: seen.container(container)?.id.clone(),
        cmd: ["demo", "get", "127.0.0.1:8080"].map(str::to_owned).to_vec(),
        timeout: 10,
    };
    let client = cx.inspector().clients()?.pop().context("the runtime")?;
    let answer = client.exec_sync(request).await?;
    Ok(String::from_utf8_lossy(&answer.stdout).into_owned())
}

pub(super) async fn the_init_example_makes_its_page_first(cx: &ScenarioContext) -> Result<()> {
    let mut process = RunProcess::start(cx, &[&example("init.yaml")], &[])?;
    process.wait_for_output("page: running at ", MAX_WAIT).await?;
    let page = ask(cx, "page", "server").await?;
    ensure!(page.contains("made before the server started"), "{page}");
    process.interrupt()?;
    ensure!(process.wait_exit(MAX_WAIT).await? == 0, "{}", process.output()?);
    Ok(())
}

pub(super) async fn the_sidecar_example_ends_with_its_job(cx: &ScenarioContext) -> Result<()> {
    let mut process = RunProcess::start(cx, &[&example("sidecar.yaml")], &[])?;
    ensure!(process.wait_exit(MAX_WAIT).await? == 0, "{}", process.output()?);
    let said = process.output()?;
    for what in ["step 1", "step 2", "step 3", "job-with-sidecar: done"] {
        ensure!(said.contains(what), "{what}: {said}");
    }
    Ok(())
}

pub(super) async fn the_restart_example_is_started_again(cx: &ScenarioContext) -> Result<()> {
    let crash = "ended with exit code 3";
    run_example(cx, "restart.yaml", &["cannot reach the database", crash]).await.map(drop)
}

pub(super) async fn the_hooks_example_runs_its_hooks(cx: &ScenarioContext) -> Result<()> {
    let process = run_example(cx, "hooks.yaml", &["postStart ran"]).await?;
    let said = process.output()?;
    ensure!(said.contains("preStop ran"), "{said}");
    Ok(())
}

pub(super) async fn the_config_example_gives_variables_and_files(
    cx: &ScenarioContext,
) -> Result<()> {
    let all = ["good morning, rower", "/login/password has 8 letters", "the sea is calm"];
    run_example(cx, "config.yaml", &all).await.map(drop)
}

pub(super) async fn the_job_example_ends_with_its_exit_code(cx: &ScenarioContext) -> Result<()> {
    let mut process = RunProcess::start(cx, &[&example("job.yaml")], &[])?;
    let code = process.wait_exit(MAX_WAIT).await?;
    ensure!(code == 7, "{code}: {}", process.output()?);
    let said = process.output()?;
    ensure!(said.contains("one is missing") && said.contains("exit code 7"), "{said}");
    Ok(())
}

pub(super) async fn the_static_pods_example_runs_a_directory(cx: &ScenarioContext) -> Result<()> {
    let config = example("kubelet.yaml");
    let node = cx.start(cx.setup()?.configured_by(&config))?;
    let look = async |name: &str| cx.inspector().pod(name).await;
    for (name, container) in [("clock", "main"), ("web", "server")] {
        let seen = async || look(name).await;
        eventually(MAX_WAIT, "it runs", seen, |pod| pod.runs(container)).await?;
    }
    // The scenario must not remove the example's files: an agent with another directory removes their pods.
    node.terminate(MAX_WAIT).await?;
    cx.start(cx.setup()?).map(drop)
}
