//! The world as an agent sees it: the seams of one life.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use jiff::Timestamp;
use oarsman_agent::seams::Seams;
use oarsman_clock::Clock;
use oarsman_cluster::Cluster;
use oarsman_core::requeue;
use oarsman_host::pod_cgroups::Cgroups;
use oarsman_images::CredentialPlugins;
use oarsman_net::Network;
use oarsman_seam::Through;
use oarsman_state::{CheckpointStore, PodFiles, Records};
use oarsman_volumes::Volumes;
use tokio::time::Instant;

use crate::clock::WorldClock;
use crate::dice::Dice;
use crate::line::{Conduct, OverLine};
use crate::{World, cluster, lock, network};

/// Where the pods of a world log to.
pub const POD_LOGS: &str = "/var/log/pods";

/// A disk that is stuck fails in the end.
const DISK_LIMIT: Duration = Duration::from_secs(30);

/// Both clocks of a world and dice of one's own.
#[derive(Debug)]
pub struct AgentClock {
    world: WorldClock,
    origin: Instant,
    dice: Mutex<Dice>,
}

impl AgentClock {
    /// Counts from now.
    pub fn start(world: WorldClock, dice: Dice) -> Self {
        Self { world, origin: Instant::now(), dice: Mutex::new(dice) }
    }
}

impl Clock for AgentClock {
    fn wall(&self) -> Timestamp {
        self.world.wall()
    }

    fn dice(&self) -> requeue::Dice {
        let [a, b, c, d, ..] = lock(&self.dice).roll().to_be_bytes();
        requeue::Dice::from_bits(u32::from_be_bytes([a, b, c, d]))
    }

    fn origin(&self) -> Instant {
        self.origin
    }
}

impl World {
    /// The whole world as that life of an agent reaches it. The first handle of a life begins it, and
    /// ends the one before.
    pub fn seams(&self, life: u32) -> Seams {
        let (disk, line) = (Arc::new(self.disk.clone()), || self.disk_for_life(life));
        Seams {
            runtime: self.for_life(life),
            cluster: self.cluster_for_life(life),
            volumes: Arc::new(Through::new(disk.clone() as Arc<dyn Volumes>, line())),
            cgroups: Arc::new(Through::new(disk.clone() as Arc<dyn Cgroups>, line())),
            pod_files: Arc::new(Through::new(disk.clone() as Arc<dyn PodFiles>, line())),
            records: Arc::new(Through::new(disk.clone() as Arc<dyn Records>, line())),
            credential_plugins: Arc::new(Through::new(
                disk.clone() as Arc<dyn CredentialPlugins>,
                line(),
            )),
            clock: self.clock_for_life(life),
            network: self.network_for_life(life),
            checkpoints: Some(Arc::new(Through::new(disk as Arc<dyn CheckpointStore>, line()))),
        }
    }

    /// The API server as that life of an agent reaches it.
    pub fn cluster_for_life(&self, life: u32) -> Arc<dyn Cluster> {
        self.kill_switch.enter(life);
        let line = self.exchange.line(life, Arc::new(self.cluster.clone()));
        cluster::connect(self.cluster.clone(), line, self.faults.clone())
    }

    /// What is done around every call of that life of an agent on the machine's own disk. All of them end with their caller: they are
    /// the agent's own work.
    fn disk_for_life(&self, life: u32) -> OverLine {
        self.kill_switch.enter(life);
        let line = self.exchange.line(life, Arc::new(self.disk.clone()));
        OverLine::new(line, DISK_LIMIT, |_| Conduct::Read)
    }

    /// The servers as that life of an agent reaches them.
    pub fn network_for_life(&self, life: u32) -> Arc<dyn Network> {
        self.kill_switch.enter(life);
        let line = self.exchange.line(life, Arc::new(self.network.clone()));
        network::connect(self.network.clone(), line)
    }

    /// The clock of that life of an agent: it counts from now, and no two lives roll the same.
    pub fn clock_for_life(&self, life: u32) -> Arc<dyn Clock> {
        let dice = self.dice.fork("agent").fork(&life.to_string());
        Arc::new(AgentClock::start(self.clock.clone(), dice))
    }
}

#[cfg(test)]
mod tests {
    use jiff::SignedDuration;
    use oarsman_core::time::Mono;
    use tokio::time::sleep;

    use super::*;
    use crate::faults::FaultPlan;

    #[tokio::test(start_paused = true)]
    async fn an_agents_wall_clock_jumps_with_the_worlds_and_its_other_one_counts_from_its_birth() {
        let world = World::new(1, FaultPlan::quiet());
        sleep(Duration::from_secs(60)).await;
        let clock = world.seams(1).clock;
        sleep(Duration::from_secs(5)).await;
        world.clock.jump(SignedDuration::from_hours(1));
        assert_eq!(clock.wall().to_string(), "2027-01-01T01:01:05Z");
        assert_eq!(clock.mono(), Mono(Duration::from_secs(5)));
    }

    #[tokio::test(start_paused = true)]
    async fn dice_are_the_same_for_one_seed_and_life_and_for_no_other() {
        let rolls = |seed, life| {
            let clock = World::new(seed, FaultPlan::quiet()).seams(life).clock;
            [clock.dice(), clock.dice()]
        };
        let first = rolls(1, 1);
        assert_eq!(rolls(1, 1), first);
        assert_ne!(first[0], first[1]);
        for (seed, life) in [(1, 2), (2, 1)] {
            assert_ne!(rolls(seed, life), first, "{seed} {life}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn the_seams_are_of_one_life_and_the_next_ends_them_all() {
        let world = World::new(1, FaultPlan::quiet());
        let first = world.seams(1);
        first.runtime.version().await.unwrap();
        first.records.pods().await.unwrap();
        assert_eq!(world.kill_switch.calls(), 2);
        let second = world.seams(2);
        let patience = Duration::from_secs(3_600);
        assert!(tokio::time::timeout(patience, first.records.pods()).await.is_err());
        second.records.pods().await.unwrap();
    }
}
