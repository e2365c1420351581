//! Pods go on while the API server is away, and their statuses are sent afterwards.

use std::fs;
use std::time::Duration;

use anyhow::{Result, ensure};
use oarsman_e2e::cluster::{MAX_WAIT, TestCluster, summary};
use oarsman_e2e::inspect::eventually;
use oarsman_e2e::manifest::{PodManifest, image, pod};
use oarsman_e2e::scenario::ScenarioContext;
use oarsman_rig::images;
use serde_json::{Value, json};
use tokio::time::sleep;

const AWAY: Duration = Duration::from_secs(60);

/// A pod that records that it ran, and then runs a command, which may wait for the outage by `waits`.
fn noting(cx: &ScenarioContext, name: &str, policy: &str, then: &str) -> PodManifest {
    let script = format!(
        "waits() {{ while [ ! -e /scratch/$1 ]; do sleep 0.1; done; }}; echo ran >> /scratch/runs-{name}; {then}"
    );
    let main = image("main", images::BUSYBOX)
        .with("command", json!(["sh", "-c", script]))
        .mount("scratch", "/scratch");
    pod(name)
        .with("restartPolicy", policy)
        .with("terminationGracePeriodSeconds", 1)
        .host_path("scratch", &cx.scratch().display().to_string())
        .container(main)
}

const FOREVER: &str = "exec sleep 100000";
const CRASH_ONCE: &str =
    "[ -e /scratch/crashed ] || { waits go; touch /scratch/crashed; exit 1; }; exec sleep 100000";

pub(super) async fn statuses_of_an_outage_of_the_api_server_are_sent_afterwards(
    cx: &ScenarioContext,
) -> Result<()> {
    let cluster = TestCluster::start(cx).await?;
    let rows = [
        ("keep", "Always", FOREVER),
        ("crash", "Always", CRASH_ONCE),
        ("finish", "Never", "waits go; exit 0"),
        ("fail", "Never", "waits go; exit 3"),
    ];
    for (name, policy, then) in rows {
        cluster.run(&noting(cx, name, policy, then)).await?;
    }
    for name in ["stay", "leave"] {
        let manifest = noting(cx, name, "Always", FOREVER);
        cluster.agent.manifests().write(name, &manifest.text())?;
    }
    cluster.wait_until_ready(6).await?;
    let before = cluster.pod("stay-node").await?;

    cluster.plane.stop_api_server()?;
    fs::write(cx.scratch().join("go"), "")?;
    cluster.agent.manifests().remove("leave")?;
    let manifest = noting(cx, "come", "Always", FOREVER);
    cluster.agent.manifests().write("come", &manifest.text())?;
    sleep(AWAY).await;
    ensure!(cluster.agent.is_alive(), "the agent ended while the API server was away");
    cluster.plane.start_api_server().await?;

    let told = async || Ok(cluster.pods().await?.iter().map(row).collect::<Vec<PodState>>());
    eventually(MAX_WAIT, "every status is right", told, |told| told == expected().as_slice())
        .await?;
    let after = cluster.pod("stay-node").await?;
    ensure!(before["metadata"]["uid"] == after["metadata"]["uid"], "{before:#}\n{after:#}");
    for (name, runs) in [("keep", 1), ("crash", 2), ("finish", 1), ("fail", 1), ("come", 1)] {
        let noted = fs::read_to_string(cx.scratch().join(format!("runs-{name}")))?;
        ensure!(noted.lines().count() == runs, "{name} ran {} times", noted.lines().count());
    }
    Ok(())
}

/// Of each pod: its name, phase, whether it is Ready, restarts, and the exit code of its container.
type PodState = (String, String, bool, i64, Option<i64>);

fn row(pod: &Value) -> PodState {
    let (name, phase, is_ready) = summary(pod);
    let main = &pod["status"]["containerStatuses"][0];
    let ended = main["state"]["terminated"]["exitCode"].as_i64();
    (name, phase, is_ready, main["restartCount"].as_i64().unwrap_or(-1), ended)
}

fn expected() -> Vec<PodState> {
    let rows = [
        ("come-node", "Running", true, 0, None),
        ("crash", "Running", true, 1, None),
        ("fail", "Failed", false, 0, Some(3)),
        ("finish", "Succeeded", false, 0, Some(0)),
        ("keep", "Running", true, 0, None),
        ("stay-node", "Running", true, 0, None),
    ];
    rows.map(|(name, phase, ready, restarts, ended)| {
        (name.to_owned(), phase.to_owned(), ready, restarts, ended)
    })
    .to_vec()
}
