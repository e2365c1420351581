//! What the caller decides about the embedded runtime.

use std::path::PathBuf;

use oarsman_pod_network::PodNetworkSettings;
use oarsman_registry::RegistrySettings;

/// What the caller decides about the embedded runtime.
#[derive(Clone, Debug)]
pub struct EmbeddedRuntimeSettings {
    /// All state is below this directory, which is this agent's alone.
    pub root: PathBuf,
    /// The program that is executed as shim: it calls `oarsman_shim::shim::main` and `oarsman_shim::helper::main` first thing.
    pub program: PathBuf,
    /// The network of pods.
    pub network: PodNetworkSettings,
    /// How registries are asked.
    pub registries: RegistrySettings,
}

impl EmbeddedRuntimeSettings {
    /// Below that directory, with a network whose subnets we choose.
    pub fn new(root: impl Into<PathBuf>, program: impl Into<PathBuf>) -> Self {
        let root = root.into();
        let network = PodNetworkSettings::new(&root, root.join("network"));
        let registries = RegistrySettings::of_machine();
        Self { root, program: program.into(), network, registries }
    }
}
