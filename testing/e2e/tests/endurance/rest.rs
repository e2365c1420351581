//! A node on which nothing happens.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Result, ensure};
use oarsman_e2e::look::{PodSeen, eventually};
use oarsman_e2e::manifest::{actor, pod};
use oarsman_e2e::scenario::Stage;
use tokio::time::sleep;

use super::deaths::PATIENCE;

const IDLE: Duration = Duration::from_secs(60);
/// How long events of the last start may still come in, and until an audit has seen what came of them.
const AFTERMATH: Duration = Duration::from_secs(25);
/// What the audit asks for.
const AUDIT: [&str; 2] = ["ListContainers", "ListPodSandbox"];

pub(super) async fn fifty_idle_pods_cost_nothing_but_the_audit(stage: &Stage) -> Result<()> {
    stage.allow(PATIENCE * 2);
    let proxy = stage.proxy().await?;
    let agent = stage.start(stage.setup()?.through(&proxy).flag("sync-frequency", "20s"))?;
    for number in 0..50 {
        let name = format!("p{number}");
        let manifest = pod(&name).container(actor("main", &["forever"]));
        agent.apply(&name, &manifest.with("terminationGracePeriodSeconds", 1))?;
    }
    let look = async || stage.look().pods().await;
    let run = |pods: &Vec<PodSeen>| pods.iter().filter(|pod| pod.runs("main")).count() == 50;
    eventually(PATIENCE * 2, "all fifty run", look, run).await?;
    sleep(AFTERMATH).await;
    let (asked, used) = (proxy.count(), agent.cpu_time()?);
    sleep(IDLE).await;
    let used = agent.cpu_time()?.saturating_sub(used);
    let mut calls: BTreeMap<String, usize> = BTreeMap::new();
    for call in proxy.calls_since(asked) {
        *calls.entry(call.name.to_owned()).or_default() += 1;
    }
    ensure!(calls.keys().all(|name| AUDIT.contains(&name.as_str())), "{calls:?}");
    // Three audits in a minute, and one more on its edge.
    ensure!(calls.values().all(|count| (2..=4).contains(count)), "{calls:?}");
    ensure!(used < IDLE / 200, "{used:?} of CPU in {IDLE:?}");
    Ok(())
}
