//! A root directory behind a symbolic link: volumes are mounted once, however often a pod is synced, and the pod ends.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use anyhow::{Result, ensure};
use oarsman_e2e::inspect::eventually;
use oarsman_e2e::manifest::{pod, script_container};
use oarsman_e2e::scenario::ScenarioContext;
use oarsman_host::mounts;
use serde_json::json;

use super::starts::MAX_WAIT;

/// Each is a change of a Secret, which syncs its pod.
const SYNCS: usize = 100;

/// The mounts below a directory.
fn mounts_below(directory: &Path) -> Result<usize> {
    Ok(mounts::beneath(&mounts::current()?, directory).count())
}

fn secret(word: &str) -> String {
    let metadata = json!({ "name": "login" });
    json!({ "apiVersion": "v1", "kind": "Secret", "metadata": metadata, "stringData": { "word": word } })
        .to_string()
}

pub(super) async fn a_root_behind_a_link_has_constant_mounts_over_100_syncs(
    cx: &ScenarioContext,
) -> Result<()> {
    let setup = cx.setup()?.in_run_mode();
    let real = cx.scratch().join("real-root");
    fs::create_dir(&real)?;
    let link = cx.rig().agents().join("agent");
    symlink(&real, &link)?;
    let agent = cx.prepare(setup)?;
    ensure!(fs::read_link(agent.root())? == real, "the agent's root is no link");
    agent.manifests().write("login", &secret("word-0"))?;
    let main =
        script_container("main", &["forever"]).mount("fast", "/fast").mount("login", "/login");
    let manifest = pod("web")
        .with("terminationGracePeriodSeconds", 1)
        .add("volumes", json!({ "name": "fast", "emptyDir": { "medium": "Memory" } }))
        .add("volumes", json!({ "name": "login", "secret": { "secretName": "login" } }))
        .container(main);
    agent.apply("web", &manifest)?;
    agent.start()?;
    let look = async || cx.inspector().pod("web").await;
    let seen = eventually(MAX_WAIT, "the pod runs", look, |pod| pod.runs("main")).await?;
    let before = mounts_below(&real)?;
    ensure!(before >= 1, "the volume in memory is not mounted below {}", real.display());
    let volumes = real.join("pods").join(seen.uid()).join("volumes");
    let file = volumes.join("kubernetes.io~secret/login/word");
    for number in 1..=SYNCS {
        let word = format!("word-{number}");
        agent.manifests().write("login", &secret(&word))?;
        let text = async || Ok(fs::read_to_string(&file)?);
        eventually(MAX_WAIT, &format!("the pod has {word}"), text, |text| *text == word).await?;
        let now = mounts_below(&real)?;
        ensure!(now == before, "{before} mounts became {now} after {number} syncs");
    }
    agent.manifests().clear()?;
    eventually(MAX_WAIT, "the pod ends", look, |pod| pod.is_gone()).await?;
    let left = async || mounts_below(&real);
    eventually(MAX_WAIT, "nothing stays mounted", left, |left| *left == 0).await?;
    Ok(())
}
