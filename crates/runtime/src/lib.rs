//! The embedded container runtime: `trait Runtime` in process, over the crates image-store, pod-network, cni and shim.
//!
//! CRI configurations become OCI specs (`oci`), and records on disk become CRI statuses (`status`). One shim a pod holds its containers and
//! outlives this process; what it tells comes in by `monitor`. All state is below one directory (`state_directory`): a new
//! [`EmbeddedRuntime`] over the same one finds what runs again (`open`).

mod calls;
mod container_create;
mod container_files;
mod containers;
mod error;
mod ids;
mod images;
mod info;
mod inner;
mod monitor;
mod network_choice;
mod network_upkeep;
mod oci;
mod open;
mod pod_networks;
mod records;
mod root_lock;
mod sandbox_files;
mod sandboxes;
mod settings;
mod state_directory;
mod stats;
mod status;
mod streaming;
mod traffic;

pub use calls::EmbeddedRuntime;
pub use error::EmbeddedRuntimeError;
pub use images::pull_credentials;
pub use network_choice::{PodNetworkChoice, PodNetworkMode};
pub use oarsman_cni::CniSettings;
pub use settings::{BuiltInImage, EmbeddedRuntimeSettings};
