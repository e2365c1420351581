//! The everyday use of a cluster: a deployment is scaled, updated and deleted.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context, Result, ensure};
use oarsman_e2e::cluster::{MAX_WAIT, TestCluster, deployment, summary};
use oarsman_e2e::inspect::eventually;
use oarsman_e2e::scenario::ScenarioContext;
use oarsman_rig::images;
use serde_json::Value;

/// Reasons and messages of the events of one pod, each with its count.
type EventCounts = BTreeMap<(String, String), u64>;

pub(super) async fn a_deployment_is_scaled_updated_and_deleted_and_its_events_read_right(
    cx: &ScenarioContext,
) -> Result<()> {
    let cluster = TestCluster::start(cx).await?;
    let observer = cluster.observe_pods().await?;
    cluster.apply(&deployment("web", 5)).await?;
    roll_out(&cluster).await?;
    cluster.wait_until_ready(5).await?;
    cluster.kubectl(&["scale", "deployment/web", "--replicas=20"]).await?;
    roll_out(&cluster).await?;
    let before = cluster.wait_until_ready(20).await?;
    cluster.kubectl(&["set", "env", "deployment/web", "COLOUR=red"]).await?;
    roll_out(&cluster).await?;
    let list = async || {
        Ok(cluster.pods().await?.iter().map(|pod| summary(pod).0).collect::<BTreeSet<_>>())
    };
    let new = |pods: &BTreeSet<String>| pods.len() == 20 && pods.is_disjoint(&before);
    eventually(MAX_WAIT, "all twenty are new ones", list, new).await?;
    cluster.kubectl(&["delete", "deployment/web"]).await?;
    eventually(MAX_WAIT, "no pod is left", list, BTreeSet::is_empty).await?;
    let pods = observer.names();
    ensure!(pods.len() == 40, "twenty were replaced by twenty: {pods:?}");
    for pod in &pods {
        let history = observer.history(pod)?;
        ensure!(history.iter().all(|sight| sight.restarts == 0), "{history:#?}");
    }
    let look = async || events_by_pod(&cluster).await;
    let right = |told: &BTreeMap<String, EventCounts>| {
        told.len() == 40 && told.iter().all(|(pod, told)| *told == expected(pod))
    };
    eventually(MAX_WAIT, "events read right", look, right).await?;
    Ok(())
}

async fn roll_out(cluster: &TestCluster) -> Result<()> {
    let timeout = format!("--timeout={}s", MAX_WAIT.as_secs());
    let arguments = ["rollout", "status", "deployment/web", &timeout];
    cluster.plane.admin().run_for(MAX_WAIT * 2, &arguments, None).await.map(drop)
}

/// The events of all pods, by name of the pod.
async fn events_by_pod(cluster: &TestCluster) -> Result<BTreeMap<String, EventCounts>> {
    let events = cluster.plane.admin().json(&["get", "events"]).await?;
    let mut told = BTreeMap::<String, EventCounts>::new();
    for event in events["items"].as_array().context("a list has items")? {
        let about = &event["involvedObject"];
        if about["kind"] == "Pod" {
            let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
            let one = (text(&event["reason"]), text(&event["message"]));
            let count = event["count"].as_u64().unwrap_or(1);
            *told.entry(text(&about["name"])).or_default().entry(one).or_default() += count;
        }
    }
    Ok(told)
}

fn expected(pod: &str) -> EventCounts {
    let present = format!(
        "Container image {:?} already present on machine and can be accessed by the pod",
        images::SCRIPT
    );
    let rows = [
        ("Scheduled", format!("Successfully assigned default/{pod} to node")),
        ("Pulled", present),
        ("Created", "Container created".to_owned()),
        ("Started", "Container started".to_owned()),
        ("Killing", "Stopping container main".to_owned()),
    ];
    rows.map(|(reason, message)| ((reason.to_owned(), message), 1)).into_iter().collect()
}
