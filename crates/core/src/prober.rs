//! Probes: when each is due, what its answers mean, and what people are told of them. In the Go kubelet these are the packages `prober`
//! and `probe`.
//!
//! [`wanted_probes`] says which probes a pod has now. Each has a [`ProbeWorker`], a state machine from answers to results; one of a new
//! container is a new one. The agent makes the calls, and the functions here interpret the answers: [`exec`], [`http`], [`network`].

pub mod exec;
pub mod http;
pub mod network;
mod outcome;
mod schedule;
mod wanted;
mod worker;

pub use outcome::{OUTPUT_LIMIT, ProbeOutcome, ProbeTally};
pub use schedule::{PeriodAnnotationError, ProbeSchedule, period_annotation};
pub use wanted::{WantedProbe, wanted_probes};
pub use worker::{ProbeStart, ProbeWorker};

/// The User-Agent of HTTP probes: tools match on the Go kubelet's name and version.
pub const USER_AGENT: &str = "kube-probe/1.36";

/// How often in a row a probe is tried that could not be carried out.
pub const MAX_ATTEMPTS: u32 = 3;
