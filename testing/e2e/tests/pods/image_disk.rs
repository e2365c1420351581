//! Images on a file system of their own that is full.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use oarsman_cri::Runtime;
use oarsman_e2e::agent_process::{AgentProcess, AgentSetup};
use oarsman_e2e::inspect::{ObservedPod, RuntimeInspector, eventually};
use oarsman_e2e::manifest::{pod, script_container};
use oarsman_e2e::scenario::{ScenarioContext, rig_options};
use oarsman_rig::images::{ImageConfig, ImageLayer, OciImage};
use oarsman_rig::{Rig, RigOptions};
use rustix::fs::{FallocateFlags, fallocate, statvfs};

use super::starts::MAX_WAIT;

const MIB: u64 = 1 << 20;
const DISK: u64 = 256 * MIB;
/// The size of a layer; containerd keeps it twice, packed and unpacked.
const LAYER: usize = 8 << 20;
/// What is left free of a full disk.
const FREE: u64 = 4 * MIB;
const ENDING: Duration = Duration::from_secs(15);
/// From one collection of images to the next.
const PERIOD: Duration = Duration::from_secs(300);
/// What the agent logs for each image that it removes.
const REMOVED: &str = "unused image removed";

/// A rig of its own, whose images are on a small disk.
struct ImageDisk {
    rig: Rig,
    inspector: RuntimeInspector,
}

impl ImageDisk {
    async fn new(cx: &ScenarioContext) -> Result<Self> {
        let options = rig_options(cx.rig().flavour())?;
        let options = RigOptions { image_disk: Some(DISK), ..options };
        let rig = Rig::start(options).await?;
        let inspector = RuntimeInspector::new(&rig)?;
        Ok(Self { rig, inspector })
    }

    /// An agent that removes images from `high` per cent on down to `low`, however young they are.
    fn agent(&self, high: u64, low: u64) -> Result<AgentProcess> {
        let setup = AgentSetup::on(&self.rig, "agent")?
            .flag("image-gc-high-threshold", &high.to_string())
            .flag("image-gc-low-threshold", &low.to_string())
            .flag("minimum-image-ttl-duration", "0s");
        AgentProcess::new(setup)
    }

    /// Puts images on the node, each with a layer of its own.
    async fn import(&self, names: &[&str]) -> Result<()> {
        let script = fs::read(self.rig.parts().script.join("script"))?;
        let mut images = Vec::new();
        for (number, name) in names.iter().enumerate() {
            let base = ImageLayer::default().program("script", &script);
            let mut content = vec![u8::try_from(number)?; LAYER];
            content.extend(name.bytes());
            let own = ImageLayer::default().program("filler", &content);
            let entrypoint = vec!["/script".to_owned()];
            let config = ImageConfig { entrypoint, ..ImageConfig::default() };
            images.push(OciImage::build(&full_name(name), &[base, own], &config)?);
        }
        self.rig.import(&images).await
    }

    /// Fills the disk, as data of others do, until only a little is free.
    fn fill(&self) -> Result<()> {
        let there = statvfs(self.rig.images())?;
        let free = there.f_bavail * there.f_frsize;
        let file = File::create(self.rig.images().join("ballast"))?;
        let size = free.checked_sub(FREE).context("the disk is full already")?;
        Ok(fallocate(file, FallocateFlags::empty(), 0, size)?)
    }

    /// How much of the disk is in use, in per cent.
    fn used(&self) -> Result<u64> {
        let there = statvfs(self.rig.images())?;
        Ok((there.f_blocks - there.f_bavail) * 100 / there.f_blocks)
    }

    /// Which of these images are on the node.
    async fn present(&self, names: &[&str]) -> Result<BTreeSet<String>> {
        let listed = self.rig.client()?.list_images(None).await?;
        let tags: BTreeSet<String> = listed.into_iter().flat_map(|image| image.repo_tags).collect();
        let there = names.iter().filter(|name| tags.contains(&full_name(name)));
        Ok(there.map(|name| (*name).to_owned()).collect())
    }

    /// Runs a pod of an image; its container.
    async fn run(&self, agent: &AgentProcess, name: &str) -> Result<String> {
        let main = script_container("main", &["forever"])
            .with("image", full_name(name).into())
            .with("imagePullPolicy", "Never".into());
        let manifest = pod(name).with("terminationGracePeriodSeconds", 1).container(main);
        agent.apply(name, &manifest)?;
        let runs = |pod: &ObservedPod| pod.runs("main");
        let look = async || self.inspector.pod(name).await;
        let seen = eventually(MAX_WAIT, &format!("{name} runs"), look, runs).await?;
        Ok(seen.container("main")?.id.clone())
    }

    async fn finish(self, agent: &AgentProcess) -> Result<()> {
        agent.manifests().clear()?;
        let pods = async || self.inspector.pods().await;
        eventually(MAX_WAIT, "all pods are gone", pods, Vec::is_empty).await?;
        let status = agent.terminate(ENDING).await?;
        ensure!(status.success(), "the agent ended with {status}");
        self.rig.stop().await
    }
}

/// How many pods run.
async fn running_pods(disk: &ImageDisk) -> Result<usize> {
    let pods = disk.inspector.pods().await?;
    Ok(pods.iter().filter(|pod| pod.runs("main")).count())
}

fn full_name(name: &str) -> String {
    format!("rig.local/{name}:1")
}

/// The ids of the images that an agent has removed, in order.
fn removed(agent: &AgentProcess) -> Result<Vec<String>> {
    let log = fs::read_to_string(agent.log())?;
    let lines = log.lines().filter(|line| line.contains(REMOVED));
    let id = |line: &str| {
        let (_, rest) = line.split_once("sha256:").with_context(|| line.to_owned())?;
        Ok(rest.chars().take_while(char::is_ascii_hexdigit).collect())
    };
    lines.map(id).collect()
}

pub(super) async fn images_go_from_a_full_disk_down_to_the_low_threshold_and_running_pods_keep_theirs(
    cx: &ScenarioContext,
) -> Result<()> {
    let disk = ImageDisk::new(cx).await?;
    let names = ["a", "b", "c", "d", "e", "f"];
    disk.import(&names).await?;
    let agent = disk.agent(100, 99)?;
    agent.start()?;
    let running = [disk.run(&agent, "a").await?, disk.run(&agent, "e").await?];
    agent.terminate(ENDING).await?;
    disk.fill()?;
    let used = disk.used()?;
    ensure!(used >= 97, "only {used}% of the disk are used");
    let (high, low) = (used - 1, used - 12);
    let agent = disk.agent(high, low)?;
    agent.start()?;
    // containerd gives the room of removed images back a moment later.
    let look = async || Ok((disk.used()?, disk.present(&names).await?));
    let what = format!("of {used}% at most {low}% are used");
    let seen = eventually(MAX_WAIT, &what, look, |(used, _)| *used <= low).await?;
    let (_, present) = &seen;
    ensure!(present.contains("a") && present.contains("e"), "images of running pods: {seen:?}");
    // What a removal gives back is counted by what the runtime says of the image, which is less than what it takes on the disk.
    ensure!(present.len() > 2, "no more than is needed goes: {seen:?}");
    for (name, id) in ["a", "e"].iter().zip(&running) {
        let now = disk.inspector.pod(name).await?;
        ensure!(now.runs("main") && now.container("main")?.id == *id, "{name} was disturbed");
    }
    let removals = removed(&agent)?;
    // Those that every rig has may be among them.
    ensure!(removals.len() >= names.len() - present.len(), "{removals:?} {present:?}");
    disk.finish(&agent).await
}

/// Takes five minutes, the time between two collections: the first one notices which images are in use, the second one removes.
pub(super) async fn images_that_were_not_used_for_longest_go_first(
    cx: &ScenarioContext,
) -> Result<()> {
    let disk = ImageDisk::new(cx).await?;
    let (old, used, kept) = (["a", "b"], "used", "kept");
    disk.import(&[&old[..], &[used, kept]].concat()).await?;
    let agent = disk.agent(100, 99)?;
    agent.start()?;
    for name in [used, kept] {
        disk.run(&agent, name).await?;
    }
    agent.terminate(ENDING).await?;
    // With four more images the high threshold is exceeded.
    let before = disk.used()?;
    let (high, low) = (before + 4, before + 1);
    let agent = disk.agent(high, low)?;
    agent.start()?;
    // The first collection is the first thing that an agent does, and finds both pods running: `used` goes only when the agent has read
    // its manifests, and then it has a second of grace.
    let both = async || running_pods(&disk).await;
    eventually(MAX_WAIT, "both pods run", both, |count| *count == 2).await?;
    agent.manifests().remove(used)?;
    let look = async || disk.inspector.pod(used).await;
    eventually(MAX_WAIT, "the pod is gone", look, ObservedPod::is_gone).await?;
    disk.import(&["new-1", "new-2"]).await?;
    ensure!(disk.used()? >= high, "{} of {high}", disk.used()?);
    let all = ["a", "b", used, kept, "new-1", "new-2"];
    let look = async || disk.present(&all).await;
    let fewer = |present: &BTreeSet<String>| present.len() < all.len();
    eventually(PERIOD + MAX_WAIT, "images are removed", look, fewer).await?;
    // All removals of one collection follow each other at once.
    let look = async || Ok((disk.used()?, disk.present(&all).await?));
    let (_, present) =
        eventually(MAX_WAIT, "the low threshold", look, |(used, _)| *used <= low).await?;
    ensure!(present.contains(kept) && present.contains(used), "{present:?}");
    ensure!(old.iter().any(|name| !present.contains(*name)), "{present:?}");
    let newer_went = ["new-1", "new-2"].iter().any(|name| !present.contains(*name));
    let older_stay = old.iter().any(|name| present.contains(*name));
    ensure!(!(newer_went && older_stay), "a newer one went before an older one: {present:?}");
    disk.finish(&agent).await
}
