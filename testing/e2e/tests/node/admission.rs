//! Pods of the API server that the node does not admit, as its clients see them.

use anyhow::Result;
use oarsman_e2e::cluster::{MAX_WAIT, TestCluster, long_running_pod};
use oarsman_e2e::inspect::eventually;
use oarsman_e2e::manifest::{PodManifest, pod, script_container};
use oarsman_e2e::scenario::{ScenarioContext, under_test};
use oarsman_rig::KubeletOptions;
use serde_json::{Map, Value, json};

fn with_resources(name: &str, resource: &str, amount: &str, node: &str) -> PodManifest {
    let resources = json!({ "requests": { resource: amount }, "limits": { resource: amount } });
    let main = script_container("main", &["forever"]).with("resources", resources);
    pod(name).with("terminationGracePeriodSeconds", 1).with("nodeName", node).container(main)
}

/// Phase, reason and message of a pod.
fn told(pod: &Value) -> (String, String, String) {
    let text = |field: &str| pod["status"][field].as_str().unwrap_or_default().to_owned();
    (text("phase"), text("reason"), text("message"))
}

async fn until_rejected(
    cluster: &TestCluster,
    name: &str,
    reason: &str,
    message: &str,
) -> Result<()> {
    let look = async || Ok(told(&cluster.pod(name).await?));
    let what = format!("{name} is rejected with {reason}: {message}");
    eventually(MAX_WAIT, &what, look, |(phase, why, said)| {
        phase == "Failed" && why == reason && said.contains(message)
    })
    .await?;
    Ok(())
}

pub(super) async fn pods_that_the_node_has_no_room_for_are_rejected_with_the_reason(
    cx: &ScenarioContext,
) -> Result<()> {
    cx.set_cleanup_timeout(MAX_WAIT * 2);
    let plane = cx.cluster().await?;
    let settings: Map<String, Value> = [("maxPods".to_owned(), json!(2))].into_iter().collect();
    let options = KubeletOptions { settings, ..KubeletOptions::default() };
    let agent = cx.join(&under_test()?, &options)?;
    agent.start()?;
    plane.until_node_is_ready(agent.name(), MAX_WAIT).await?;
    let cluster = TestCluster { plane, agent };
    let node = cluster.agent.name().to_owned();
    // The scheduler would not send these here; a pod that names its node does not pass it.
    cluster.run(&with_resources("cpu", "cpu", "4k", &node)).await?;
    let cpu = "Pod was rejected: Node didn't have enough resource: cpu, requested: 4000000, used: 0, capacity: ";
    until_rejected(&cluster, "cpu", "OutOfcpu", cpu).await?;
    cluster.run(&with_resources("device", "example.com/gpu", "1", &node)).await?;
    let device = "Pod was rejected: Node didn't have enough resource: example.com/gpu, requested: 1, used: 0, capacity: 0";
    until_rejected(&cluster, "device", "OutOfexample.com/gpu", device).await?;
    for name in ["one", "two"] {
        cluster.run(&long_running_pod(name).with("nodeName", node.as_str())).await?;
    }
    cluster.wait_until_ready(2).await?;
    cluster.run(&long_running_pod("three").with("nodeName", node.as_str())).await?;
    let pods = "Pod was rejected: Node didn't have enough resource: pods, requested: 1, used: 2, capacity: 2";
    until_rejected(&cluster, "three", "OutOfpods", pods).await?;
    Ok(())
}
