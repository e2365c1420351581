//! `kubectl top` and the autoscaler, by a real metrics-server that scrapes the agent.

use anyhow::{Context, Result, ensure};
use oarsman_e2e::cluster::{MAX_WAIT, TestCluster};
use oarsman_e2e::inspect::eventually;
use oarsman_e2e::scenario::ScenarioContext;
use oarsman_rig::images;
use serde_json::{Value, json};

/// What the container may use at most, in thousandths of a processor, and what it asks for.
const LIMIT: u32 = 200;
const REQUEST: u32 = 100;
/// What it holds in memory at least, in MiB.
const HELD: u32 = 16;

pub(super) async fn kubectl_top_and_the_autoscaler_work_by_metrics_of_the_agent(
    cx: &ScenarioContext,
) -> Result<()> {
    let cluster = TestCluster::start(cx).await?;
    let metrics_server = cluster.plane.start_metrics_server(MAX_WAIT).await?;
    cluster.apply(&busy_deployment()).await?;
    cluster.wait_until_ready(1).await?;
    let top = async || Ok(cluster.kubectl(&["top", "pods", "--no-headers"]).await.ok());
    // It takes a while until all of the memory is held.
    let is_busy = |top: &Option<String>| {
        let usage = top.as_deref().and_then(usage);
        usage.is_some_and(|(cores, memory)| cores > REQUEST && memory >= HELD)
    };
    let seen = eventually(MAX_WAIT, "kubectl top shows the load", top, is_busy).await?;
    let (cores, memory) = seen.as_deref().and_then(usage).context("a pod is shown")?;
    // The quota holds on average; a scrape may fall between two of its periods.
    ensure!(cores <= LIMIT * 11 / 10, "{cores}m of a limit of {LIMIT}m");
    ensure!(memory < 10 * HELD, "{memory} MiB are shown, {HELD} are held");
    let node = cluster.kubectl(&["top", "nodes", "--no-headers"]).await?;
    ensure!(node.contains(cluster.agent.name()) && !node.contains("<unknown>"), "{node}");

    cluster.apply(&autoscaler()).await?;
    let replicas = async || {
        let found = cluster.plane.admin().json(&["get", "deployment", "load"]).await?;
        Ok(found["spec"]["replicas"].as_u64().unwrap_or_default())
    };
    eventually(MAX_WAIT, "the autoscaler adds a replica", replicas, |count| *count == 2).await?;
    cluster.wait_until_ready(2).await?;
    cluster.kubectl(&["delete", "hpa", "load"]).await?;
    cluster.kubectl(&["delete", "deployment", "load", "--cascade=foreground"]).await?;
    metrics_server.stop(&cluster.plane).await
}

/// Cores in thousandths and MiB of the first pod, of lines such as `load-1   199m   17Mi`.
fn usage(top: &str) -> Option<(u32, u32)> {
    let mut columns = top.lines().next()?.split_whitespace().skip(1);
    let cores = columns.next()?.strip_suffix('m')?.parse().ok()?;
    Some((cores, columns.next()?.strip_suffix("Mi")?.parse().ok()?))
}

/// One pod that uses all processor time that it may.
fn busy_deployment() -> Value {
    let labels = json!({ "app": "load" });
    // The shell keeps the text in its memory.
    let script = format!(
        "held=$(head -c {} /dev/zero | tr '\\0' x); trap 'exit 0' TERM; while true; do :; done",
        HELD * 1024 * 1024
    );
    let container = json!({
        "name": "main",
        "image": images::BUSYBOX,
        "command": ["sh", "-c", script],
        "resources": {
            "requests": { "cpu": format!("{REQUEST}m"), "memory": "32Mi" },
            "limits": { "cpu": format!("{LIMIT}m"), "memory": "256Mi" },
        },
    });
    json!({
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": { "name": "load" },
        "spec": {
            "replicas": 1,
            "selector": { "matchLabels": labels },
            "template": {
                "metadata": { "labels": labels },
                "spec": { "terminationGracePeriodSeconds": 1, "containers": [container] },
            },
        },
    })
}

/// Twice the requested time per pod is four times the target: two replicas are the most it may make.
fn autoscaler() -> Value {
    let target = json!({ "type": "Utilization", "averageUtilization": 50 });
    json!({
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": { "name": "load" },
        "spec": {
            "scaleTargetRef": { "apiVersion": "apps/v1", "kind": "Deployment", "name": "load" },
            "minReplicas": 1,
            "maxReplicas": 2,
            "metrics": [{ "type": "Resource", "resource": { "name": "cpu", "target": target } }],
        },
    })
}
