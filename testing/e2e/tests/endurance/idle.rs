//! The cost of a node on which nothing happens.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Result, ensure};
use oarsman_e2e::inspect::{ObservedPod, eventually};
use oarsman_e2e::manifest::{pod, script_container};
use oarsman_e2e::scenario::ScenarioContext;
use tokio::time::sleep;

use super::kills::MAX_WAIT;

const IDLE: Duration = Duration::from_secs(60);
/// How long events of the last start may still come in, until a relist has seen their effects.
const SETTLE_TIME: Duration = Duration::from_secs(25);
/// The calls of a relist.
const RELIST_CALLS: [&str; 2] = ["ListContainers", "ListPodSandbox"];

pub(super) async fn fifty_idle_pods_cost_nothing_but_the_relist(
    cx: &ScenarioContext,
) -> Result<()> {
    cx.set_cleanup_timeout(MAX_WAIT * 2);
    let proxy = cx.proxy().await?;
    let agent = cx.start(cx.setup()?.through(&proxy).flag("sync-frequency", "20s"))?;
    for number in 0..50 {
        let name = format!("p{number}");
        let manifest = pod(&name).container(script_container("main", &["forever"]));
        agent.apply(&name, &manifest.with("terminationGracePeriodSeconds", 1))?;
    }
    let look = async || cx.inspector().pods().await;
    let run = |pods: &Vec<ObservedPod>| pods.iter().filter(|pod| pod.runs("main")).count() == 50;
    eventually(MAX_WAIT * 2, "all fifty run", look, run).await?;
    sleep(SETTLE_TIME).await;
    let (asked, used) = (proxy.count(), agent.cpu_time()?);
    sleep(IDLE).await;
    let used = agent.cpu_time()?.saturating_sub(used);
    let mut calls: BTreeMap<String, usize> = BTreeMap::new();
    for call in proxy.calls_since(asked) {
        *calls.entry(call.name.to_owned()).or_default() += 1;
    }
    ensure!(calls.keys().all(|name| RELIST_CALLS.contains(&name.as_str())), "{calls:?}");
    // Three relists in a minute, and one more on its edge.
    ensure!(calls.values().all(|count| (2..=4).contains(count)), "{calls:?}");
    ensure!(used < IDLE / 200, "{used:?} of CPU in {IDLE:?}");
    Ok(())
}
