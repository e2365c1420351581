//! The machine reboots while the API server is away, and pods come back from checkpoints.

use anyhow::{Result, ensure};
use oarsman_e2e::cluster::{
    MAX_WAIT, RunningContainers, TestCluster, is_ready, long_running_pod, running,
};
use oarsman_e2e::inspect::eventually;
use oarsman_e2e::manifest::script_container;
use oarsman_e2e::scenario::ScenarioContext;
use serde_json::{Value, json};

pub(super) async fn pods_come_back_after_a_reboot_without_an_api_server(
    cx: &ScenarioContext,
) -> Result<()> {
    let cluster = TestCluster::start(cx).await?;
    cluster.kubectl(&["create", "configmap", "words", "--from-literal=word=hello\n"]).await?;
    cluster
        .kubectl(&["create", "secret", "generic", "hidden", "--from-literal=word=hush\n"])
        .await?;
    for name in ["p0", "p1", "p2"] {
        cluster.run(&long_running_pod(name)).await?;
    }
    let reader = script_container("reader", &["cat:/words/word", "cat:/hidden/word", "forever"]);
    let reader = reader.mount("words", "/words").mount("hidden", "/hidden");
    let reading = long_running_pod("reading")
        .container(reader)
        .add("volumes", json!({ "name": "words", "configMap": { "name": "words" } }))
        .add("volumes", json!({ "name": "hidden", "secret": { "secretName": "hidden" } }))
        .add("volumes", json!({ "name": "memory", "emptyDir": { "medium": "Memory" } }));
    cluster.run(&reading).await?;
    cluster.agent.manifests().write("fixed", &long_running_pod("fixed").text())?;
    cluster.wait_until_ready(5).await?;
    let before = running(cx).await?;

    cluster.plane.stop_api_server()?;
    cluster.agent.kill()?;
    cx.rig().reboot().await?;
    if cx.rig().flavour().has_socket() {
        ensure!(running(cx).await?.values().all(Vec::is_empty), "something survived");
    }
    cluster.agent.start()?;
    let look = async || running(cx).await;
    let all = |running: &RunningContainers| {
        running.len() == 5 && running.iter().all(|(pod, ids)| ids.len() == before[pod].len())
    };
    let back = eventually(MAX_WAIT, "all pods are back", look, all).await?;
    let texts = async || cx.inspector().pod("reading").await?.container("reader")?.log_texts();
    eventually(MAX_WAIT, "they have what they read", texts, |texts| texts.len() == 2).await?;

    cluster.plane.start_api_server().await?;
    let right = |pods: &Vec<Value>| {
        pods.len() == 5 && pods.iter().all(|pod| shows_restarted_once(pod, &back))
    };
    let list = async || cluster.pods().await;
    eventually(MAX_WAIT, "the API server knows what runs", list, right).await?;
    cluster.wait_until_agent_works("late").await?;
    let after = running(cx).await?;
    ensure!(back.iter().all(|(pod, ids)| after.get(pod) == Some(ids)), "{back:?}\n{after:?}");
    cx.rig().settle_after_reboot().await
}

/// Whether a pod's status has the containers that run, each restarted once.
fn shows_restarted_once(pod: &Value, running: &RunningContainers) -> bool {
    let name = pod["metadata"]["name"].as_str().unwrap_or_default();
    let statuses: Vec<&Value> =
        pod["status"]["containerStatuses"].as_array().into_iter().flatten().collect();
    let id = |status: &&Value| {
        let id = status["containerID"].as_str().unwrap_or_default();
        id.rsplit('/').next().unwrap_or_default().to_owned()
    };
    let mut ids: Vec<String> = statuses.iter().map(id).collect();
    ids.sort();
    is_ready(pod)
        && running.get(name) == Some(&ids)
        && statuses.iter().all(|status| status["restartCount"] == 1)
}
