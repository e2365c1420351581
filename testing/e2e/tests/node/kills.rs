//! The agent of a cluster node is killed again and again, and no client notices.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Result, ensure};
use jiff::Timestamp;
use oarsman_e2e::cluster::{PROBE_PERIOD, TestCluster, deployment, probed_deployment};
use oarsman_e2e::inspect::longest_gap;
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
    kill_by_rounds(&cluster, &ROUNDS).await?;
    cluster.wait_until_agent_works("late").await?;
    cluster.wait_until_ready(21).await?;
    observer.undisturbed(21)
}

/// The same, with lives that are long enough for every probe to be asked once.
const PROBED_ROUNDS: [(u64, u64); 10] = [
    (2500, 0),
    (2000, 300),
    (3000, 100),
    (2200, 0),
    (2000, 200),
    (2800, 300),
    (2400, 0),
    (2000, 100),
    (2600, 0),
    (2100, 200),
];
/// How often all rounds are run.
const REPETITIONS: usize = 5;
/// How much later than its period a probe may begin because its agent was killed.
const LATE: Duration = Duration::from_secs(2);

pub(super) async fn the_agent_killed_fifty_times_under_twenty_probed_pods_is_not_noticed(
    cx: &ScenarioContext,
) -> Result<()> {
    let cluster = TestCluster::start(cx).await?;
    cluster.apply(&probed_deployment("web", 20)).await?;
    cluster.wait_until_ready(20).await?;
    let observer = cluster.observe_pods().await?;
    kill_by_rounds(&cluster, &ROUNDS).await?;
    cluster.wait_until_agent_works("late").await?;
    let before = probe_times(cx).await?;
    kill_by_rounds(&cluster, &PROBED_ROUNDS.repeat(REPETITIONS)).await?;
    let killed = probe_times(cx).await?;
    sleep(PROBE_PERIOD + LATE).await;
    let after = probe_times(cx).await?;
    cluster.wait_until_ready(21).await?;
    observer.undisturbed(21)?;
    ensure!(after.len() == 40, "a readiness and a liveness probe of each pod: {:?}", after.keys());
    for (probe, times) in &after {
        let count = |of: &ProbeTimes| of.get(probe).map_or(0, Vec::len);
        ensure!(times.len() > count(&killed), "{probe:?} is not asked after the last kill");
        let since = times.get(count(&before).saturating_sub(1)..).unwrap_or_default();
        let gap = longest_gap(since);
        ensure!(gap <= PROBE_PERIOD + LATE, "{probe:?} was not asked for {gap:?}");
    }
    Ok(())
}

/// Kills the agent and starts it again, after it has run for and stays dead for so many milliseconds.
async fn kill_by_rounds(cluster: &TestCluster, rounds: &[(u64, u64)]) -> Result<()> {
    for (alive, dead) in rounds {
        sleep(Duration::from_millis(*alive)).await;
        cluster.agent.kill()?;
        sleep(Duration::from_millis(*dead)).await;
        cluster.agent.start()?;
    }
    Ok(())
}

/// When probes began, as their containers printed it: by the container's id and the probe's line.
type ProbeTimes = BTreeMap<(String, String), Vec<Timestamp>>;

async fn probe_times(cx: &ScenarioContext) -> Result<ProbeTimes> {
    let mut times = ProbeTimes::new();
    for container in cx.inspector().pods().await?.iter().flat_map(|pod| &pod.containers) {
        let printed = container.log_times()?.into_iter();
        times.extend(printed.map(|(line, at)| ((container.id.clone(), line), at)));
    }
    Ok(times)
}
