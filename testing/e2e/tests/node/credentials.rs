//! Credentials of a node: bootstrap by a token, renewal of its certificate, and its serving certificate.

use std::fs;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use oarsman_e2e::cluster::{MAX_WAIT, TestCluster, long_running_pod};
use oarsman_e2e::inspect::eventually;
use oarsman_e2e::manifest::{pod, script_container};
use oarsman_e2e::scenario::{ScenarioContext, under_test};
use oarsman_rig::{ControlPlane, KubeletOptions};
use serde_json::{Map, Value, json};

/// The lifetime of the first certificate: the node is Ready within it, and the next certificate is there.
const SHORT: Duration = Duration::from_secs(45);

fn settings(fields: Value) -> Map<String, Value> {
    match fields {
        Value::Object(fields) => fields,
        _ => Map::new(),
    }
}

pub(super) async fn a_node_joins_by_a_token_and_its_logs_are_read(
    cx: &ScenarioContext,
) -> Result<()> {
    cx.set_cleanup_timeout(MAX_WAIT * 3);
    let plane = cx.cluster().await?;
    let kubeconfig = cx.scratch().join("joined.kubeconfig");
    let bootstrap = plane.bootstrap_kubeconfig()?;
    let options = KubeletOptions {
        flags: vec![format!("--bootstrap-kubeconfig={}", bootstrap.display())],
        settings: settings(json!({ "rotateCertificates": true, "serverTLSBootstrap": true })),
        kubeconfig: Some(kubeconfig.clone()),
        ..KubeletOptions::default()
    };
    let agent = cx.join(&under_test()?, &options)?;
    agent.start()?;
    plane.until_node_is_ready(agent.name(), MAX_WAIT).await?;
    let text = fs::read_to_string(&kubeconfig)?;
    let current = agent.root().join("pki/kubelet-client-current.pem");
    ensure!(text.contains(&current.display().to_string()), "{text}");
    ensure!(fs::metadata(&current)?.is_file(), "the link leads nowhere");
    approve_serving(&plane, &agent.root().join("pki/kubelet-server-current.pem")).await?;
    let cluster = TestCluster { plane, agent };
    // The order of two streams is not defined.
    let script = ["out:hello", "out:world", "forever"];
    let talker = pod("talker").with("terminationGracePeriodSeconds", 1);
    cluster.run(&talker.container(script_container("main", &script))).await?;
    let logs =
        async || Ok(cluster.kubectl(&["logs", "talker", "--tail=2"]).await.unwrap_or_default());
    eventually(MAX_WAIT, "its log is read", logs, |text| text == "hello\nworld\n").await?;
    let last = cluster.kubectl(&["logs", "talker", "--tail=1"]).await?;
    ensure!(last == "world\n", "{last}");
    let none = cluster.kubectl(&["logs", "talker", "--previous"]).await;
    let said = none.err().map(|error| format!("{error:#}")).unwrap_or_default();
    let want = "previous terminated container \"main\" in pod \"talker\" not found";
    ensure!(said.contains(want), "{said}");
    Ok(())
}

/// Approves the serving certificate, as an administrator does.
async fn approve_serving(plane: &ControlPlane, file: &Path) -> Result<()> {
    let waiting = async || {
        let all = plane.admin().json(&["get", "certificatesigningrequests"]).await?;
        let all = all["items"].as_array().context("a list has items")?.clone();
        let serving = |it: &&Value| it["spec"]["signerName"] == "kubernetes.io/kubelet-serving";
        let name = |it: &Value| it["metadata"]["name"].as_str().unwrap_or_default().to_owned();
        Ok(all.iter().filter(serving).map(name).collect::<Vec<_>>())
    };
    let names = eventually(MAX_WAIT, "a request is there", waiting, |it| !it.is_empty()).await?;
    for name in &names {
        plane.admin().run(&["certificate", "approve", name]).await?;
    }
    let is_there = async || Ok(file.exists());
    eventually(MAX_WAIT, "the server's certificate is there", is_there, |it| *it).await?;
    Ok(())
}

pub(super) async fn a_certificate_is_renewed_before_it_expires_without_a_disturbance(
    cx: &ScenarioContext,
) -> Result<()> {
    cx.set_cleanup_timeout(MAX_WAIT * 3);
    let plane = cx.cluster().await?;
    let kubeconfig = plane.kubeconfig_of_node_lasting("node", SHORT)?;
    let options = KubeletOptions {
        settings: settings(json!({ "rotateCertificates": true })),
        kubeconfig: Some(kubeconfig),
        ..KubeletOptions::default()
    };
    let begin = tokio::time::Instant::now();
    let agent = cx.join(&under_test()?, &options)?;
    agent.start()?;
    plane.until_node_is_ready(agent.name(), MAX_WAIT).await?;
    let cluster = TestCluster { plane, agent };
    let observer = cluster.observe_pods().await?;
    cluster.run(&long_running_pod("steady")).await?;
    cluster.wait_until_ready(1).await?;
    let current = cluster.agent.root().join("pki/kubelet-client-current.pem");
    let is_there = async || Ok(current.exists());
    eventually(SHORT, "the next certificate is there", is_there, |it| *it).await?;
    // From here on only the renewed certificate is valid.
    tokio::time::sleep_until(begin + SHORT + Duration::from_secs(2)).await;
    cluster.wait_until_agent_works("after").await?;
    observer.undisturbed(2)
}
