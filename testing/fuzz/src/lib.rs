//! Fuzz targets: plain functions of bytes for every parser that reads what others wrote.
//!
//! A target panics when a property does not hold. `./test` replays the corpus and the regressions without any fuzzing engine
//! (`tests/replay.rs`); `cargo xtask fuzz` searches for new inputs with the engine in `engine`, a workspace of its own.

mod targets;

/// One parser with its properties.
#[derive(Clone, Copy, Debug)]
pub struct FuzzTarget {
    /// The name, also of its corpus.
    pub name: &'static str,
    /// The longest input that is worth trying, in bytes.
    pub max_len: usize,
    /// Parses an input and checks what holds for every input.
    pub run: fn(&[u8]),
    /// Inputs to begin with: what the parser meets in practice.
    pub seeds: fn() -> Vec<Vec<u8>>,
}

/// Every target.
pub const TARGETS: &[FuzzTarget] = &[
    targets::certificates::TARGET,
    targets::cgroup_files::TARGET,
    targets::cni_networks::TARGET,
    targets::cni_results::TARGET,
    targets::container_output::TARGET,
    targets::cri_answers::TARGET,
    targets::credentials::TARGET,
    targets::image_documents::TARGET,
    targets::image_layers::TARGET,
    targets::image_references::TARGET,
    targets::kubeconfig::TARGET,
    targets::kubelet_configuration::TARGET,
    targets::log_lines::TARGET,
    targets::manifests::TARGET,
    targets::mountinfo::TARGET,
    targets::quantities::TARGET,
    targets::registry_answers::TARGET,
    targets::registry_hosts::TARGET,
    targets::shim_messages::TARGET,
    targets::spdy_frames::TARGET,
    targets::streaming_queries::TARGET,
    targets::termination_messages::TARGET,
    targets::websocket_frames::TARGET,
];

/// The target of this name.
pub fn find(name: &str) -> Option<&'static FuzzTarget> {
    TARGETS.iter().find(|target| target.name == name)
}
