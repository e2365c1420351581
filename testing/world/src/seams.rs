//! The world's seams for one incarnation of an agent.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use jiff::Timestamp;
use oarsman_clock::Clock;
use oarsman_cluster::Cluster;
use oarsman_core::requeue;
use oarsman_cri::Runtime;
use oarsman_host::host_info::HostInfo;
use oarsman_host::pod_cgroups::Cgroups;
use oarsman_images::CredentialPlugins;
use oarsman_net::Network;
use oarsman_seam::WithMiddleware;
use oarsman_state::{CheckpointStore, PodFiles, PullRecords, StatusRecords};
use oarsman_volumes::Volumes;
use tokio::time::Instant;

use crate::clock::WorldClock;
use crate::link::{AbandonPolicy, LinkMiddleware};
use crate::rng::Rng;
use crate::{World, cluster, lock, network};

/// The directory of pods' logs.
pub const POD_LOGS: &str = "/var/log/pods";

/// A call to a disk that hangs fails after this time.
const DISK_LIMIT: Duration = Duration::from_secs(30);

/// Both clocks of a world and random numbers for one agent.
#[derive(Debug)]
pub struct AgentClock {
    world: WorldClock,
    origin: Instant,
    rng: Mutex<Rng>,
}

impl AgentClock {
    /// A clock that starts now.
    pub fn start(world: WorldClock, rng: Rng) -> Self {
        Self { world, origin: Instant::now(), rng: Mutex::new(rng) }
    }
}

impl Clock for AgentClock {
    fn wall(&self) -> Timestamp {
        self.world.wall()
    }

    fn jitter(&self) -> requeue::Jitter {
        let [a, b, c, d, ..] = lock(&self.rng).next_u64().to_be_bytes();
        requeue::Jitter::from_bits(u32::from_be_bytes([a, b, c, d]))
    }

    fn origin(&self) -> Instant {
        self.origin
    }
}

/// Every seam of one incarnation of an agent. The agent has a type of its own for them: its unit tests use this crate, which therefore cannot
/// use the agent.
#[derive(Clone)]
pub struct WorldSeams {
    /// The runtime.
    pub runtime: Arc<dyn Runtime>,
    /// The API server.
    pub cluster: Arc<dyn Cluster>,
    /// Volumes, on the disk.
    pub volumes: Arc<dyn Volumes>,
    /// Cgroups, on the disk.
    pub cgroups: Arc<dyn Cgroups>,
    /// Files of names and addresses of the machine.
    pub host_info: Arc<dyn HostInfo>,
    /// Directories and logs, on the disk.
    pub pod_files: Arc<dyn PodFiles>,
    /// Recorded statuses, on the disk.
    pub records: Arc<dyn StatusRecords>,
    /// Records of image pulls, on the disk.
    pub pull_records: Arc<dyn PullRecords>,
    /// Credentials of the node.
    pub credential_plugins: Arc<dyn CredentialPlugins>,
    /// Both clocks and random numbers.
    pub clock: Arc<dyn Clock>,
    /// HTTP servers.
    pub network: Arc<dyn Network>,
    /// Checkpoints of pods, on the disk.
    pub checkpoints: Arc<dyn CheckpointStore>,
}

impl World {
    /// All seams for that incarnation of an agent. The first call for an incarnation starts it, and ends the one before.
    pub fn seams(&self, incarnation: u32) -> WorldSeams {
        let (disk, link) = (Arc::new(self.disk.clone()), || self.disk_for(incarnation));
        WorldSeams {
            runtime: self.runtime_for(incarnation),
            cluster: self.cluster_for(incarnation),
            volumes: Arc::new(WithMiddleware::new(disk.clone() as Arc<dyn Volumes>, link())),
            cgroups: Arc::new(WithMiddleware::new(disk.clone() as Arc<dyn Cgroups>, link())),
            host_info: Arc::new(WithMiddleware::new(disk.clone() as Arc<dyn HostInfo>, link())),
            pod_files: Arc::new(WithMiddleware::new(disk.clone() as Arc<dyn PodFiles>, link())),
            records: Arc::new(WithMiddleware::new(disk.clone() as Arc<dyn StatusRecords>, link())),
            pull_records: Arc::new(WithMiddleware::new(
                disk.clone() as Arc<dyn PullRecords>,
                link(),
            )),
            credential_plugins: Arc::new(WithMiddleware::new(
                disk.clone() as Arc<dyn CredentialPlugins>,
                link(),
            )),
            clock: self.clock_for(incarnation),
            network: self.network_for(incarnation),
            checkpoints: Arc::new(WithMiddleware::new(disk as Arc<dyn CheckpointStore>, link())),
        }
    }

    /// The API server for that incarnation of an agent.
    pub fn cluster_for(&self, incarnation: u32) -> Arc<dyn Cluster> {
        self.kill_switch.begin(incarnation);
        let link = self.links.link(incarnation, Arc::new(self.cluster.clone()));
        cluster::connect(self.cluster.clone(), link, self.faults.clone())
    }

    /// The middleware of that incarnation's calls to its own disk. All of them end with their caller: they are the agent's own work.
    fn disk_for(&self, incarnation: u32) -> LinkMiddleware {
        self.kill_switch.begin(incarnation);
        let link = self.links.link(incarnation, Arc::new(self.disk.clone()));
        LinkMiddleware::new(link, DISK_LIMIT, |_| AbandonPolicy::Read)
    }

    /// The servers for that incarnation of an agent.
    pub fn network_for(&self, incarnation: u32) -> Arc<dyn Network> {
        self.kill_switch.begin(incarnation);
        let link = self.links.link(incarnation, Arc::new(self.network.clone()));
        network::connect(self.network.clone(), link)
    }

    /// The clock of that incarnation of an agent: it starts now, and no two incarnations have the same random numbers.
    pub fn clock_for(&self, incarnation: u32) -> Arc<dyn Clock> {
        let rng = self.rng.fork("agent").fork(&incarnation.to_string());
        Arc::new(AgentClock::start(self.clock.clone(), rng))
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
    async fn an_agents_wall_clock_jumps_with_the_worlds_and_its_monotonic_one_counts_from_its_start()
     {
        let world = World::new(1, FaultPlan::quiet());
        sleep(Duration::from_secs(60)).await;
        let clock = world.seams(1).clock;
        sleep(Duration::from_secs(5)).await;
        world.clock.jump(SignedDuration::from_hours(1));
        assert_eq!(clock.wall().to_string(), "2027-01-01T01:01:05Z");
        assert_eq!(clock.mono(), Mono(Duration::from_secs(5)));
    }

    #[tokio::test(start_paused = true)]
    async fn random_numbers_are_the_same_only_for_one_seed_and_incarnation() {
        let rolls = |seed, incarnation| {
            let clock = World::new(seed, FaultPlan::quiet()).seams(incarnation).clock;
            [clock.jitter(), clock.jitter()]
        };
        let first = rolls(1, 1);
        assert_eq!(rolls(1, 1), first);
        assert_ne!(first[0], first[1]);
        for (seed, incarnation) in [(1, 2), (2, 1)] {
            assert_ne!(rolls(seed, incarnation), first, "{seed} {incarnation}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn the_seams_belong_to_one_incarnation_and_end_with_the_next() {
        let world = World::new(1, FaultPlan::quiet());
        let first = world.seams(1);
        first.runtime.version().await.unwrap();
        first.records.pods().await.unwrap();
        assert_eq!(world.kill_switch.calls(), 2);
        let second = world.seams(2);
        let max_wait = Duration::from_secs(3_600);
        assert!(tokio::time::timeout(max_wait, first.records.pods()).await.is_err());
        second.records.pods().await.unwrap();
    }
}
