//! Every decision of the node agent, as pure functions from plain data to plain data.
//!
//! Nothing here waits, reads a file, asks for the time or writes a log line: the shell around it does, and
//! hands in what it saw. That is what lets a simulated world live thousands of lives a minute through it.

pub mod access;
pub mod actions;
pub mod active_pods;
pub mod admission;
pub mod api;
pub mod backoff;
pub mod bandwidth;
pub mod certificates;
pub mod cri_spec;
pub mod disk_usage;
pub mod duration;
pub mod event;
pub mod event_queue;
pub mod explain;
pub mod exposition;
pub mod features;
pub mod gc;
pub mod grace;
pub mod handler;
pub mod hash;
pub mod healthz;
pub mod hook;
pub mod ids;
pub mod image;
pub mod image_reference;
pub mod labels;
pub mod lifecycle;
pub mod log_request;
pub mod log_rotation;
pub mod mirror;
pub mod node;
pub mod node_log_query;
pub mod pem;
pub mod persistent_volume;
pub mod pod;
pub mod pod_certificate;
pub mod probe;
pub mod prober;
pub mod qos;
pub mod quantity;
pub mod queue;
pub mod rate;
pub mod references;
pub mod report;
pub mod requeue;
pub mod resources;
pub mod restart;
pub mod sources;
pub mod start_error;
pub mod static_pod;
pub mod stats;
pub mod status;
pub mod streaming_request;
pub mod termination_message;
pub mod time;
pub mod token;
pub mod trust_bundle;
pub mod user_namespace;
pub mod view;
pub mod volume_manager;
pub mod zpages;

#[cfg(test)]
mod fixture;
