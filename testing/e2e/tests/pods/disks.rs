//! The agent's disk is full or read-only, at its start and while it runs: it starts, says so, and pods can be deleted.

use std::fs;
use std::os::unix::fs::symlink;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Result, ensure};
use oarsman_e2e::agent_process::AgentProcess;
use oarsman_e2e::disk::TestDisk;
use oarsman_e2e::inspect::eventually;
use oarsman_e2e::manifest::{PodManifest, pod, script_container};
use oarsman_e2e::scenario::ScenarioContext;

use super::starts::MAX_WAIT;

const ENDING: Duration = Duration::from_secs(15);

/// A disk, and an agent whose root directory is on it.
struct AgentOnDisk<'a> {
    cx: &'a ScenarioContext,
    disk: TestDisk,
    agent: Arc<AgentProcess>,
}

impl<'a> AgentOnDisk<'a> {
    fn start(cx: &'a ScenarioContext) -> Result<Self> {
        let disk = TestDisk::create(&cx.scratch())?;
        let root = disk.path().join("root");
        fs::create_dir(&root)?;
        symlink(&root, cx.rig().agents().join("agent"))?;
        let agent = cx.start(cx.setup()?)?;
        Ok(Self { cx, disk, agent })
    }

    async fn starts(&self, name: &str) -> Result<()> {
        self.agent.apply(name, &lasting(name))?;
        self.runs(name).await
    }

    async fn runs(&self, name: &str) -> Result<()> {
        let look = async || self.cx.inspector().pod(name).await;
        eventually(MAX_WAIT, &format!("{name} runs"), look, |pod| pod.runs("main")).await.map(drop)
    }

    async fn ends(&self, name: &str) -> Result<()> {
        self.agent.manifests().remove(name)?;
        let look = async || self.cx.inspector().pod(name).await;
        eventually(MAX_WAIT, &format!("{name} ends"), look, |pod| pod.is_gone()).await.map(drop)
    }

    /// Waits until the log has these words after its first `from` bytes.
    async fn says(&self, from: usize, words: &str) -> Result<()> {
        let text = async || {
            let log = fs::read(self.agent.log())?;
            Ok(String::from_utf8_lossy(log.get(from..).unwrap_or_default()).into_owned())
        };
        eventually(MAX_WAIT, &format!("it says {words:?}"), text, |text| text.contains(words))
            .await
            .map(drop)
    }

    fn said(&self) -> Result<usize> {
        Ok(usize::try_from(fs::metadata(self.agent.log())?.len())?)
    }

    /// Waits until nothing is left of pods that have ended: an agent that is asked to end before leaves the rest to the next one.
    async fn wait_until_clean(&self) -> Result<()> {
        let directories = [self.disk.path().join("root/pods"), self.cx.rig().pod_logs()];
        let left = async || {
            let mut left = Vec::new();
            for directory in &directories {
                let entries = fs::read_dir(directory)?;
                left.extend(entries.filter_map(Result::ok).map(|entry| entry.path()));
            }
            Ok(left)
        };
        let what = "the directories of pods that have ended are removed";
        eventually(MAX_WAIT, what, left, Vec::is_empty).await.map(drop)
    }

    /// Ends the agent, and checks that nothing on its disk is damaged.
    async fn finish(self) -> Result<()> {
        self.wait_until_clean().await?;
        let status = self.agent.terminate(ENDING).await?;
        ensure!(status.success(), "the agent ended with {status}");
        let broken = fs::read_dir(self.disk.path().join("root/oarsman-statuses"))?
            .filter_map(Result::ok)
            .filter(|entry| entry.path().extension().is_some_and(|it| it == "broken"));
        ensure!(broken.count() == 0, "a record is damaged");
        self.disk.unmount()?;
        self.disk.check()
    }
}

fn lasting(name: &str) -> PodManifest {
    pod(name)
        .with("terminationGracePeriodSeconds", 1)
        .container(script_container("main", &["forever"]))
}

pub(super) async fn on_a_full_disk_the_agent_starts_and_pods_can_be_deleted(
    cx: &ScenarioContext,
) -> Result<()> {
    let on = AgentOnDisk::start(cx)?;
    for name in ["a", "b", "c"] {
        on.starts(name).await?;
    }
    on.disk.fill()?;
    let said = on.said()?;
    on.agent.apply("late", &lasting("late"))?;
    on.says(said, "No space left on device").await?;
    on.ends("a").await?;
    let before = cx.inspector().pod("b").await?.container("main")?.id.clone();
    let said = on.said()?;
    on.agent.restart()?;
    on.says(said, "No space left on device").await?;
    on.ends("c").await?;
    let now = cx.inspector().pod("b").await?.container("main")?.id.clone();
    ensure!(before == now, "a pod was disturbed by the restart on a full disk");
    on.disk.empty()?;
    on.runs("late").await?;
    for name in ["b", "late"] {
        on.ends(name).await?;
    }
    on.finish().await
}

pub(super) async fn on_a_read_only_disk_the_agent_starts_and_pods_can_be_deleted(
    cx: &ScenarioContext,
) -> Result<()> {
    let on = AgentOnDisk::start(cx)?;
    for name in ["a", "b", "c"] {
        on.starts(name).await?;
    }
    on.agent.kill()?;
    on.disk.remount("ro")?;
    let said = on.said()?;
    on.agent.start()?;
    on.says(said, "Read-only file system").await?;
    on.ends("a").await?;
    on.agent.kill()?;
    on.disk.remount("rw")?;
    on.agent.start()?;
    on.starts("d").await?;
    // From here on it is read-only in the middle of the agent's life, until no container has a file of it mounted any more.
    on.disk.fail()?;
    let said = on.said()?;
    on.ends("b").await?;
    on.says(said, "Read-only file system").await?;
    on.agent.restart()?;
    for name in ["c", "d"] {
        on.ends(name).await?;
    }
    on.agent.kill()?;
    on.disk.unmount()?;
    on.disk.check()?;
    on.disk.mount()?;
    on.agent.start()?;
    on.starts("e").await?;
    on.ends("e").await?;
    on.finish().await
}
