//! Our program takes over running pods from another build of it, and gives them back: `cargo xtask takeover COMMIT`.

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Result, ensure};
use oarsman_e2e::cluster::{
    MAX_WAIT, RunningContainers, TestCluster, deployment, ensure_same, long_running_pod, running,
    summary,
};
use oarsman_e2e::inspect::eventually;
use oarsman_e2e::manifest::{PodManifest, pod, script_container};
use oarsman_e2e::scenario::{ScenarioContext, ours};
use oarsman_e2e::{scenario, scenarios};
use oarsman_rig::{Implementation, Kubelet, KubeletOptions};
use serde_json::json;
use tokio::time::sleep;

/// The environment variable with the program that runs the pods at first; by default the program under test.
const FROM: &str = "OARSMAN_TAKEOVER_FROM";
/// How long an agent may take to end.
const ENDING: Duration = Duration::from_secs(20);
/// How long a new agent is watched after it has shown that it works: longer than anything that it does only once after its start.
const SETTLING: Duration = Duration::from_secs(20);
const STATIC: [&str; 3] = ["s0", "s1", "s2"];
/// The static pods, those of a deployment, and one of each kind.
const READY: usize = STATIC.len() + 5 + 4;

fn main() -> ExitCode {
    let scenarios = scenarios![pods_of_another_program_are_taken_over_and_given_back];
    scenario::main_with_cluster(&scenario::flavours(), &scenarios)
}

fn theirs() -> Result<Implementation> {
    match std::env::var_os(FROM) {
        Some(program) => Ok(Implementation::Oarsman(PathBuf::from(program))),
        None => ours(),
    }
}

async fn pods_of_another_program_are_taken_over_and_given_back(cx: &ScenarioContext) -> Result<()> {
    let cluster = TestCluster::start_with(cx, &theirs()?).await?;
    start_pods(&cluster).await?;
    cluster.wait_until_ready(READY).await?;
    let before = running(cx).await?;
    let theirs = Arc::clone(&cluster.agent);
    let own = cx.join(&ours()?, &KubeletOptions::default())?;

    let before = swap(cx, &cluster, (&theirs, &own), before, "taken").await?;
    swap(cx, &cluster, (&own, &theirs), before, "given").await?;
    Ok(())
}

/// One agent ends and the other starts; no client and nothing in the runtime sees a change. Returns what runs afterwards.
async fn swap(
    cx: &ScenarioContext,
    cluster: &TestCluster,
    (from, to): (&Kubelet, &Kubelet),
    before: RunningContainers,
    name: &str,
) -> Result<RunningContainers> {
    let watch = cluster.observe_pods().await?;
    let ready = watch.disturbances().len();
    let status = from.terminate(ENDING).await?;
    ensure!(status.success(), "the agent ended with {status}");
    to.start()?;
    cluster.wait_until_agent_works(name).await?;
    sleep(SETTLING).await;
    watch.undisturbed(ready + 1)?;
    let after = running(cx).await?;
    ensure_same(&before, &after)?;
    Ok(after)
}

/// Starts pods of every kind that an agent has to recognise.
async fn start_pods(cluster: &TestCluster) -> Result<()> {
    for name in STATIC {
        cluster.agent.manifests().write(name, &long_running_pod(name).text())?;
    }
    cluster.kubectl(&["create", "configmap", "words", "--from-literal=word=hello"]).await?;
    cluster.kubectl(&["create", "secret", "generic", "hidden", "--from-literal=word=hush"]).await?;
    cluster.apply(&deployment("web", 5)).await?;
    for manifest in [with_volumes(), with_init_and_sidecar(), once_restarted(), on_failure()] {
        cluster.run(&manifest).await?;
    }
    // It is Ready for a moment, and must not be counted among those that stay Ready.
    cluster.run(&finished()).await?;
    let phase = async || Ok(summary(&cluster.pod("finished").await?).1);
    eventually(MAX_WAIT, "one has ended", phase, |phase| phase == "Succeeded").await.map(drop)
}

fn with_volumes() -> PodManifest {
    let main = script_container("main", &["cat:/words/word", "cat:/hidden/word", "forever"]);
    let main = main.mount("words", "/words").mount("hidden", "/hidden").mount("empty", "/empty");
    pod("volumes")
        .with("terminationGracePeriodSeconds", 1)
        .add("volumes", json!({ "name": "words", "configMap": { "name": "words" } }))
        .add("volumes", json!({ "name": "hidden", "secret": { "secretName": "hidden" } }))
        .add("volumes", json!({ "name": "empty", "emptyDir": { "medium": "Memory" } }))
        .container(main)
}

fn with_init_and_sidecar() -> PodManifest {
    let sidecar = script_container("sidecar", &["forever"]).with("restartPolicy", "Always".into());
    long_running_pod("sidecar").init(script_container("first", &["exit:0"])).init(sidecar)
}

/// Its container ends once, so that there is a restart to be counted from.
fn once_restarted() -> PodManifest {
    let script = "[ -e /empty/ran ] && exec sleep 100000; touch /empty/ran; exit 1";
    let main = oarsman_e2e::manifest::image("main", oarsman_rig::images::BUSYBOX)
        .with("command", json!(["sh", "-c", script]))
        .mount("empty", "/empty");
    pod("restarted")
        .with("terminationGracePeriodSeconds", 1)
        .add("volumes", json!({ "name": "empty", "emptyDir": {} }))
        .container(main)
}

/// One container has ended for good, another goes on.
fn on_failure() -> PodManifest {
    long_running_pod("failure").with("restartPolicy", "OnFailure")
}

fn finished() -> PodManifest {
    pod("finished").with("restartPolicy", "Never").container(script_container("main", &["exit:0"]))
}
