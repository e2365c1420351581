//! An agent that gets SIGTERM ends at once and in order, and its pods stay.

use std::fs;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use oarsman_e2e::inspect::{ObservedPod, always, eventually};
use oarsman_e2e::manifest::{pod, script_container};
use oarsman_e2e::scenario::ScenarioContext;
use serde_json::Value;

use super::starts::MAX_WAIT;

/// How long an agent may take to end.
const AT_ONCE: Duration = Duration::from_secs(2);

pub(super) async fn an_agent_that_gets_sigterm_during_a_crash_ends_at_once_and_its_pods_stay(
    cx: &ScenarioContext,
) -> Result<()> {
    let agent = cx.agent()?;
    let manifest = pod("web")
        .container(script_container("main", &["forever"]))
        .container(script_container("crasher", &["sleep:2s", "exit:1"]));
    agent.apply("web", &manifest)?;
    let look = async || cx.inspector().pod("web").await;
    // After its second end the container waits for ten seconds, so that nothing is started during the check.
    let crashed = |pod: &ObservedPod| {
        pod.runs("main")
            && pod.container("crasher").is_ok_and(|it| it.restarts == Some(1) && it.has_exited())
    };
    let seen = eventually(MAX_WAIT, "it has crashed twice", look, crashed).await?;
    let status = agent.terminate(AT_ONCE).await?;
    ensure!(status.code() == Some(0), "it ended with {status}; its log:\n{}", agent.log_tail());
    // At the last moment the agent may have removed the container that crashed first.
    let left = look().await?;
    for name in ["main", "crasher"] {
        ensure!(left.container(name)?.id == seen.container(name)?.id, "{left:#?}");
    }
    let same = |pod: &ObservedPod| ids(pod) == ids(&left) && pod.runs("main");
    always(Duration::from_secs(1), "nothing has changed", look, same).await?;
    let record = agent.root().join("oarsman-statuses").join(format!("{}.json", seen.uid()));
    let record: Value = serde_json::from_str(&fs::read_to_string(record)?)?;
    ensure!(record["phase"] == "Running", "{record:#}");
    for (name, restarts) in [("main", 0), ("crasher", 1)] {
        let recorded = recorded(&record, name)?;
        let id = recorded["containerID"].as_str().unwrap_or_default();
        ensure!(id.ends_with(&seen.container(name)?.id), "{name}: {recorded:#}");
        ensure!(recorded["restartCount"] == restarts, "{name}: {recorded:#}");
    }
    ensure!(recorded(&record, "main")?["state"]["running"].is_object(), "{record:#}");
    agent.start()?;
    let main = |pod: &ObservedPod| pod.container("main").map(|main| main.id.clone()).ok();
    let stays = |pod: &ObservedPod| pod.runs("main") && main(pod) == main(&seen);
    always(Duration::from_secs(2), "the next agent lets it be", look, stays).await
}

fn ids(pod: &ObservedPod) -> Vec<&str> {
    let sandboxes = pod.sandboxes.iter().map(|sandbox| sandbox.id.as_str());
    let mut ids: Vec<&str> =
        sandboxes.chain(pod.containers.iter().map(|container| container.id.as_str())).collect();
    ids.sort_unstable();
    ids
}

fn recorded<'r>(record: &'r Value, container: &str) -> Result<&'r Value> {
    let all = record["containerStatuses"].as_array().context("the record has containers")?;
    all.iter().find(|it| it["name"] == container).context("the record has this container")
}
