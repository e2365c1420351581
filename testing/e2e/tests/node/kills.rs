//! The agent of a cluster node is killed again and again, and no client notices.

use std::time::Duration;

use anyhow::Result;
use oarsman_e2e::cluster::{TestCluster, deployment};
use oarsman_e2e::scenario::ScenarioContext;
use serde_json::{Value, json};
use tokio::time::sleep;

/// How long the agent runs and is dead, round by round, in milliseconds: long and short, so that it is also killed during its start.
const ROUNDS: [(u64, u64); 10] = [
    (3000, 0),
    (200, 800),
    (1200, 100),
    (50, 1500),
    (2500, 0),
    (400, 300),
    (5000, 2000),
    (100, 0),
    (800, 600),
    (1800, 1000),
];

pub(super) async fn the_agent_killed_ten_times_under_twenty_ready_pods_is_not_noticed(
    cx: &ScenarioContext,
) -> Result<()> {
    let cluster = TestCluster::start(cx).await?;
    cluster.apply(&deployment("web", 20)).await?;
    cluster.wait_until_ready(20).await?;
    let observer = cluster.observe_pods().await?;
    for (alive, dead) in ROUNDS {
        sleep(Duration::from_millis(alive)).await;
        cluster.agent.kill()?;
        sleep(Duration::from_millis(dead)).await;
        cluster.agent.start()?;
    }
    cluster.wait_until_agent_works("late").await?;
    cluster.wait_until_ready(21).await?;
    observer.undisturbed(21)
}

/// How long the agent runs and is dead, round by round, in milliseconds.
const PROBED_ROUNDS: [(u64, u64); 10] = [
    (1500, 0),
    (300, 400),
    (2500, 100),
    (700, 0),
    (100, 200),
    (3000, 500),
    (50, 0),
    (1000, 800),
    (2000, 0),
    (400, 300),
];
/// How often all rounds are run.
const REPETITIONS: usize = 5;

pub(super) async fn the_agent_killed_fifty_times_under_twenty_probed_pods_is_not_noticed(
    cx: &ScenarioContext,
) -> Result<()> {
    let cluster = TestCluster::start(cx).await?;
    cluster.apply(&probed_deployment("web", 20)).await?;
    cluster.wait_until_ready(20).await?;
    let observer = cluster.observe_pods().await?;
    for (alive, dead) in PROBED_ROUNDS.repeat(REPETITIONS) {
        sleep(Duration::from_millis(alive)).await;
        cluster.agent.kill()?;
        sleep(Duration::from_millis(dead)).await;
        cluster.agent.start()?;
    }
    cluster.wait_until_agent_works("late").await?;
    cluster.wait_until_ready(21).await?;
    observer.undisturbed(21)
}

/// A deployment whose pods have a probe of every kind and of every cheap handler, each every two seconds.
fn probed_deployment(name: &str, replicas: usize) -> Value {
    let mut deployment = deployment(name, replicas);
    let container = &mut deployment["spec"]["template"]["spec"]["containers"][0];
    container["args"] = json!(["listen:8080", "grpc:8081", "forever"]);
    let probe = |handler: Value| {
        let mut probe = json!({ "periodSeconds": 2, "timeoutSeconds": 2 });
        let fields = handler.as_object().cloned().unwrap_or_default();
        fields.into_iter().for_each(|(key, value)| probe[key] = value);
        probe
    };
    container["startupProbe"] = probe(json!({ "tcpSocket": { "port": 8080 } }));
    container["livenessProbe"] = probe(json!({ "grpc": { "port": 8081 } }));
    container["readinessProbe"] = probe(json!({ "httpGet": { "port": 8080 } }));
    deployment
}
