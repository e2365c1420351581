//! Every example runs as it says.

use std::fs;
use std::time::Duration;

use anyhow::{Result, ensure};
use oarsman_cri::Runtime;
use oarsman_cri_types::v1::ExecSyncRequest;
use oarsman_e2e::look::eventually;
use oarsman_e2e::person::{Person, example};
use oarsman_e2e::scenario::Stage;

const PATIENCE: Duration = Duration::from_secs(60);

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

pub(super) async fn every_example_has_a_scenario(_: &Stage) -> Result<()> {
    let entries = fs::read_dir(example(""))?;
    let names = entries.map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned()));
    let mut names: Vec<String> = names.collect::<Result<_>>()?;
    names.sort();
    ensure!(names == RUN, "run each of them in a scenario here: {names:?}");
    Ok(())
}

/// Runs an example, waits until it has said all of this, and interrupts it.
async fn says(stage: &Stage, name: &str, all: &[&str]) -> Result<Person> {
    let mut person = Person::runs(stage, &[&example(name)], &[])?;
    for what in all {
        person.hears(what, PATIENCE).await?;
    }
    person.interrupts()?;
    let code = person.ends(PATIENCE).await?;
    ensure!(code == 0, "it ended with {code}: {}", person.said()?);
    Ok(person)
}

pub(super) async fn the_hello_example_says_hello_until_interrupted(stage: &Stage) -> Result<()> {
    says(stage, "hello.yaml", &["hello: running at ", "hello from hello"]).await.map(drop)
}

pub(super) async fn the_init_example_makes_its_page_first(stage: &Stage) -> Result<()> {
    let mut person = Person::runs(stage, &[&example("init.yaml")], &[])?;
    person.hears("page: running at ", PATIENCE).await?;
    let seen = stage.look().pod("page").await?;
    let request = ExecSyncRequest {
        container_id: seen.container("server")?.id.clone(),
        cmd: ["wget", "-qO-", "http://127.0.0.1:8080/"].map(str::to_owned).to_vec(),
        timeout: 10,
    };
    let page = stage.rig().client()?.exec_sync(request).await?;
    let page = String::from_utf8_lossy(&page.stdout).into_owned();
    ensure!(page.contains("made before the server started"), "{page}");
    person.interrupts()?;
    ensure!(person.ends(PATIENCE).await? == 0, "{}", person.said()?);
    Ok(())
}

pub(super) async fn the_sidecar_example_ends_with_its_job(stage: &Stage) -> Result<()> {
    let mut person = Person::runs(stage, &[&example("sidecar.yaml")], &[])?;
    ensure!(person.ends(PATIENCE).await? == 0, "{}", person.said()?);
    let said = person.said()?;
    for what in ["step 1", "step 2", "step 3", "job-with-sidecar: done"] {
        ensure!(said.contains(what), "{what}: {said}");
    }
    Ok(())
}

pub(super) async fn the_restart_example_is_started_again(stage: &Stage) -> Result<()> {
    let crash = "ended with exit code 3";
    says(stage, "restart.yaml", &["cannot reach the database", crash]).await.map(drop)
}

pub(super) async fn the_hooks_example_runs_its_hooks(stage: &Stage) -> Result<()> {
    let person = says(stage, "hooks.yaml", &["postStart ran"]).await?;
    let said = person.said()?;
    ensure!(said.contains("preStop ran"), "{said}");
    Ok(())
}

pub(super) async fn the_config_example_gives_variables_and_files(stage: &Stage) -> Result<()> {
    let greeting = "good morning, rower; the password has 8 letters";
    says(stage, "config.yaml", &[greeting, "the sea is calm"]).await.map(drop)
}

pub(super) async fn the_job_example_ends_with_its_exit_code(stage: &Stage) -> Result<()> {
    let mut person = Person::runs(stage, &[&example("job.yaml")], &[])?;
    let code = person.ends(PATIENCE).await?;
    ensure!(code == 7, "{code}: {}", person.said()?);
    let said = person.said()?;
    ensure!(said.contains("one is missing") && said.contains("exit code 7"), "{said}");
    Ok(())
}

pub(super) async fn the_static_pods_example_runs_a_directory(stage: &Stage) -> Result<()> {
    let config = example("kubelet.yaml");
    let node = stage.start(stage.setup()?.configured_by(&config))?;
    let look = async |name: &str| stage.look().pod(name).await;
    for (name, container) in [("clock", "main"), ("web", "server")] {
        let seen = async || look(name).await;
        eventually(PATIENCE, "it runs", seen, |pod| pod.runs(container)).await?;
    }
    // The files are not this scenario's to be removed: an agent that looks elsewhere takes their pods down.
    node.terminate(PATIENCE).await?;
    stage.start(stage.setup()?).map(drop)
}
