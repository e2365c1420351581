//! From a pod to the CRI messages that make its sandbox and containers.
//!
//! [`sandbox`] and [`container`] are the way in; the rest is what they are made of. Whatever lies outside the pod comes
//! as an argument: the machine ([`Place`]), what was made on it ([`Furnishing`]), what variables refer to ([`Lookup`]).

mod container;
pub mod dns;
mod env;
mod error;
mod hostname;
pub mod hosts;
mod mounts;
mod paths;
mod place;
mod sandbox;
mod security;
#[cfg(test)]
mod tests;
mod volumes;

pub use container::{Request, container, target};
pub use env::{Lookup, expand, service_variables};
pub use error::{ConfigError, MountError, NonRootError, PayloadError, VariableError};
pub use hostname::{Hostname, hostname};
pub use mounts::{Furnishing, VolumePath};
pub use paths::{PodPaths, log_directory, log_link, log_path, seccomp_profiles, volume_plugin};
pub use place::{Place, Settings};
pub use sandbox::{Sandbox, sandbox};
pub use security::{ImageUser, PodGrants};
pub use volumes::{Payload, PayloadFile, Payloads, VolumeFault, payloads};
