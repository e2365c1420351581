//! What the caller decides about the embedded runtime.

use std::io;
use std::path::{Path, PathBuf};

use oarsman_pod_network::PodNetworkSettings;
use oarsman_registry::RegistrySettings;

use crate::network_choice::PodNetworkChoice;

/// What the caller decides about the embedded runtime.
#[derive(Clone, Debug)]
pub struct EmbeddedRuntimeSettings {
    /// All state is below this directory, which is this agent's alone.
    pub root: PathBuf,
    /// The program that is executed as shim: it calls `oarsman_shim::shim::main` and `oarsman_shim::helper::main` first thing.
    pub program: PathBuf,
    /// The built-in bridge.
    pub network: PodNetworkSettings,
    /// Whether pods are connected to it or by CNI plugins.
    pub pod_networks: PodNetworkChoice,
    /// How registries are asked.
    pub registries: RegistrySettings,
    /// Images that are pulled from this program itself.
    pub built_in_images: Vec<BuiltInImage>,
}

/// An image that comes with the program.
#[derive(Clone, Copy, Debug)]
pub struct BuiltInImage {
    /// Its name, which no registry has.
    pub name: &'static str,
    /// Makes an archive of it, in a form that the image store imports.
    pub archive: fn() -> io::Result<Vec<u8>>,
}

impl EmbeddedRuntimeSettings {
    /// Below that directory, with the built-in bridge, whose subnets we choose.
    pub fn new(root: impl Into<PathBuf>, program: impl Into<PathBuf>) -> Self {
        let root = root.into();
        let network = PodNetworkSettings::new(&root, root.join("network"));
        let registries = RegistrySettings::of_machine();
        let (pod_networks, built_in_images) = (PodNetworkChoice::default(), Vec::new());
        Self { root, program: program.into(), network, pod_networks, registries, built_in_images }
    }

    /// The directory below that of a runtime which has one for every sandbox.
    pub fn sandbox_directory(root: &Path) -> PathBuf {
        root.join("sandboxes")
    }

    /// The directory of the image store below that of a runtime.
    pub fn image_directory(root: &Path) -> PathBuf {
        root.join("images")
    }
}
