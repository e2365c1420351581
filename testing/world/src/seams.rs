//! The world as an agent sees it: the four seams of one life.

use std::sync::{Arc, Mutex};

use jiff::Timestamp;
use oarsman_agent::seams::{Clock, Disk, Seams};
use oarsman_cluster::Cluster;
use oarsman_core::requeue;
use tokio::time::Instant;

use crate::clock::WorldClock;
use crate::dice::Dice;
use crate::{World, cluster, disk, lock};

/// Where the pods of a world log to.
pub const POD_LOGS: &str = "/var/log/pods";

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
        Seams {
            runtime: self.for_life(life),
            cluster: self.cluster_for_life(life),
            disk: self.disk_for_life(life),
            clock: self.clock_for_life(life),
        }
    }

    /// The API server as that life of an agent reaches it.
    pub fn cluster_for_life(&self, life: u32) -> Arc<dyn Cluster> {
        self.kill_switch.enter(life);
        let line = self.exchange.line(life, Arc::new(self.cluster.clone()));
        cluster::connect(self.cluster.clone(), line, self.faults.clone())
    }

    /// The disk as that life of an agent reaches it.
    pub fn disk_for_life(&self, life: u32) -> Arc<dyn Disk> {
        self.kill_switch.enter(life);
        let line = self.exchange.line(life, Arc::new(self.disk.clone()));
        disk::connect(self.disk.clone(), line)
    }

    /// The clock of that life of an agent: it counts from now, and no two lives roll the same.
    pub fn clock_for_life(&self, life: u32) -> Arc<dyn Clock> {
        let dice = self.dice.fork("agent").fork(&life.to_string());
        Arc::new(AgentClock::start(self.clock.clone(), dice))
    }
}
