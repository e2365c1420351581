//! Simulated lives of the whole agent: drawn from a seed, lived in the world, judged by what the world saw.
//!
//! [`SimulationPlan::from_seed`] makes a life of a seed: pods, edits, deletions, faults, the moments at which the agent is killed.
//! [`run`] lives it with the program's own assembly of the agent over the world's seams. [`invariants::check`] reads the
//! world's trace, never the agent's opinion. [`mistakes`] are wrong decisions that the invariants must notice.

pub mod invariants;
pub mod mistakes;
mod plan;
mod random_pods;
pub mod scenario;
mod simulation;

use std::sync::Arc;

use futures::StreamExt;
use k8s_openapi::api::core::v1::Pod;
use oarsman_agent::sources::PodSource;
use oarsman_core::sources::Source;
use tokio::sync::watch;
use tokio_stream::wrappers::WatchStream;

pub use plan::{ExternalAction, SimulationPlan};
pub use simulation::{FinalState, SimulationResult, config, membership, run, seams};

/// The manifests of a node, as its source of files.
pub fn file_source(files: &watch::Sender<Vec<Pod>>) -> PodSource {
    let receiver = files.subscribe();
    let shared = |pods: Vec<Pod>| pods.into_iter().map(Arc::new).collect();
    PodSource::new(Source::File, move || WatchStream::new(receiver.clone()).map(shared).boxed())
}
