//! The API server is away, and life goes on.

use std::fs;
use std::time::Duration;

use anyhow::{Result, ensure};
use oarsman_e2e::cluster::{Cluster, PATIENCE, in_short};
use oarsman_e2e::look::eventually;
use oarsman_e2e::manifest::{Manifest, image, pod};
use oarsman_e2e::scenario::Stage;
use oarsman_rig::images;
use serde_json::{Value, json};
use tokio::time::sleep;

const AWAY: Duration = Duration::from_secs(60);

/// Notes that it ran, and then does something, which may wait for the outage by `waits`.
fn noting(stage: &Stage, name: &str, policy: &str, then: &str) -> Manifest {
    let script = format!(
        "waits() {{ while [ ! -e /scratch/$1 ]; do sleep 0.1; done; }}; echo ran >> /scratch/runs-{name}; {then}"
    );
    let main = image("main", images::BUSYBOX)
        .with("command", json!(["sh", "-c", script]))
        .mount("scratch", "/scratch");
    pod(name)
        .with("restartPolicy", policy)
        .with("terminationGracePeriodSeconds", 1)
        .host_path("scratch", &stage.scratch().display().to_string())
        .container(main)
}

const FOREVER: &str = "exec sleep 100000";
const CRASH_ONCE: &str =
    "[ -e /scratch/crashed ] || { waits go; touch /scratch/crashed; exit 1; }; exec sleep 100000";

pub(super) async fn what_happened_while_the_api_server_was_away_is_told_afterwards(
    stage: &Stage,
) -> Result<()> {
    let cluster = Cluster::start(stage).await?;
    let rows = [
        ("keep", "Always", FOREVER),
        ("crash", "Always", CRASH_ONCE),
        ("finish", "Never", "waits go; exit 0"),
        ("fail", "Never", "waits go; exit 3"),
    ];
    for (name, policy, then) in rows {
        cluster.run(&noting(stage, name, policy, then)).await?;
    }
    for name in ["stay", "leave"] {
        let manifest = noting(stage, name, "Always", FOREVER);
        cluster.agent.manifests().write(name, &manifest.text())?;
    }
    cluster.until_ready(6).await?;
    let before = cluster.pod("stay-node").await?;

    cluster.plane.stop_api_server()?;
    fs::write(stage.scratch().join("go"), "")?;
    cluster.agent.manifests().remove("leave")?;
    let manifest = noting(stage, "come", "Always", FOREVER);
    cluster.agent.manifests().write("come", &manifest.text())?;
    sleep(AWAY).await;
    ensure!(cluster.agent.is_alive(), "the agent ended while the API server was away");
    cluster.plane.start_api_server().await?;

    let told = async || Ok(cluster.pods().await?.iter().map(row).collect::<Vec<Row>>());
    eventually(PATIENCE, "every status is right", told, |told| told == expected().as_slice())
        .await?;
    let after = cluster.pod("stay-node").await?;
    ensure!(before["metadata"]["uid"] == after["metadata"]["uid"], "{before:#}\n{after:#}");
    for (name, runs) in [("keep", 1), ("crash", 2), ("finish", 1), ("fail", 1), ("come", 1)] {
        let noted = fs::read_to_string(stage.scratch().join(format!("runs-{name}")))?;
        ensure!(noted.lines().count() == runs, "{name} ran {} times", noted.lines().count());
    }
    Ok(())
}

/// Of each pod: its name, phase, whether it is Ready, restarts, and with what its container ended.
type Row = (String, String, bool, i64, Option<i64>);

fn row(pod: &Value) -> Row {
    let (name, phase, is_ready) = in_short(pod);
    let main = &pod["status"]["containerStatuses"][0];
    let ended = main["state"]["terminated"]["exitCode"].as_i64();
    (name, phase, is_ready, main["restartCount"].as_i64().unwrap_or(-1), ended)
}

fn expected() -> Vec<Row> {
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
