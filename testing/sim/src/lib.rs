//! Simulations of the whole agent: planned from a seed, run in the simulated world, checked by invariants on the world's trace.
//!
//! [`SimulationPlan::from_seed`] draws a plan: pods, edits, deletions, faults, the moments at which the agent is killed. [`run`] runs it with
//! the program's own assembly of the agent over the world's seams. [`invariants::check`] reads the world's trace, never the agent's own state.
//! [`mistakes`] are wrong decisions that the invariants must notice.

pub mod invariants;
pub mod mistakes;
mod plan;
mod random_pods;
mod random_probes;
mod random_volumes;
pub mod scenario;
mod simulation;
mod tight_node;

use std::sync::Arc;

use futures::StreamExt;
use k8s_openapi::api::core::v1::Pod;
use oarsman_agent::sources::PodSource;
use oarsman_core::sources::Source;
use tokio::sync::watch;
use tokio_stream::wrappers::WatchStream;

pub use plan::{ExternalAction, SimulationPlan};
pub use simulation::{FinalState, SimulationResult, config, node_status_config, run, seams};

/// The source of a node's manifests.
pub fn file_source(files: &watch::Sender<Vec<Pod>>) -> PodSource {
    let receiver = files.subscribe();
    let shared = |pods: Vec<Pod>| pods.into_iter().map(Arc::new).collect();
    PodSource::new(Source::File, move || WatchStream::new(receiver.clone()).map(shared).boxed())
}
