//! The agent or the runtime is killed again and again, and comes back.

use std::time::Duration;

use anyhow::{Result, ensure};
use oarsman_e2e::agent_process::AgentProcess;
use oarsman_e2e::inspect::{ObservedPod, eventually};
use oarsman_e2e::manifest::{PodManifest, pod, script_container};
use oarsman_e2e::scenario::ScenarioContext;
use oarsman_rig::images::{self, ImageConfig};
use oarsman_rig::{Registry, RepositoryBehaviour};
use tokio::time::{Instant, sleep};

use super::container_observer::ContainerObserver;

pub(super) const MAX_WAIT: Duration = Duration::from_secs(60);

/// A pseudo-random sequence that is the same every time.
struct TestRng(u64);

impl TestRng {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % limit
    }
}

fn lasting(name: &str) -> PodManifest {
    pod(name)
        .with("terminationGracePeriodSeconds", 1)
        .container(script_container("keep", &["forever"]))
}

/// Changes while the agent is killed again and again: pods are added, edited and removed, some with images from a slow registry.
struct Churn<'a> {
    agent: &'a AgentProcess,
    image: String,
    rng: TestRng,
}

impl Churn<'_> {
    fn change_pods(&mut self, round: u64) -> Result<()> {
        let name = format!("c{}", self.rng.below(4));
        match self.rng.below(4) {
            0 => {
                // The manifest may not exist.
                self.agent.manifests().remove(&name).ok();
                Ok(())
            }
            1 => self.agent.apply(&name, &self.pulled(&name, round)),
            2 => self.agent.apply(&name, &Self::edited(&name, round)),
            _ => self.agent.apply(&name, &short(&name, round)),
        }
    }

    /// Another image under another tag every time, so that there is always something to pull.
    fn pulled(&self, name: &str, round: u64) -> PodManifest {
        let once = script_container("once", &["forever"]).with("image", self.image.clone().into());
        let once = once.with("imagePullPolicy", "Always".into());
        pod(name).with_metadata("labels", round_label(round)).with(GRACE, 1).container(once)
    }

    fn edited(name: &str, round: u64) -> PodManifest {
        let image = if round.is_multiple_of(2) { images::SCRIPT } else { images::SCRIPT_AS_USER };
        let main = script_container("main", &["forever"]).with("image", image.into());
        pod(name).with_metadata("uid", format!("fixed-{name}")).with(GRACE, 1).container(main)
    }
}

const GRACE: &str = "terminationGracePeriodSeconds";

fn round_label(round: u64) -> serde_json::Value {
    serde_json::json!({ "round": round.to_string() })
}

fn short(name: &str, round: u64) -> PodManifest {
    let labels = round_label(round);
    let first = script_container("first", &["sleep:300ms"]);
    let once = script_container("once", &["on-term:sleep:300ms,exit:0", "forever"]);
    pod(name).with_metadata("labels", labels).with(GRACE, 2).init(first).container(once)
}

fn slow_registry(cx: &ScenarioContext) -> Result<Registry> {
    // Not the content of the preloaded image under another name: a pull of that is a record of the preloaded one too, whose pods then have to
    // prove their right to it.
    let config = ImageConfig { env: vec!["FAR=yes".to_owned()], ..ImageConfig::default() };
    let registry = Registry::start(vec![images::script_image(cx.rig().parts(), "far:1", config)?])?;
    registry.set(
        "far",
        RepositoryBehaviour { delay: Duration::from_millis(200), ..RepositoryBehaviour::default() },
    );
    cx.rig().allow_registry(registry.address())?;
    Ok(registry)
}

pub(super) async fn the_agent_killed_fifty_times_doubles_nothing_and_restarts_nothing(
    cx: &ScenarioContext,
) -> Result<()> {
    let registry = slow_registry(cx)?;
    let agent = cx.agent()?;
    for name in ["k0", "k1", "k2"] {
        agent.apply(name, &lasting(name))?;
    }
    until_all_run(cx, "keep", 3).await?;
    let mut observer = ContainerObserver::default();
    let mut churn = Churn { agent: &agent, image: registry.name("far:1"), rng: TestRng(42) };
    for round in 0..50 {
        churn.change_pods(round)?;
        let until = Instant::now() + Duration::from_millis(churn.rng.below(1200));
        while Instant::now() < until {
            observer.observe(cx.inspector()).await?;
            sleep(Duration::from_millis(30)).await;
        }
        agent.kill()?;
        observer.observe(cx.inspector()).await?;
        agent.start()?;
    }
    for name in ["c0", "c1", "c2", "c3"] {
        agent.apply(name, &short(name, 99))?;
    }
    let settled = async || {
        observer.observe(cx.inspector()).await?;
        let pods = cx.inspector().pods().await?;
        Ok(pods.iter().filter(|pod| pod.runs("once")).count() == 4 && pods.len() == 7)
    };
    eventually(MAX_WAIT, "all is as it should be", settled, |settled| *settled).await?;
    let kept = observer.ran("keep");
    ensure!(kept.len() == 3 && kept.iter().all(|ids| ids.len() == 1), "restarted: {kept:?}");
    let once = observer.ran("once");
    ensure!(once.iter().all(|ids| ids.len() == 1), "started twice: {once:?}");
    ensure!(once.len() > 4, "nothing ever came to run: {once:?}");
    Ok(())
}

async fn until_all_run(
    cx: &ScenarioContext,
    container: &str,
    count: usize,
) -> Result<Vec<ObservedPod>> {
    let look = async || cx.inspector().pods().await;
    let run =
        |pods: &Vec<ObservedPod>| pods.iter().filter(|pod| pod.runs(container)).count() == count;
    eventually(MAX_WAIT * 2, &format!("{count} pods run"), look, run).await
}

pub(super) async fn containerd_killed_ten_times_under_twenty_pods_restarts_nothing(
    cx: &ScenarioContext,
) -> Result<()> {
    let agent = cx.start(cx.setup()?.flag("sync-frequency", "2s"))?;
    for number in 0..20 {
        let name = format!("k{number}");
        agent.apply(&name, &lasting(&name))?;
    }
    let before = until_all_run(cx, "keep", 20).await?;
    let mut rng = TestRng(7);
    for _ in 0..10 {
        sleep(Duration::from_millis(rng.below(1000))).await;
        cx.rig().kill()?;
        sleep(Duration::from_millis(rng.below(1000))).await;
        cx.rig().restart().await?;
    }
    // One more pod shows that the agent is connected again.
    agent.apply(
        "late",
        &pod("late").with(GRACE, 1).container(script_container("late", &["forever"])),
    )?;
    until_all_run(cx, "late", 1).await?;
    let after = until_all_run(cx, "keep", 20).await?;
    for pod in &before {
        let now = after.iter().find(|other| other.uid() == pod.uid());
        let same = now.is_some_and(|now| {
            let ids =
                |pod: &ObservedPod| pod.containers.iter().map(|c| c.id.clone()).collect::<Vec<_>>();
            ids(now) == ids(pod) && now.sandboxes.len() == 1
        });
        ensure!(same, "was {pod:#?}\nis {now:#?}");
    }
    ensure!(agent.is_alive(), "the agent has ended");
    Ok(())
}
