//! The simulated world: a fake Runtime, Cluster, Disk and Network, virtual time, seeded faults, invariants.
//!
//! A [`World`] holds what outlives every agent: the runtime with its containers, the API server with its
//! pods, the disk, the files, the servers, the clock.
//! An agent reaches it over a [`link::Link`] of its own life, where calls are slow, fail, hang or time
//! out as the [`faults::FaultPlan`] and the seed have it, and where the [`kill_switch::KillSwitch`] ends that
//! life. What the world saw is in its [`trace::Trace`]; the same seed leaves the same trace.

pub mod clock;
pub mod cluster;
pub mod disk;
pub mod faults;
pub mod files;
#[cfg(test)]
mod fixtures;
mod fnv;
pub mod kill_switch;
pub mod link;
pub mod network;
pub mod panics;
pub mod rng;
pub mod runtime;
pub mod seams;
pub mod trace;
mod world;

pub use world::{World, simulate};

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Locks; a lock that somebody panicked under still holds what the rest of the world needs for its
/// last words.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
