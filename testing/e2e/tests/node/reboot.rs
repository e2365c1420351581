//! The machine comes up again, and the API server does not.

use anyhow::{Result, ensure};
use oarsman_e2e::cluster::{Cluster, PATIENCE, Running, is_ready, lasting, running};
use oarsman_e2e::look::eventually;
use oarsman_e2e::manifest::actor;
use oarsman_e2e::scenario::Stage;
use serde_json::{Value, json};

pub(super) async fn pods_come_back_after_a_reboot_without_an_api_server(
    stage: &Stage,
) -> Result<()> {
    let cluster = Cluster::start(stage).await?;
    cluster.kubectl(&["create", "configmap", "words", "--from-literal=word=hello\n"]).await?;
    cluster
        .kubectl(&["create", "secret", "generic", "hidden", "--from-literal=word=hush\n"])
        .await?;
    for name in ["p0", "p1", "p2"] {
        cluster.run(&lasting(name)).await?;
    }
    let reader = actor("reader", &["cat:/words/word", "cat:/hidden/word", "forever"]);
    let reader = reader.mount("words", "/words").mount("hidden", "/hidden");
    let reading = lasting("reading")
        .container(reader)
        .add("volumes", json!({ "name": "words", "configMap": { "name": "words" } }))
        .add("volumes", json!({ "name": "hidden", "secret": { "secretName": "hidden" } }))
        .add("volumes", json!({ "name": "memory", "emptyDir": { "medium": "Memory" } }));
    cluster.run(&reading).await?;
    cluster.agent.manifests().write("fixed", &lasting("fixed").text())?;
    cluster.until_ready(5).await?;
    let before = running(stage).await?;

    cluster.plane.stop_api_server()?;
    cluster.agent.kill()?;
    stage.rig().reboot().await?;
    ensure!(running(stage).await?.values().all(Vec::is_empty), "something survived");
    cluster.agent.start()?;
    let look = async || running(stage).await;
    let all = |running: &Running| {
        running.len() == 5 && running.iter().all(|(pod, ids)| ids.len() == before[pod].len())
    };
    let back = eventually(PATIENCE, "all pods are back", look, all).await?;
    let texts = async || stage.look().pod("reading").await?.container("reader")?.log_texts();
    eventually(PATIENCE, "they have what they read", texts, |texts| texts.len() == 2).await?;

    cluster.plane.start_api_server().await?;
    let right = |pods: &Vec<Value>| pods.len() == 5 && pods.iter().all(|pod| tells(pod, &back));
    let list = async || cluster.pods().await;
    eventually(PATIENCE, "the API server knows what runs", list, right).await?;
    cluster.until_it_works("late").await?;
    let after = running(stage).await?;
    ensure!(back.iter().all(|(pod, ids)| after.get(pod) == Some(ids)), "{back:?}\n{after:?}");
    // containerd removes its directories of tasks before the reboot when it starts for the second time after it.
    stage.rig().kill()?;
    stage.rig().restart().await
}

/// Whether a pod's status tells the containers that run, each restarted once.
fn tells(pod: &Value, running: &Running) -> bool {
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
