//! How a node becomes known to its cluster, stays so, and is believed by those who ask it.

use std::fs;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use oarsman_e2e::cluster::{Cluster, PATIENCE, lasting};
use oarsman_e2e::look::eventually;
use oarsman_e2e::manifest::{actor, pod};
use oarsman_e2e::scenario::{Stage, under_test};
use oarsman_rig::{ControlPlane, KubeletOptions};
use serde_json::{Map, Value, json};

/// So long the first certificate still lasts: the node is Ready by then, and the next one is there.
const SHORT: Duration = Duration::from_secs(45);

fn settings(fields: Value) -> Map<String, Value> {
    match fields {
        Value::Object(fields) => fields,
        _ => Map::new(),
    }
}

pub(super) async fn a_node_joins_by_a_token_and_its_logs_are_read(stage: &Stage) -> Result<()> {
    stage.allow(PATIENCE * 3);
    let plane = stage.cluster().await?;
    let kubeconfig = stage.scratch().join("joined.kubeconfig");
    let bootstrap = plane.bootstrap_kubeconfig()?;
    let options = KubeletOptions {
        flags: vec![format!("--bootstrap-kubeconfig={}", bootstrap.display())],
        settings: settings(json!({ "rotateCertificates": true, "serverTLSBootstrap": true })),
        kubeconfig: Some(kubeconfig.clone()),
        ..KubeletOptions::default()
    };
    let agent = stage.join(&under_test()?, &options)?;
    agent.start()?;
    plane.until_node_is_ready(agent.name(), PATIENCE).await?;
    let text = fs::read_to_string(&kubeconfig)?;
    let current = agent.root().join("pki/kubelet-client-current.pem");
    ensure!(text.contains(&current.display().to_string()), "{text}");
    ensure!(fs::metadata(&current)?.is_file(), "the link leads nowhere");
    approve_serving(&plane, &agent.root().join("pki/kubelet-server-current.pem")).await?;
    let cluster = Cluster { plane, agent };
    // Lines of two streams come in any order.
    let script = ["out:hello", "out:world", "forever"];
    let talker = pod("talker").with("terminationGracePeriodSeconds", 1);
    cluster.run(&talker.container(actor("main", &script))).await?;
    let logs =
        async || Ok(cluster.kubectl(&["logs", "talker", "--tail=2"]).await.unwrap_or_default());
    eventually(PATIENCE, "its log is read", logs, |text| text == "hello\nworld\n").await?;
    let last = cluster.kubectl(&["logs", "talker", "--tail=1"]).await?;
    ensure!(last == "world\n", "{last}");
    let none = cluster.kubectl(&["logs", "talker", "--previous"]).await;
    let said = none.err().map(|error| format!("{error:#}")).unwrap_or_default();
    let want = "previous terminated container \"main\" in pod \"talker\" not found";
    ensure!(said.contains(want), "{said}");
    Ok(())
}

/// As a person does who knows the node.
async fn approve_serving(plane: &ControlPlane, file: &Path) -> Result<()> {
    let waiting = async || {
        let all = plane.admin().json(&["get", "certificatesigningrequests"]).await?;
        let all = all["items"].as_array().context("a list has items")?.clone();
        let serving = |it: &&Value| it["spec"]["signerName"] == "kubernetes.io/kubelet-serving";
        let name = |it: &Value| it["metadata"]["name"].as_str().unwrap_or_default().to_owned();
        Ok(all.iter().filter(serving).map(name).collect::<Vec<_>>())
    };
    let names = eventually(PATIENCE, "a request is there", waiting, |it| !it.is_empty()).await?;
    for name in &names {
        plane.admin().run(&["certificate", "approve", name]).await?;
    }
    let is_there = async || Ok(file.exists());
    eventually(PATIENCE, "the server's certificate is there", is_there, |it| *it).await?;
    Ok(())
}

pub(super) async fn a_certificate_is_renewed_before_it_ends_and_nobody_notices(
    stage: &Stage,
) -> Result<()> {
    stage.allow(PATIENCE * 3);
    let plane = stage.cluster().await?;
    let kubeconfig = plane.kubeconfig_of_node_lasting("node", SHORT)?;
    let options = KubeletOptions {
        settings: settings(json!({ "rotateCertificates": true })),
        kubeconfig: Some(kubeconfig),
        ..KubeletOptions::default()
    };
    let begin = tokio::time::Instant::now();
    let agent = stage.join(&under_test()?, &options)?;
    agent.start()?;
    plane.until_node_is_ready(agent.name(), PATIENCE).await?;
    let cluster = Cluster { plane, agent };
    let witness = cluster.witness().await?;
    cluster.run(&lasting("steady")).await?;
    cluster.until_ready(1).await?;
    let current = cluster.agent.root().join("pki/kubelet-client-current.pem");
    let is_there = async || Ok(current.exists());
    eventually(SHORT, "the next certificate is there", is_there, |it| *it).await?;
    // Only the next one is good for anything after this.
    tokio::time::sleep_until(begin + SHORT + Duration::from_secs(2)).await;
    cluster.until_it_works("after").await?;
    witness.undisturbed(2)
}
