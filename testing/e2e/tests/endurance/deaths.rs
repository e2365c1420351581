//! The agent dies, or the runtime does, and comes back.

use std::time::Duration;

use anyhow::{Result, ensure};
use oarsman_e2e::look::{PodSeen, eventually};
use oarsman_e2e::manifest::{Manifest, actor, pod};
use oarsman_e2e::node::Node;
use oarsman_e2e::scenario::Stage;
use oarsman_rig::images::{self, Image};
use oarsman_rig::{Behaviour, Registry};
use tokio::time::{Instant, sleep};

use super::witness::Witness;

pub(super) const PATIENCE: Duration = Duration::from_secs(60);

/// Numbers that look drawn and are the same every time.
struct Dice(u64);

impl Dice {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % limit
    }
}

fn lasting(name: &str) -> Manifest {
    pod(name).with("terminationGracePeriodSeconds", 1).container(actor("keep", &["forever"]))
}

/// What happens while the agent dies again and again: pods come, change and go, some with images from a slow registry.
struct Churn<'a> {
    agent: &'a Node,
    image: String,
    dice: Dice,
}

impl Churn<'_> {
    fn stir(&mut self, round: u64) -> Result<()> {
        let name = format!("c{}", self.dice.below(4));
        match self.dice.below(4) {
            0 => {
                // It was perhaps never there.
                self.agent.manifests().remove(&name).ok();
                Ok(())
            }
            1 => self.agent.apply(&name, &self.pulled(&name, round)),
            2 => self.agent.apply(&name, &Self::edited(&name, round)),
            _ => self.agent.apply(&name, &short(&name, round)),
        }
    }

    /// Another image under another tag every time, so that there is always something to pull.
    fn pulled(&self, name: &str, round: u64) -> Manifest {
        let once = actor("once", &["forever"]).with("image", self.image.clone().into());
        let once = once.with("imagePullPolicy", "Always".into());
        pod(name).with_metadata("labels", round_label(round)).with(GRACE, 1).container(once)
    }

    fn edited(name: &str, round: u64) -> Manifest {
        let image = if round.is_multiple_of(2) { images::ACTOR } else { images::ACTOR_AS_USER };
        let main = actor("main", &["forever"]).with("image", image.into());
        pod(name).with_metadata("uid", format!("fixed-{name}")).with(GRACE, 1).container(main)
    }
}

const GRACE: &str = "terminationGracePeriodSeconds";

fn round_label(round: u64) -> serde_json::Value {
    serde_json::json!({ "round": round.to_string() })
}

fn short(name: &str, round: u64) -> Manifest {
    let labels = round_label(round);
    let first = actor("first", &["sleep:300ms"]);
    let once = actor("once", &["on-term:sleep:300ms,exit:0", "forever"]);
    pod(name).with_metadata("labels", labels).with(GRACE, 2).init(first).container(once)
}

fn slow_registry(stage: &Stage) -> Result<Registry> {
    let all = images::standard(stage.rig().parts())?.into_iter();
    let actors = all.filter(|image| image.name == images::ACTOR);
    let far = actors.map(|image| Image { name: "far:1".to_owned(), ..image }).collect();
    let registry = Registry::start(far)?;
    registry.set("far", Behaviour { delay: Duration::from_millis(200), ..Behaviour::default() });
    stage.rig().allow_registry(registry.address())?;
    Ok(registry)
}

pub(super) async fn the_agent_killed_fifty_times_doubles_nothing_and_restarts_nothing(
    stage: &Stage,
) -> Result<()> {
    let registry = slow_registry(stage)?;
    let agent = stage.agent()?;
    for name in ["k0", "k1", "k2"] {
        agent.apply(name, &lasting(name))?;
    }
    until_all_run(stage, "keep", 3).await?;
    let mut witness = Witness::default();
    let (image, dice) = (registry.name("far:1"), Dice(42));
    let mut churn = Churn { agent: &agent, image, dice };
    for round in 0..50 {
        churn.stir(round)?;
        let until = Instant::now() + Duration::from_millis(churn.dice.below(1200));
        while Instant::now() < until {
            witness.look(stage.look()).await?;
            sleep(Duration::from_millis(30)).await;
        }
        agent.kill()?;
        witness.look(stage.look()).await?;
        agent.start()?;
    }
    for name in ["c0", "c1", "c2", "c3"] {
        agent.apply(name, &short(name, 99))?;
    }
    let settled = async || {
        witness.look(stage.look()).await?;
        let pods = stage.look().pods().await?;
        Ok(pods.iter().filter(|pod| pod.runs("once")).count() == 4 && pods.len() == 7)
    };
    eventually(PATIENCE, "all is as it should be", settled, |settled| *settled).await?;
    let kept = witness.ran("keep");
    ensure!(kept.len() == 3 && kept.iter().all(|ids| ids.len() == 1), "restarted: {kept:?}");
    let once = witness.ran("once");
    ensure!(once.iter().all(|ids| ids.len() == 1), "started twice: {once:?}");
    ensure!(once.len() > 4, "nothing ever came to run: {once:?}");
    Ok(())
}

async fn until_all_run(stage: &Stage, container: &str, count: usize) -> Result<Vec<PodSeen>> {
    let look = async || stage.look().pods().await;
    let run = |pods: &Vec<PodSeen>| pods.iter().filter(|pod| pod.runs(container)).count() == count;
    eventually(PATIENCE * 2, &format!("{count} pods run"), look, run).await
}

pub(super) async fn containerd_killed_ten_times_under_twenty_pods_restarts_nothing(
    stage: &Stage,
) -> Result<()> {
    let agent = stage.start(stage.setup()?.flag("sync-frequency", "2s"))?;
    for number in 0..20 {
        let name = format!("k{number}");
        agent.apply(&name, &lasting(&name))?;
    }
    let before = until_all_run(stage, "keep", 20).await?;
    let mut dice = Dice(7);
    for _ in 0..10 {
        sleep(Duration::from_millis(dice.below(1000))).await;
        stage.rig().kill()?;
        sleep(Duration::from_millis(dice.below(1000))).await;
        stage.rig().restart().await?;
    }
    // One that is wanted only now shows that the agent has found its way back.
    agent.apply("late", &pod("late").with(GRACE, 1).container(actor("late", &["forever"])))?;
    until_all_run(stage, "late", 1).await?;
    let after = until_all_run(stage, "keep", 20).await?;
    for pod in &before {
        let now = after.iter().find(|other| other.uid() == pod.uid());
        let same = now.is_some_and(|now| {
            let ids =
                |pod: &PodSeen| pod.containers.iter().map(|c| c.id.clone()).collect::<Vec<_>>();
            ids(now) == ids(pod) && now.sandboxes.len() == 1
        });
        ensure!(same, "was {pod:#?}\nis {now:#?}");
    }
    ensure!(agent.is_alive(), "the agent has ended");
    Ok(())
}
