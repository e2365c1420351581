//! Pods in user namespaces, on the kernel.

use std::fs;

use anyhow::{Context, Result, ensure};
use oarsman_e2e::inspect::eventually;
use oarsman_e2e::manifest::{pod, script_container};
use oarsman_e2e::scenario::ScenarioContext;
use serde_json::{Value, json};

use super::starts::MAX_WAIT;

/// Two pods are root in themselves and two other users on the node; their files and a restart of the agent go with it.
pub(super) async fn pods_in_user_namespaces_have_ids_of_their_own_over_a_restart(
    cx: &ScenarioContext,
) -> Result<()> {
    let agent = cx.agent()?;
    let names = ["one", "two"];
    for name in names {
        let script = ["id", "cat:/proc/self/uid_map", "write:/cache/f=x", "sleep:5s", "exit:1"];
        let manifest = pod(name)
            .with("hostUsers", false)
            .with("terminationGracePeriodSeconds", 1)
            .container(script_container("main", &script).mount("cache", "/cache"))
            .add("volumes", json!({ "name": "cache", "emptyDir": {} }));
        agent.apply(name, &manifest)?;
    }
    let mut before = Vec::new();
    for name in names {
        before.push(first_id(cx, name, 1).await?);
    }
    ensure!(before[0] != before[1], "{before:?}");
    agent.kill()?;
    agent.start()?;
    for (name, ids) in names.into_iter().zip(&before) {
        let seen = cx.inspector().pod(name).await?;
        let file = agent.root().join("pods").join(seen.uid()).join("userns");
        let file: Value = serde_json::from_str(&fs::read_to_string(&file)?)?;
        let host_id = file["uidMappings"][0]["hostId"].to_string();
        ensure!(host_id == *ids, "{file}");
        ensure!(first_id(cx, name, 2).await? == *ids, "the same ids after a restart of both");
    }
    Ok(())
}

/// The id on the node of the pod's root, when its container has run so often.
async fn first_id(cx: &ScenarioContext, pod: &str, runs: usize) -> Result<String> {
    let texts = async || {
        let seen = cx.inspector().pod(pod).await?;
        let is_last =
            |restarts: Option<u32>| restarts.is_some_and(|count| count as usize + 1 >= runs);
        let main = seen.container("main")?;
        if is_last(main.restarts) { main.log_texts() } else { Ok(Vec::new()) }
    };
    let what = format!("{pod} runs for the {runs}. time");
    let texts = eventually(MAX_WAIT, &what, texts, |texts| texts.len() == 2).await?;
    ensure!(texts[0] == "0:0", "{texts:?}");
    let map: Vec<&str> = texts[1].split_ascii_whitespace().collect();
    ensure!(map.len() == 3 && map[0] == "0" && map[2] == "65536", "{texts:?}");
    map.get(1).map(|first| (*first).to_owned()).context("a range")
}
