//! From a pod to the CRI messages that make its sandbox and containers.
//!
//! [`generate_pod_sandbox_config`] and [`generate_container_config`] are the functions to call; all others are parts of them. Everything that
//! is not in the pod is an argument: the machine ([`NodeContext`]), the files and directories of the container ([`ContainerHostPaths`]), the
//! objects that variables refer to ([`Lookup`]).

mod container;
pub mod dns;
mod env;
mod error;
mod hostname;
pub mod hosts;
mod mounts;
mod node_context;
mod paths;
mod reference_limit;
mod sandbox;
mod security;
mod sub_paths;
#[cfg(test)]
mod tests;
mod volumes;

pub use container::{ContainerConfigRequest, generate_container_config, target_container_id};
pub use env::{EnvFile, Lookup, env_files, expand, service_variables};
pub use error::{
    ClaimError, ConfigError, NonRootError, PayloadError, SubPathFault, VariableError,
    VolumeMountError,
};
pub use hostname::{Hostname, hostname};
pub use mounts::{ContainerHostPaths, ImageVolume, PropagatedMount, VolumePath, propagated_mounts};
pub use node_context::{NameFiles, NodeContext, NodeSettings};
pub use paths::{PodPaths, log_directory, log_link, log_path, seccomp_profiles, volume_plugin};
pub use reference_limit::{check_object_bytes, check_references};
pub use sandbox::{SandboxSpec, generate_pod_sandbox_config};
pub use security::{ImageUser, PodGrants};
pub use sub_paths::{ContainerSubPaths, SubPathToMount, sub_paths};
pub use volumes::{Payload, PayloadFile, Payloads, VolumeFault, payloads};
