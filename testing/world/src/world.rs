//! A world: all of its parts, and the single thread it runs on.

use std::future::Future;
use std::io;
use std::sync::Arc;

use oarsman_cri::{Deadlines, Runtime};

use crate::clock::WorldClock;
use crate::cluster::FakeCluster;
use crate::disk::FakeDisk;
use crate::faults::{FaultPlan, Faults};
use crate::files::FakeFiles;
use crate::kill_switch::KillSwitch;
use crate::link::Links;
use crate::network::FakeNetwork;
use crate::rng::Rng;
use crate::runtime::{FakeRuntime, connect};
use crate::seams::POD_LOGS;
use crate::trace::Trace;

#[cfg(test)]
mod tests;

/// What outlives every agent; clones are the same world.
#[derive(Clone)]
#[expect(missing_docs, reason = "the fields' names say what they are")]
pub struct World {
    /// Its time.
    pub clock: WorldClock,
    pub files: FakeFiles,
    pub trace: Trace,
    pub faults: Faults,
    /// The switch that kills an incarnation of the agent.
    pub kill_switch: KillSwitch,
    /// Its runtime, without a link: calls on this one are fast, have no faults and are not in the trace.
    pub runtime: FakeRuntime,
    /// Its API server, without a link.
    pub cluster: FakeCluster,
    /// Its disk, without a link.
    pub disk: FakeDisk,
    /// Its servers, without a link.
    pub network: FakeNetwork,
    /// Makes links to its parts.
    pub links: Links,
    /// The generator from which those of agents are forked.
    pub(crate) rng: Rng,
}

impl World {
    /// A world of that seed with those faults, on the current tokio runtime.
    pub fn new(seed: u64, plan: FaultPlan) -> Self {
        let (rng, clock, files) = (Rng::new(seed), WorldClock::start(), FakeFiles::default());
        let trace = Trace::new(clock.clone());
        let faults = Faults::new(clock.clone(), plan, rng.fork("faults"));
        let kill_switch = KillSwitch::new(trace.clone(), rng.fork("kill switch"));
        let links = Links::new(trace.clone(), faults.clone(), kill_switch.clone());
        let (place, record) = (files.clone(), trace.clone());
        let runtime = FakeRuntime::new(clock.clone(), place, record, rng.fork("runtime"));
        let cluster = FakeCluster::new(clock.clone(), trace.clone(), rng.fork("cluster"));
        let (place, record) = (files.clone(), trace.clone());
        let disk = FakeDisk::new(record, place, runtime.clone(), POD_LOGS.into());
        let network = FakeNetwork::new(trace.clone(), runtime.clone());
        Self {
            clock,
            files,
            trace,
            faults,
            kill_switch,
            runtime,
            cluster,
            disk,
            network,
            links,
            rng,
        }
    }

    /// The runtime for that incarnation of an agent. The first call for an incarnation starts it, and ends the one before.
    pub fn runtime_for(&self, incarnation: u32) -> Arc<dyn Runtime> {
        self.kill_switch.begin(incarnation);
        let link = self.links.link(incarnation, Arc::new(self.runtime.clone()));
        connect(self.runtime.clone(), link, self.faults.clone(), Deadlines::default())
    }
}

/// Runs a simulation in a world of its own: one thread, and time that passes only when all tasks wait.
///
/// # Errors
/// When the thread's event loop cannot be made.
pub fn simulate<F: Future>(
    seed: u64,
    plan: FaultPlan,
    incarnation: impl FnOnce(World) -> F,
) -> io::Result<F::Output> {
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build()?;
    Ok(runtime.block_on(async { incarnation(World::new(seed, plan)).await }))
}
