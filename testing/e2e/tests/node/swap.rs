//! The Go kubelet and our agent take over from each other while pods run.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use oarsman_e2e::cluster::{
    TestCluster, deployment, ensure_same, long_running_pod, probed, probed_deployment, running,
};
use oarsman_e2e::manifest::pod;
use oarsman_e2e::scenario::{ScenarioContext, under_test};
use oarsman_rig::{Implementation, Kubelet, KubeletOptions};
use tokio::time::sleep;

const STATIC: [&str; 2] = ["s0", "s1"];
const PROBED_STATIC: [&str; 2] = ["p0", "p1"];
/// Pods of both kinds, with probes and without.
const PODS: usize = STATIC.len() + PROBED_STATIC.len() + 4 + 4;
/// How long an agent may take to end.
const ENDING: Duration = Duration::from_secs(20);
/// How long a new agent is watched after it has shown that it works: longer than anything that it does only once after its start.
const SETTLING: Duration = Duration::from_secs(15);

pub(super) async fn our_agent_takes_over_from_the_go_kubelet_and_gives_back(
    cx: &ScenarioContext,
) -> Result<()> {
    let cluster = TestCluster::start_with(cx, &Implementation::Go).await?;
    for name in STATIC {
        cluster.agent.manifests().write(name, &long_running_pod(name).text())?;
    }
    for name in PROBED_STATIC {
        let manifest = pod(name).with("terminationGracePeriodSeconds", 1).container(probed("main"));
        cluster.agent.manifests().write(name, &manifest.text())?;
    }
    cluster.apply(&deployment("web", 4)).await?;
    cluster.apply(&probed_deployment("probed", 4)).await?;
    cluster.wait_until_ready(PODS).await?;
    let before = running(cx).await?;
    ensure!(before.len() == PODS, "{before:?}");
    let go = Arc::clone(&cluster.agent);
    end(&go).await?;
    let files = state_files(go.root())?;
    ensure!(!files.is_empty(), "the Go kubelet keeps its state in {}", go.root().display());

    let observer = cluster.observe_pods().await?;
    let own = cx.join(&under_test()?, &KubeletOptions::default())?;
    own.start()?;
    cluster.wait_until_agent_works("under-ours").await?;
    sleep(SETTLING).await;
    ensure_same(&before, &running(cx).await?)?;
    end(&own).await?;
    observer.undisturbed(PODS + 1)?;
    for (path, bytes) in &files {
        let now = fs::read(path).with_context(|| format!("{} is gone", path.display()))?;
        ensure!(now == *bytes, "{} was changed", path.display());
    }

    let observer = cluster.observe_pods().await?;
    go.start()?;
    cluster.wait_until_agent_works("under-go").await?;
    sleep(SETTLING).await;
    ensure_same(&before, &running(cx).await?)?;
    let disturbed = observer.disturbances();
    ensure!(disturbed.values().all(|it| it.restarts == 0), "{disturbed:?}");
    let flips: usize = disturbed.values().map(|it| it.flips).sum();
    print_progress(&format!("back at the Go kubelet: {flips} flips of its own"));
    Ok(())
}

/// The Go kubelet does not exit with 0 on SIGTERM.
async fn end(agent: &Kubelet) -> Result<()> {
    agent.terminate(ENDING).await.map(drop)
}

/// All files of an agent that belong to no pod, with their contents.
fn state_files(root: &Path) -> Result<BTreeMap<PathBuf, Vec<u8>>> {
    let mut found = BTreeMap::new();
    let mut directories = vec![root.to_owned()];
    while let Some(directory) = directories.pop() {
        for entry in fs::read_dir(directory)? {
            let (path, kind) = {
                let entry = entry?;
                (entry.path(), entry.file_type()?)
            };
            if kind.is_dir() && path != root.join("pods") {
                directories.push(path);
            } else if kind.is_file() {
                let bytes = fs::read(&path)?;
                found.insert(path, bytes);
            }
        }
    }
    Ok(found)
}

#[expect(clippy::print_stderr, reason = "a figure that nobody is judged by")]
fn print_progress(what: &str) {
    eprintln!("{what}");
}
