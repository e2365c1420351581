//! The agent of a cluster node is killed again and again, and no client notices.

use std::time::Duration;

use anyhow::Result;
use oarsman_e2e::cluster::{TestCluster, deployment};
use oarsman_e2e::scenario::ScenarioContext;
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
