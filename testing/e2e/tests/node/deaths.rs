//! The agent dies and comes back, and nobody notices.

use std::time::Duration;

use anyhow::Result;
use oarsman_e2e::cluster::{Cluster, deployment};
use oarsman_e2e::scenario::Stage;
use tokio::time::sleep;

/// How long the agent lives and is dead, round by round, in milliseconds: long and short, so that it dies in the midst of starting,
/// too.
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
    stage: &Stage,
) -> Result<()> {
    let cluster = Cluster::start(stage).await?;
    cluster.apply(&deployment("web", 20)).await?;
    cluster.until_ready(20).await?;
    let witness = cluster.witness().await?;
    for (alive, dead) in ROUNDS {
        sleep(Duration::from_millis(alive)).await;
        cluster.agent.kill()?;
        sleep(Duration::from_millis(dead)).await;
        cluster.agent.start()?;
    }
    cluster.until_it_works("late").await?;
    cluster.until_ready(21).await?;
    witness.undisturbed(21)
}
