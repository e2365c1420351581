//! The simulated world: a fake Runtime, Cluster, disk and Network, virtual time, seeded faults, a trace.
//!
//! A [`World`] holds what outlives every agent: the runtime with its containers, the API server with its pods, the disk, the files, the servers,
//! the clock. Each incarnation of an agent has a [`link::Link`] of its own, over which calls are slow, fail, hang or time out as the
//! [`faults::FaultPlan`] and the seed have it, and on which the [`kill_switch::KillSwitch`] kills it. All calls and changes are in the
//! [`trace::Trace`]; the same seed gives the same trace.

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

/// Locks; after a panic under the lock, the state behind it is still needed for the report of the failure.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
